/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* image.h - the kernels as the driver loads them: a fatbin with machine code
 * for several GPUs, and PTX for later ones. */
#ifndef DT_GPU_CUDA_IMAGE_H
#define DT_GPU_CUDA_IMAGE_H

#include <stddef.h>

/* Empty (size 0) where this was built without nvcc. */
extern const unsigned char dt_cuda_image[];
extern const size_t dt_cuda_image_size;

#endif
