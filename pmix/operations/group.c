/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* group.c - PMIx_Group_construct and _destruct, PMIx_Connect and _Disconnect:
 * collective operations that exchange no data of their own. */
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "operations/collective.h"
#include "operations/operations.h"
#include "server/info.h"
#include "server/server_state.h"

struct group {
    struct dt_pmix_collective collective;
    bool wants_id;
    pmix_info_cbfunc_t group_cbfunc; /* or the next */
    pmix_op_cbfunc_t op_cbfunc;
    void *cbdata;
};

static bool is_true(const pmix_info_t *info, size_t ninfo, const char *key)
{
    const pmix_value_t *value = dt_pmix_info_find(info, ninfo, key);
    return value && (value->type != PMIX_BOOL || value->data.flag);
}

static void release(void *arg)
{
    struct dt_pmix_infos *infos = arg;
    dt_pmix_info_free(infos);
    free(infos);
}

/* What a node contributes:
 *   groups that it has constructed u64 | its number u32 | blob of its members
 */
#define HEAD 16

static pmix_status_t write_part(struct dt_pmix *pmix,
                                struct dt_pmix_collective *collective)
{
    const pmix_value_t *value = dt_pmix_info_find(
        collective->info, collective->ninfo, PMIX_GROUP_ENDPT_DATA);
    pmix_byte_object_t blob = {NULL, 0};
    if (value && value->type == PMIX_BYTE_OBJECT)
        blob = value->data.bo;
    if (blob.size > UINT32_MAX)
        return PMIX_ERR_BAD_PARAM;
    unsigned char *part = malloc(HEAD + blob.size);
    if (!part)
        return PMIX_ERR_NOMEM;
    dt_wire_put(part, 8, ++pmix->contexts);
    dt_wire_put(part + 8, 4, pmix->job.self);
    dt_wire_put(part + 12, 4, blob.size);
    if (blob.size)
        memcpy(part + HEAD, blob.bytes, blob.size);
    collective->data = (char *)part;
    collective->len = HEAD + blob.size;
    return PMIX_SUCCESS;
}

/* Leave only the blobs of the members in data. *id is the same on all nodes and
 * unique among groups: of the lowest node, its number and count of groups. */
static pmix_status_t read_parts(struct dt_pmix_collective *collective,
                                size_t nodes, size_t *id)
{
    struct dt_cursor in = dt_cursor(collective->data, collective->len);
    uint64_t lowest = UINT64_MAX, groups = 0;
    size_t len = 0;
    while (!in.failed && in.at < in.end) {
        uint64_t count = dt_cursor_uint(&in, 8), node = dt_cursor_uint(&in, 4);
        size_t size = dt_cursor_uint(&in, 4);
        const void *blob = dt_cursor_bytes(&in, size);
        if (!blob)
            return PMIX_ERR_UNPACK_FAILURE;
        memmove(collective->data + len, blob, size);
        len += size;
        groups = node < lowest ? count : groups;
        lowest = node < lowest ? node : lowest;
    }
    collective->len = len;
    *id = groups * nodes + lowest;
    return in.failed ? PMIX_ERR_UNPACK_FAILURE : PMIX_SUCCESS;
}

static void group_done(struct dt_pmix *pmix,
                       struct dt_pmix_collective *collective,
                       pmix_status_t status)
{
    struct group *self = (struct group *)collective;
    struct dt_pmix_infos *infos = calloc(1, sizeof(*infos));
    size_t id = 0;
    if (!infos)
        status = PMIX_ERR_NOMEM;
    if (status == PMIX_SUCCESS)
        status = read_parts(collective, pmix->job.map->nodes, &id);
    if (status == PMIX_SUCCESS && self->wants_id)
        dt_pmix_info_add(infos, PMIX_GROUP_CONTEXT_ID, &id, PMIX_SIZE);
    if (status == PMIX_SUCCESS && collective->len) {
        pmix_byte_object_t bytes = {collective->data, collective->len};
        dt_pmix_info_add(infos, PMIX_GROUP_ENDPT_DATA, &bytes,
                         PMIX_BYTE_OBJECT);
    }
    free(collective->data);
    if (infos)
        self->group_cbfunc(status, infos->all, infos->count, self->cbdata,
                           release, infos);
    else
        self->group_cbfunc(status, NULL, 0, self->cbdata, NULL, NULL);
    free(self);
}

static pmix_status_t group(pmix_group_operation_t op, char *name,
                           const pmix_proc_t procs[], size_t nprocs,
                           const pmix_info_t info[], size_t ninfo,
                           pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    struct group *self = malloc(sizeof(*self));
    if (!self)
        return PMIX_ERR_NOMEM;
    *self = (struct group){{.what = op == PMIX_GROUP_CONSTRUCT
                                        ? DT_COLLECT_CONSTRUCT
                                        : DT_COLLECT_DESTRUCT,
                            .name = name,
                            .procs = procs,
                            .nprocs = nprocs,
                            .info = info,
                            .ninfo = ninfo,
                            .prepare = write_part,
                            .done = group_done},
                           .group_cbfunc = cbfunc,
                           .cbdata = cbdata};
    self->wants_id = op == PMIX_GROUP_CONSTRUCT &&
                     is_true(info, ninfo, PMIX_GROUP_ASSIGN_CONTEXT_ID);
    return dt_pmix_collective_start(&self->collective);
}

/* --- connect ------------------------------------------------------------- */

static void connect_done(struct dt_pmix *pmix,
                         struct dt_pmix_collective *collective,
                         pmix_status_t status)
{
    struct group *self = (struct group *)collective;
    (void)pmix;
    self->op_cbfunc(status, self->cbdata);
    free(self);
}

static pmix_status_t start(enum dt_pmix_collect what, const pmix_proc_t procs[],
                           size_t nprocs, const pmix_info_t info[],
                           size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    struct group *self = malloc(sizeof(*self));
    if (!self)
        return PMIX_ERR_NOMEM;
    *self = (struct group){{.what = what,
                            .procs = procs,
                            .nprocs = nprocs,
                            .info = info,
                            .ninfo = ninfo,
                            .done = connect_done},
                           .op_cbfunc = cbfunc,
                           .cbdata = cbdata};
    return dt_pmix_collective_start(&self->collective);
}

static pmix_status_t connect(const pmix_proc_t procs[], size_t nprocs,
                             const pmix_info_t info[], size_t ninfo,
                             pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    return start(DT_COLLECT_CONNECT, procs, nprocs, info, ninfo, cbfunc,
                 cbdata);
}

static pmix_status_t disconnect(const pmix_proc_t procs[], size_t nprocs,
                                const pmix_info_t info[], size_t ninfo,
                                pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    return start(DT_COLLECT_DISCONNECT, procs, nprocs, info, ninfo, cbfunc,
                 cbdata);
}

static void fill(pmix_server_module_t *module)
{
    module->group = group;
    module->connect = connect;
    module->disconnect = disconnect;
}

const struct dt_pmix_operation dt_pmix_op_group = {.fill = fill};
