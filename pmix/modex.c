/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* modex.c - PMIx_Get of what a rank that is not on this node has put. */
#include "modex.h"

#include <stdlib.h>

#include "queue.h"

struct modex {
    struct dt_pmix_call call;
    pmix_modex_cbfunc_t cbfunc;
    void *cbdata;
};

static void run_modex(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct modex *self = (struct modex *)call;
    (void)pmix;
    self->cbfunc(PMIX_ERR_NOT_FOUND, NULL, 0, self->cbdata, NULL, NULL);
    free(self);
}

pmix_status_t dt_pmix_modex(const pmix_proc_t *proc, const pmix_info_t info[],
                            size_t ninfo, pmix_modex_cbfunc_t cbfunc,
                            void *cbdata)
{
    (void)proc, (void)info, (void)ninfo;
    struct modex *self = malloc(sizeof(*self));
    if (self)
        *self = (struct modex){{NULL, run_modex}, cbfunc, cbdata};
    return dt_pmix_post(self ? &self->call : NULL);
}
