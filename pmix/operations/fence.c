/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fence.c - PMIx_Fence, with and without data. */
#include <stdlib.h>

#include "operations/collective.h"
#include "operations/operations.h"
#include "server/server_state.h"

struct fence {
    struct dt_pmix_collective collective;
    pmix_modex_cbfunc_t cbfunc;
    void *cbdata;
};

static void fence_done(struct dt_pmix *pmix,
                       struct dt_pmix_collective *collective,
                       pmix_status_t status)
{
    struct fence *self = (struct fence *)collective;
    (void)pmix;
    self->cbfunc(status, collective->data, collective->len, self->cbdata, free,
                 collective->data);
    free(self);
}

/* PMIx completes a fence of ranks of one node alone; it never gets here unless
 * one of them was lost. */
static pmix_status_t fence(const pmix_proc_t procs[], size_t nprocs,
                           const pmix_info_t info[], size_t ninfo, char *data,
                           size_t len, pmix_modex_cbfunc_t cbfunc, void *cbdata)
{
    struct fence *self = malloc(sizeof(*self));
    if (!self) {
        free(data);
        return PMIX_ERR_NOMEM;
    }
    *self = (struct fence){{.what = DT_COLLECT_FENCE,
                            .procs = procs,
                            .nprocs = nprocs,
                            .info = info,
                            .ninfo = ninfo,
                            .data = data, /* PMIx transfers ownership */
                            .len = len,
                            .done = fence_done},
                           cbfunc,
                           cbdata};
    return dt_pmix_collective_start(&self->collective);
}

static void fill(pmix_server_module_t *module)
{
    module->fence_nb = fence;
}

const struct dt_pmix_operation dt_pmix_op_fence = {
    .fill = fill, .free = dt_pmix_collectives_free};
