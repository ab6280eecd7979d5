/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* abort.c - PMIx_Abort. */
#include "abort.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "bytes.h"
#include "core.h"

/* What nodes are told: DT_TELL_ABORT u8 | rank u32 | code u32 | text */
#define HEAD     9
#define TEXT_MAX 4096

struct abort_call {
    struct dt_pmix_call call;
    pmix_proc_t proc;
    int status;
    pmix_op_cbfunc_t cbfunc;
    void *cbdata;
    size_t len;
    unsigned char news[HEAD + TEXT_MAX];
};

static void run_abort(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct abort_call *self = (struct abort_call *)call;
    struct dt_error err;
    size_t rank;
    if (dt_pmix_job_rank(&pmix->job, &self->proc, &rank)) {
        self->news[0] = DT_TELL_ABORT;
        dt_bytes_put(self->news + 1, 4, rank);
        dt_bytes_put(self->news + 5, 4, (uint32_t)self->status);
        /* what cannot be told to all is told here at least */
        if (dt_mesh_tell(pmix->mesh, self->news, self->len, &err) != DT_SUCCESS)
            dt_pmix_abort_told(pmix, self->news, self->len);
    }
    self->cbfunc(PMIX_SUCCESS, self->cbdata);
    free(self);
}

pmix_status_t dt_pmix_abort(const pmix_proc_t *proc, void *object, int status,
                            const char msg[], pmix_proc_t procs[],
                            size_t nprocs, pmix_op_cbfunc_t cbfunc,
                            void *cbdata)
{
    /* to abort some ranks only is for the host to refuse: here it is all */
    (void)object, (void)procs, (void)nprocs;
    size_t len = msg ? strcspn(msg, "\n") : 0;
    struct abort_call *self = malloc(sizeof(*self));
    if (self) {
        len = len < TEXT_MAX ? len : TEXT_MAX;
        *self = (struct abort_call){
            {NULL, run_abort}, *proc, status, cbfunc, cbdata, HEAD + len, {0}};
        if (len)
            memcpy(self->news + HEAD, msg, len);
    }
    return dt_pmix_post(self ? &self->call : NULL);
}

void dt_pmix_abort_told(struct dt_pmix *pmix, const void *data, size_t len)
{
    struct dt_cursor news = dt_cursor(data, len);
    char text[TEXT_MAX + 1];
    dt_cursor_uint(&news, 1);
    size_t rank = dt_cursor_uint(&news, 4);
    int code = (int)(uint32_t)dt_cursor_uint(&news, 4);
    size_t left = (size_t)(news.end - news.at);
    if (news.failed || left > TEXT_MAX || rank >= pmix->job.size)
        return;
    memcpy(text, news.at, left);
    text[left] = '\0';
    pmix->launcher.abort(pmix->launcher.arg, rank, code, text);
}
