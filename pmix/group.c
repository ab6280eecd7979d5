/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* group.c - groups and connections of ranks. */
#include "group.h"

#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "exchange.h"
#include "info.h"

struct group {
    struct dt_pmix_exchange exchange;
    bool wants_id;
    pmix_info_cbfunc_t group_cbfunc; /* or the next */
    pmix_op_cbfunc_t op_cbfunc;
    void *cbdata;
};

/* What the members told each other goes back as it came. */
static char *take_data(const pmix_info_t *info, size_t ninfo, size_t *len)
{
    const pmix_value_t *value =
        dt_pmix_info_find(info, ninfo, PMIX_GROUP_ENDPT_DATA);
    *len = 0;
    if (!value || value->type != PMIX_BYTE_OBJECT || !value->data.bo.size)
        return NULL;
    char *data = malloc(value->data.bo.size);
    if (!data)
        return NULL;
    memcpy(data, value->data.bo.bytes, value->data.bo.size);
    *len = value->data.bo.size;
    return data;
}

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

static void group_done(struct dt_pmix *pmix, struct dt_pmix_exchange *exchange,
                       pmix_status_t status)
{
    struct group *self = (struct group *)exchange;
    struct dt_pmix_infos *infos = calloc(1, sizeof(*infos));
    if (!infos)
        status = PMIX_ERR_NOMEM;
    if (status == PMIX_SUCCESS && self->wants_id) {
        size_t id = ++pmix->contexts;
        dt_pmix_info_add(infos, PMIX_GROUP_CONTEXT_ID, &id, PMIX_SIZE);
    }
    if (status == PMIX_SUCCESS && exchange->len) {
        pmix_byte_object_t bytes = {exchange->data, exchange->len};
        dt_pmix_info_add(infos, PMIX_GROUP_ENDPT_DATA, &bytes,
                         PMIX_BYTE_OBJECT);
    }
    free(exchange->data);
    if (infos)
        self->group_cbfunc(status, infos->all, infos->count, self->cbdata,
                           release, infos);
    else
        self->group_cbfunc(status, NULL, 0, self->cbdata, NULL, NULL);
    free(self);
}

pmix_status_t dt_pmix_group(pmix_group_operation_t op, char *name,
                            const pmix_proc_t procs[], size_t nprocs,
                            const pmix_info_t info[], size_t ninfo,
                            pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    (void)name;
    struct group *self = malloc(sizeof(*self));
    if (!self)
        return PMIX_ERR_NOMEM;
    *self = (struct group){{.procs = procs,
                            .nprocs = nprocs,
                            .info = info,
                            .ninfo = ninfo,
                            .done = group_done},
                           .group_cbfunc = cbfunc,
                           .cbdata = cbdata};
    self->wants_id = op == PMIX_GROUP_CONSTRUCT &&
                     is_true(info, ninfo, PMIX_GROUP_ASSIGN_CONTEXT_ID);
    self->exchange.data = take_data(info, ninfo, &self->exchange.len);
    return dt_pmix_exchange_start(&self->exchange);
}

/* --- connect ------------------------------------------------------------- */

static void connect_done(struct dt_pmix *pmix,
                         struct dt_pmix_exchange *exchange,
                         pmix_status_t status)
{
    struct group *self = (struct group *)exchange;
    (void)pmix;
    self->op_cbfunc(status, self->cbdata);
    free(self);
}

pmix_status_t dt_pmix_connect(const pmix_proc_t procs[], size_t nprocs,
                              const pmix_info_t info[], size_t ninfo,
                              pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    struct group *self = malloc(sizeof(*self));
    if (!self)
        return PMIX_ERR_NOMEM;
    *self = (struct group){{.procs = procs,
                            .nprocs = nprocs,
                            .info = info,
                            .ninfo = ninfo,
                            .done = connect_done},
                           .op_cbfunc = cbfunc,
                           .cbdata = cbdata};
    return dt_pmix_exchange_start(&self->exchange);
}

pmix_status_t dt_pmix_disconnect(const pmix_proc_t procs[], size_t nprocs,
                                 const pmix_info_t info[], size_t ninfo,
                                 pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    return dt_pmix_connect(procs, nprocs, info, ninfo, cbfunc, cbdata);
}
