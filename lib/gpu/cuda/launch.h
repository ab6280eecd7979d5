/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* launch.h - the functions of struct dt_gpu_ops (gpu.h) that launch kernels.
 * All check their arguments as far as that is possible without the driver. */
#ifndef DT_GPU_CUDA_LAUNCH_H
#define DT_GPU_CUDA_LAUNCH_H

#include "gpu/gpu.h"

dt_result_t dt_cuda_fold(struct dt_gpu *gpu, int device, void *dst,
                         const void *const *in, size_t n, size_t count,
                         dt_dtype_t dtype, dt_op_t op, double scale,
                         dt_stream_t stream, struct dt_error *err);
dt_result_t dt_cuda_cast(struct dt_gpu *gpu, int device, void *dst,
                         dt_dtype_t to, const void *src, dt_dtype_t from,
                         size_t count, double factor, dt_stream_t stream,
                         struct dt_error *err);
dt_result_t dt_cuda_pack(struct dt_gpu *gpu, int device, void *dst,
                         dt_dtype_t to, const struct dt_gpu_tensor *tensors,
                         size_t n, dt_dtype_t from, double factor,
                         dt_stream_t stream, struct dt_error *err);
dt_result_t dt_cuda_unpack(struct dt_gpu *gpu, int device,
                           const struct dt_gpu_tensor *tensors, size_t n,
                           dt_dtype_t to, const void *src, dt_dtype_t from,
                           double factor, dt_stream_t stream,
                           struct dt_error *err);
dt_result_t dt_cuda_exchange(struct dt_gpu *gpu, int device,
                             const struct dt_gpu_exchange *exchange,
                             dt_stream_t stream, struct dt_error *err);

#endif
