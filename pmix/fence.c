/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fence.c - PMIx_Fence. */
#include "fence.h"

#include <stdlib.h>

#include "exchange.h"

struct fence {
    struct dt_pmix_exchange exchange;
    pmix_modex_cbfunc_t cbfunc;
    void *cbdata;
};

static void fence_done(struct dt_pmix *pmix, struct dt_pmix_exchange *exchange,
                       pmix_status_t status)
{
    struct fence *self = (struct fence *)exchange;
    (void)pmix;
    self->cbfunc(status, exchange->data, exchange->len, self->cbdata, free,
                 exchange->data);
    free(self);
}

pmix_status_t dt_pmix_fence(const pmix_proc_t procs[], size_t nprocs,
                            const pmix_info_t info[], size_t ninfo, char *data,
                            size_t len, pmix_modex_cbfunc_t cbfunc,
                            void *cbdata)
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
                            .data = data, /* ours by PMIx's rules */
                            .len = len,
                            .done = fence_done},
                           cbfunc,
                           cbdata};
    return dt_pmix_exchange_start(&self->exchange);
}
