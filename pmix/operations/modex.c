/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* modex.c - PMIx_Get of what a rank of another node has put (direct modex): the
 * rank's node is asked, which waits until the rank has put something. PMIx
 * calls this for a rank of this node only while the rank is not registered:
 * then it is not found, at once. */
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "operations/operations.h"
#include "server/client.h"
#include "server/info.h"
#include "server/library.h"
#include "server/server_state.h"

/* --- requests of ranks of this node -------------------------------------- */

struct dt_pmix_get {
    struct dt_pmix_call call;
    struct dt_pmix_get *next, **link;
    pmix_proc_t proc;
    int64_t timeout; /* ms, 0: none */
    pmix_modex_cbfunc_t cbfunc;
    void *cbdata;
};

static void reply(struct dt_pmix_get *self, pmix_status_t status,
                  const void *data, size_t len)
{
    char *copy = NULL;
    if (status == PMIX_SUCCESS && len) {
        copy = malloc(len);
        if (copy)
            memcpy(copy, data, len);
        else
            status = PMIX_ERR_NOMEM;
    }
    self->cbfunc(status, copy, copy ? len : 0, self->cbdata, free, copy);
    free(self);
}

static void answered(void *arg, dt_result_t rc, int32_t status,
                     const void *data, size_t len)
{
    struct dt_pmix_get *self = arg;
    *self->link = self->next;
    if (self->next)
        self->next->link = self->link;
    if (rc == DT_ERR_PROC_FAILED)
        status = PMIX_ERR_NOT_FOUND;
    else if (rc == DT_ERR_TIMED_OUT)
        status = PMIX_ERR_TIMEOUT;
    else if (rc != DT_SUCCESS)
        status = PMIX_ERR_NOMEM;
    /* without data PMIx would use what it got before */
    else if (status == PMIX_SUCCESS && !len)
        status = PMIX_ERR_NOT_FOUND;
    reply(self, status, data, len);
}

static void run_get(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct dt_pmix_get *self = (struct dt_pmix_get *)call;
    unsigned char question[4];
    size_t rank;
    if (!dt_pmix_job_rank(&pmix->job, &self->proc, &rank) ||
        dt_pmix_job_local(&pmix->job, &self->proc, &rank)) {
        reply(self, PMIX_ERR_NOT_FOUND, NULL, 0);
        return;
    }
    dt_wire_put(question, 4, rank);
    self->next = pmix->gets;
    self->link = &pmix->gets;
    if (self->next)
        self->next->link = &self->next;
    pmix->gets = self;
    dt_mesh_ask(pmix->mesh, pmix->job.map->node_of[rank], DT_ASK_MODEX,
                question, sizeof(question), self->timeout, answered, self);
}

static pmix_status_t modex(const pmix_proc_t *proc, const pmix_info_t info[],
                           size_t ninfo, pmix_modex_cbfunc_t cbfunc,
                           void *cbdata)
{
    long seconds = dt_pmix_info_number(info, ninfo, PMIX_TIMEOUT, 0);
    struct dt_pmix_get *self = malloc(sizeof(*self));
    if (self)
        *self = (struct dt_pmix_get){
            .call = {NULL, run_get},
            .proc = *proc,
            .timeout = seconds > 0 ? (int64_t)seconds * 1000 : 0,
            .cbfunc = cbfunc,
            .cbdata = cbdata};
    return dt_pmix_post(self ? &self->call : NULL);
}

/* --- requests of other nodes --------------------------------------------- */

/* PMIx calls back when the rank, or its replacement, has put something, which
 * may be never. So the answer may be sent before that, and is kept until then.
 */
struct dt_pmix_modex_answer {
    struct dt_pmix_modex_answer *next;
    uint64_t ticket;
    size_t rank;
    bool sent;
};

/* PMIx's answer, on its way to the server's thread. */
struct found_call {
    struct dt_pmix_call call;
    struct dt_pmix_modex_answer *answer;
    pmix_status_t status;
    size_t len;
    char data[];
};

static void run_found(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct found_call *self = (struct found_call *)call;
    struct dt_pmix_modex_answer **link = &pmix->answers;
    while (*link != self->answer)
        link = &(*link)->next;
    *link = self->answer->next;
    if (!self->answer->sent)
        dt_mesh_answer(pmix->mesh, self->answer->ticket, self->status,
                       self->data, self->len);
    free(self->answer);
    free(self);
}

static void found(pmix_status_t status, char *data, size_t len, void *arg)
{
    struct found_call *self = malloc(sizeof(*self) + len);
    if (!self)
        return; /* that rank waits for ever */
    *self = (struct found_call){{NULL, run_found}, arg, status, len};
    if (len)
        memcpy(self->data, data, len);
    dt_pmix_post(&self->call);
}

/* --- what a rank that has ended had put ---------------------------------- */

struct keep_call {
    struct dt_pmix_call call;
    pmix_proc_t proc;
    char *data;
    size_t len;
};

static void run_keep(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct keep_call *self = (struct keep_call *)call;
    size_t rank;
    if (dt_pmix_job_local(&pmix->job, &self->proc, &rank)) {
        struct dt_pmix_client *client = &pmix->clients[rank];
        free(client->kept);
        client->kept = self->data;
        client->kept_len = self->len;
    } else {
        free(self->data);
    }
    free(self);
}

/* PMIx calls back at once, or when a replacement puts something. */
static void keep(pmix_status_t status, char *data, size_t len, void *arg)
{
    struct keep_call *self = arg;
    if (status == PMIX_SUCCESS && len)
        self->data = malloc(len);
    if (!self->data) {
        free(self);
        return;
    }
    memcpy(self->data, data, len);
    self->len = len;
    dt_pmix_post(&self->call);
}

void dt_pmix_modex_keep(const pmix_proc_t *proc)
{
    struct keep_call *self = malloc(sizeof(*self));
    if (!self)
        return; /* as if the rank had put nothing */
    *self = (struct keep_call){.call = {NULL, run_keep}, .proc = *proc};
    if (PMIx_server_dmodex_request(proc, keep, self) != PMIX_SUCCESS)
        free(self);
}

/* Runs when PMIx has answered what it can answer now. */
struct late_call {
    struct dt_pmix_call call;
    size_t rank;
};

static void run_late(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct late_call *self = (struct late_call *)call;
    struct dt_pmix_modex_answer *answer = pmix->answers;
    const struct dt_pmix_client *client = &pmix->clients[self->rank];
    const struct dt_mesh_rank *state = dt_mesh_rank(pmix->mesh, self->rank);
    for (; answer && state->ended; answer = answer->next) {
        if (answer->rank != self->rank || answer->sent)
            continue;
        answer->sent = true;
        dt_mesh_answer(pmix->mesh, answer->ticket,
                       client->kept ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND,
                       client->kept, client->kept_len);
    }
    free(self);
}

static void post_late(pmix_status_t status, void *arg)
{
    (void)status;
    dt_pmix_post(arg);
}

/* End the requests that wait for data of a rank of this node that PMIx does not
 * have, or not any more. */
static void forget(struct dt_pmix *pmix, size_t rank)
{
    struct late_call *self = NULL;
    if (pmix->answers)
        self = malloc(sizeof(*self));
    if (!self)
        return;
    *self = (struct late_call){{NULL, run_late}, rank};
    dt_pmix_in_library(post_late, self);
}

static void rank_ended(struct dt_pmix *pmix, size_t rank,
                       const struct dt_mesh_rank *state)
{
    (void)state;
    if (pmix->job.map->node_of[rank] == pmix->job.self)
        forget(pmix, rank);
}

static void asked(struct dt_pmix *pmix, size_t from_node, uint64_t ticket,
                  enum dt_pmix_ask what, const void *data, size_t len)
{
    struct dt_cursor question = dt_cursor(data, len);
    size_t rank = dt_cursor_uint(&question, 4);
    struct dt_pmix_modex_answer *self = NULL;
    pmix_proc_t proc;
    (void)from_node, (void)what;
    PMIX_LOAD_PROCID(&proc, pmix->job.nspace, (pmix_rank_t)rank);
    if (!question.failed && dt_pmix_job_local(&pmix->job, &proc, &rank))
        self = malloc(sizeof(*self));
    if (!self) {
        dt_mesh_answer(pmix->mesh, ticket, PMIX_ERR_NOT_FOUND, NULL, 0);
        return;
    }
    *self = (struct dt_pmix_modex_answer){pmix->answers, ticket, rank, false};
    pmix->answers = self;
    pmix_status_t rc = PMIx_server_dmodex_request(&proc, found, self);
    if (rc != PMIX_SUCCESS) {
        pmix->answers = self->next;
        free(self);
        dt_mesh_answer(pmix->mesh, ticket, rc, NULL, 0);
    } else if (dt_mesh_rank(pmix->mesh, rank)->ended) {
        forget(pmix, rank);
    }
}

static void free_requests(struct dt_pmix *pmix)
{
    while (pmix->gets) {
        struct dt_pmix_get *get = pmix->gets;
        pmix->gets = get->next;
        free(get);
    }
    while (pmix->answers) {
        struct dt_pmix_modex_answer *answer = pmix->answers;
        pmix->answers = answer->next;
        free(answer);
    }
}

static void fill(pmix_server_module_t *module)
{
    module->direct_modex = modex;
}

const struct dt_pmix_operation dt_pmix_op_modex = {.fill = fill,
                                                   .free = free_requests,
                                                   .first = DT_ASK_MODEX,
                                                   .last = DT_ASK_MODEX,
                                                   .asked = asked,
                                                   .rank_ended = rank_ended};
