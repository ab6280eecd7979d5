/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* kernels.cu - the kernels of the device image. */
#include "gpu/cuda/exchange.h"

#define X(name, args)                                                          \
    extern "C" __global__ void __launch_bounds__(DT_CUDA_THREADS)              \
        name(const __grid_constant__ struct args a)                            \
    {                                                                          \
        const struct dt_block block = {blockIdx.x, gridDim.x, blockDim.x};     \
        run_##name(&a, block);                                                 \
    }
DT_CUDA_KERNELS
