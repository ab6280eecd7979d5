/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* old.c - a driver that lacks most functions, and a module for GPUs of another
 * version. */
#include "gpu/gpu.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuInit(unsigned flags);
EXPORT int cuDriverGetVersion(int *version);
EXPORT extern const size_t dt_gpu_cuda[2];

int cuInit(unsigned flags)
{
    return (int)flags;
}

int cuDriverGetVersion(int *version)
{
    *version = 99000;
    return 0;
}

const size_t dt_gpu_cuda[2] = {sizeof(struct dt_gpu_ops) - sizeof(void *), 0};
