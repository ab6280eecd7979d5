/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* abort.c - PMIx_Abort. */
#include "operations/abort.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "operations/operations.h"
#include "server/server_state.h"

/* The message: DT_BROADCAST_ABORT u8 | rank u32 | code u32 | text */
#define HEAD     9
#define TEXT_MAX 4096

struct abort_call {
    struct dt_pmix_call call;
    pmix_proc_t proc;
    int status;
    pmix_op_cbfunc_t cbfunc;
    void *cbdata;
    size_t len;
    unsigned char message[HEAD + TEXT_MAX];
};

/* data is what follows DT_BROADCAST_ABORT. */
static void received(struct dt_pmix *pmix, size_t from_node, const void *data,
                     size_t len)
{
    struct dt_cursor message = dt_cursor(data, len);
    char text[TEXT_MAX + 1];
    size_t rank = dt_cursor_uint(&message, 4);
    int code = (int)(uint32_t)dt_cursor_uint(&message, 4);
    size_t left = (size_t)(message.end - message.at);
    (void)from_node;
    if (message.failed || left > TEXT_MAX || rank >= pmix->job.size)
        return;
    memcpy(text, message.at, left);
    text[left] = '\0';
    pmix->launcher.abort(pmix->launcher.arg, rank, code, text);
}

static void run_abort(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct abort_call *self = (struct abort_call *)call;
    struct dt_error err;
    size_t rank;
    if (dt_pmix_job_rank(&pmix->job, &self->proc, &rank)) {
        self->message[0] = DT_BROADCAST_ABORT;
        dt_wire_put(self->message + 1, 4, rank);
        dt_wire_put(self->message + 5, 4, (uint32_t)self->status);
        /* if the other nodes cannot be reached, this one ends at least */
        if (dt_mesh_broadcast(pmix->mesh, self->message, self->len, &err) !=
            DT_SUCCESS)
            received(pmix, pmix->job.self, self->message + 1, self->len - 1);
    }
    self->cbfunc(PMIX_SUCCESS, self->cbdata);
    free(self);
}

pmix_status_t dt_pmix_abort(const pmix_proc_t *proc, void *object, int status,
                            const char msg[], pmix_proc_t procs[],
                            size_t nprocs, pmix_op_cbfunc_t cbfunc,
                            void *cbdata)
{
    /* PMIx lets the host choose what to abort: here it is the job */
    (void)object, (void)procs, (void)nprocs;
    size_t len = msg ? strcspn(msg, "\n") : 0;
    struct abort_call *self = malloc(sizeof(*self));
    if (self) {
        len = len < TEXT_MAX ? len : TEXT_MAX;
        *self = (struct abort_call){
            {NULL, run_abort}, *proc, status, cbfunc, cbdata, HEAD + len, {0}};
        if (len)
            memcpy(self->message + HEAD, msg, len);
    }
    return dt_pmix_post(self ? &self->call : NULL);
}

static void fill(pmix_server_module_t *module)
{
    module->abort = dt_pmix_abort;
}

const struct dt_pmix_operation dt_pmix_op_abort = {
    .fill = fill, .kind = DT_BROADCAST_ABORT, .received = received};
