/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* kernels.c - the sources of the device's kernels, compiled for the host. */
#include "kernels.h"

#include "gpu/cuda/exchange.h"

#define X(name, args)                                                          \
    static void on_host_##name(const void *a, unsigned block, unsigned grid,   \
                               unsigned threads)                               \
    {                                                                          \
        run_##name((const struct args *)a,                                     \
                   (struct dt_block){block, grid, threads});                   \
    }
DT_CUDA_KERNELS
#undef X

const struct dt_mock_kernel *dt_mock_kernel(const char *name)
{
    static const struct dt_mock_kernel all[] = {
#define X(name, args) {#name, sizeof(struct args), on_host_##name},
        DT_CUDA_KERNELS
#undef X
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (!strcmp(all[i].name, name))
            return &all[i];
    return NULL;
}
