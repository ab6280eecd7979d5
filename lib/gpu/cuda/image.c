/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* image.c - the fatbin that nvcc has made, as bytes; or none. */
#include "gpu/cuda/image.h"

#ifdef DT_CUDA_FATBIN
/* the size as a difference: of two addresses in one section, it is known when
 * this is assembled */
__asm__(".pushsection .rodata\n"
        ".balign 64\n"
        ".hidden dt_cuda_image, dt_cuda_image_size\n"
        ".globl dt_cuda_image, dt_cuda_image_size\n"
        "dt_cuda_image:\n"
        ".incbin \"" DT_CUDA_FATBIN "\"\n"
        "1:\n"
        ".balign 8\n"
        "dt_cuda_image_size:\n"
        ".quad 1b - dt_cuda_image\n"
        ".popsection\n");
#else
const unsigned char dt_cuda_image[1] = {0};
const size_t dt_cuda_image_size = 0;
#endif
