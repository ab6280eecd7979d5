/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* publish.c - PMIx_Publish, _Lookup and _Unpublish: requests to the server that
 * keeps the store, which is the root's.
 *
 * A lookup that names no range searches all of them, and one without PMIX_WAIT
 * returns at once. COMM_FAILURE: the root was lost meanwhile, and what was
 * published with it. NOT_SUPPORTED: the range, or a value that holds a
 * pointer. */
#include <stdlib.h>
#include <string.h>

#include "operations/operations.h"
#include "operations/pack.h"
#include "operations/store.h"
#include "server/info.h"
#include "server/library.h"
#include "server/server_state.h"

/* The root answers at once; but a node can stop without being lost. */
#define ANSWER_MS 60000

/* One of the three calls, and its answer. */
struct dt_pmix_question {
    struct dt_pmix_call call;
    struct dt_pmix_question *next, **link; /* while it waits for an answer */
    enum dt_pmix_ask what;
    pmix_proc_t proc;
    /* of PMIx, valid until it is answered */
    char **keys;
    const pmix_info_t *info;
    size_t ninfo;
    pmix_op_cbfunc_t op_cbfunc;
    pmix_lookup_cbfunc_t lookup_cbfunc;
    void *cbdata;
    pmix_status_t status;
    pmix_pdata_t *found;
    size_t nfound;
};

/* --- the answer ---------------------------------------------------------- */

static void reply(pmix_status_t status, void *arg)
{
    struct dt_pmix_question *self = arg;
    (void)status;
    if (self->what == DT_ASK_LOOKUP)
        self->lookup_cbfunc(self->status, self->found, self->nfound,
                            self->cbdata);
    else
        self->op_cbfunc(self->status, self->cbdata);
    PMIX_PDATA_FREE(self->found, self->nfound);
    free(self);
}

static bool read_found(struct dt_cursor *from, pmix_pdata_t *to)
{
    const char *key;
    const void *value;
    size_t key_len, value_len;
    if (!dt_unpack_proc(from, &to->proc) ||
        !dt_unpack_key(from, &key, &key_len) ||
        !dt_cursor_blob(from, &value, &value_len))
        return false;
    memcpy(to->key, key, key_len);
    struct dt_cursor in = dt_cursor(value, value_len);
    return dt_unpack_value(&in, &to->value);
}

static size_t count_keys(char **keys)
{
    size_t count = 0;
    while (keys && keys[count])
        count++;
    return count;
}

static pmix_status_t read_all_found(struct dt_pmix_question *self,
                                    struct dt_cursor from)
{
    size_t room = count_keys(self->keys);
    PMIX_PDATA_CREATE(self->found, room);
    if (!self->found)
        return room ? PMIX_ERR_NOMEM : PMIX_ERR_NOT_FOUND;
    while (from.at != from.end) {
        if (self->nfound == room ||
            !read_found(&from, &self->found[self->nfound]))
            return PMIX_ERR_UNPACK_FAILURE;
        self->nfound++;
    }
    return PMIX_SUCCESS;
}

static void answered(void *arg, dt_result_t rc, int32_t status,
                     const void *data, size_t len)
{
    struct dt_pmix_question *self = arg;
    *self->link = self->next;
    if (self->next)
        self->next->link = self->link;
    self->status = rc == DT_SUCCESS           ? status
                   : rc == DT_ERR_TIMED_OUT   ? PMIX_ERR_TIMEOUT
                   : rc == DT_ERR_PROC_FAILED ? PMIX_ERR_COMM_FAILURE
                                              : PMIX_ERR_NOMEM;
    if (self->what == DT_ASK_LOOKUP && self->status == PMIX_SUCCESS)
        self->status = read_all_found(self, dt_cursor(data, len));
    dt_pmix_in_library(reply, self);
}

/* --- the request --------------------------------------------------------- */

/* The range that the caller names, else fallback. */
static pmix_data_range_t range_of(const struct dt_pmix_question *self,
                                  pmix_data_range_t fallback)
{
    const pmix_value_t *value =
        dt_pmix_info_find(self->info, self->ninfo, PMIX_RANGE);
    return value && value->type == PMIX_DATA_RANGE ? value->data.range
                                                   : fallback;
}

static pmix_persistence_t persistence_of(const struct dt_pmix_question *self)
{
    const pmix_value_t *value =
        dt_pmix_info_find(self->info, self->ninfo, PMIX_PERSISTENCE);
    return value && value->type == PMIX_PERSIST ? value->data.persist
                                                : PMIX_PERSIST_SESSION;
}

/* In ms, 0 if the caller names none. */
static int64_t timeout_of(const struct dt_pmix_question *self)
{
    long seconds =
        dt_pmix_info_number(self->info, self->ninfo, PMIX_TIMEOUT, 0);
    return seconds <= 0                 ? 0
           : seconds > INT32_MAX / 1000 ? INT32_MAX / 1000 * 1000
                                        : seconds * 1000;
}

/* How many keys must be there; PMIX_WAIT 0 is all of them. */
static size_t wanted_of(const struct dt_pmix_question *self)
{
    size_t nkeys = count_keys(self->keys);
    long wait = dt_pmix_info_number(self->info, self->ninfo, PMIX_WAIT, -1);
    return wait < 0                          ? 0
           : wait == 0 || wait > (long)nkeys ? nkeys
                                             : (size_t)wait;
}

/* Attributes that are directives, among those to be published. */
static bool is_directive(const char *key)
{
    const char *const all[] = {PMIX_RANGE, PMIX_PERSISTENCE, PMIX_USERID,
                               PMIX_GRPID, PMIX_TIMEOUT};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (strncmp(key, all[i], PMIX_MAX_KEYLEN) == 0)
            return true;
    return !*key;
}

static pmix_status_t pack_value_blob(struct dt_frame *to,
                                     const pmix_value_t *value)
{
    struct dt_frame *blob = dt_frame_begin(DT_WIRE_ASK);
    pmix_status_t rc = dt_pack_value(blob, value);
    if (dt_frame_end(&blob, NULL) != DT_SUCCESS)
        return PMIX_ERR_NOMEM;
    struct dt_cursor body = dt_frame_body(blob);
    dt_frame_blob(to, body.at, (size_t)(body.end - body.at));
    dt_frame_unref(blob);
    return rc;
}

static pmix_status_t pack_items(struct dt_frame *to,
                                const struct dt_pmix_question *self)
{
    size_t count = 0;
    for (size_t i = 0; i < self->ninfo; i++)
        count += !is_directive(self->info[i].key);
    dt_frame_uint(to, 1, range_of(self, PMIX_RANGE_SESSION));
    dt_frame_uint(to, 1, persistence_of(self));
    dt_frame_uint(to, 4, count);
    pmix_status_t rc = PMIX_SUCCESS;
    for (size_t i = 0; i < self->ninfo && rc == PMIX_SUCCESS; i++) {
        const pmix_info_t *info = &self->info[i];
        if (is_directive(info->key))
            continue;
        dt_frame_blob(to, info->key, strnlen(info->key, PMIX_MAX_KEYLEN));
        rc = pack_value_blob(to, &info->value);
    }
    return rc;
}

static void pack_keys(struct dt_frame *to, const struct dt_pmix_question *self)
{
    size_t count = count_keys(self->keys);
    dt_frame_uint(to, 4, count);
    for (size_t i = 0; i < count; i++)
        dt_frame_blob(to, self->keys[i],
                      strnlen(self->keys[i], PMIX_MAX_KEYLEN));
}

static pmix_status_t pack_question(struct dt_pmix *pmix, struct dt_frame *to,
                                   const struct dt_pmix_question *self)
{
    size_t rank;
    if (!dt_pmix_job_rank(&pmix->job, &self->proc, &rank))
        return PMIX_ERR_NOT_SUPPORTED;
    dt_pack_proc(to, &self->proc);
    dt_frame_uint(to, 4, dt_mesh_rank(pmix->mesh, rank)->incarnation);
    if (self->what == DT_ASK_PUBLISH)
        return pack_items(to, self);
    dt_frame_uint(to, 1, range_of(self, PMIX_RANGE_UNDEF));
    if (self->what == DT_ASK_LOOKUP) {
        dt_frame_uint(to, 4, wanted_of(self));
        dt_frame_uint(to, 8, (uint64_t)timeout_of(self));
    }
    pack_keys(to, self);
    return PMIX_SUCCESS;
}

static void ask(struct dt_pmix *pmix, struct dt_pmix_question *self,
                const struct dt_frame *frame)
{
    struct dt_cursor body = dt_frame_body(frame);
    int64_t timeout = timeout_of(self);
    self->next = pmix->questions;
    self->link = &pmix->questions;
    if (self->next)
        self->next->link = &self->next;
    pmix->questions = self;
    /* the store times the lookups that wait */
    if (self->what == DT_ASK_LOOKUP && wanted_of(self) > 0)
        timeout = timeout ? timeout + ANSWER_MS : 0;
    else if (!timeout)
        timeout = ANSWER_MS;
    dt_mesh_ask(pmix->mesh, dt_mesh_root(pmix->mesh), self->what, body.at,
                (size_t)(body.end - body.at), timeout, answered, self);
}

static void run_ask(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct dt_pmix_question *self = (struct dt_pmix_question *)call;
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_ASK);
    self->status = pack_question(pmix, frame, self);
    if (dt_frame_end(&frame, NULL) != DT_SUCCESS)
        self->status = PMIX_ERR_OUT_OF_RESOURCE;
    if (self->status == PMIX_SUCCESS)
        ask(pmix, self, frame);
    else
        dt_pmix_in_library(reply, self);
    dt_frame_unref(frame);
}

/* --- what PMIx calls ----------------------------------------------------- */

static pmix_status_t post(struct dt_pmix_question question)
{
    struct dt_pmix_question *self = malloc(sizeof(*self));
    if (self) {
        *self = question;
        self->call.run = run_ask;
    }
    return dt_pmix_post(self ? &self->call : NULL);
}

static pmix_status_t publish(const pmix_proc_t *proc, const pmix_info_t info[],
                             size_t ninfo, pmix_op_cbfunc_t cbfunc,
                             void *cbdata)
{
    return post((struct dt_pmix_question){.what = DT_ASK_PUBLISH,
                                          .proc = *proc,
                                          .info = info,
                                          .ninfo = ninfo,
                                          .op_cbfunc = cbfunc,
                                          .cbdata = cbdata});
}

static pmix_status_t lookup(const pmix_proc_t *proc, char **keys,
                            const pmix_info_t info[], size_t ninfo,
                            pmix_lookup_cbfunc_t cbfunc, void *cbdata)
{
    return post((struct dt_pmix_question){.what = DT_ASK_LOOKUP,
                                          .proc = *proc,
                                          .keys = keys,
                                          .info = info,
                                          .ninfo = ninfo,
                                          .lookup_cbfunc = cbfunc,
                                          .cbdata = cbdata});
}

static pmix_status_t unpublish(const pmix_proc_t *proc, char **keys,
                               const pmix_info_t info[], size_t ninfo,
                               pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    return post((struct dt_pmix_question){.what = DT_ASK_UNPUBLISH,
                                          .proc = *proc,
                                          .keys = keys,
                                          .info = info,
                                          .ninfo = ninfo,
                                          .op_cbfunc = cbfunc,
                                          .cbdata = cbdata});
}

/* --- what the server calls ----------------------------------------------- */

static void fill(pmix_server_module_t *module)
{
    module->publish = publish;
    module->lookup = lookup;
    module->unpublish = unpublish;
}

static dt_result_t open_store(struct dt_pmix *pmix, struct dt_error *err)
{
    pmix->store = calloc(1, sizeof(*pmix->store));
    return pmix->store ? DT_SUCCESS
                       : dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
}

static void free_store(struct dt_pmix *pmix)
{
    while (pmix->questions) {
        struct dt_pmix_question *self = pmix->questions;
        pmix->questions = self->next;
        free(self);
    }
    if (pmix->store)
        dt_pmix_store_free(pmix->store);
    free(pmix->store);
}

static void asked(struct dt_pmix *pmix, size_t from_node, uint64_t ticket,
                  enum dt_pmix_ask what, const void *data, size_t len)
{
    dt_pmix_store_asked(pmix->store, pmix->mesh, from_node, ticket, what, data,
                        len);
}

static void rank_ended(struct dt_pmix *pmix, size_t rank,
                       const struct dt_mesh_rank *state)
{
    dt_pmix_store_forget(pmix->store, rank, state->incarnation);
}

static void expire(struct dt_pmix *pmix)
{
    dt_pmix_store_expire(pmix->store, pmix->mesh);
}

static int64_t due(const struct dt_pmix *pmix)
{
    return dt_pmix_store_due(pmix->store);
}

const struct dt_pmix_operation dt_pmix_op_publish = {.fill = fill,
                                                     .open = open_store,
                                                     .free = free_store,
                                                     .first = DT_ASK_PUBLISH,
                                                     .last = DT_ASK_UNPUBLISH,
                                                     .asked = asked,
                                                     .rank_ended = rank_ended,
                                                     .expire = expire,
                                                     .due = due};
