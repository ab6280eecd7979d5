/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gpu_bucket.h - a bucket of gradients on a GPU: it is in the memory of that
 * GPU, kernels pack and unpack it, and the ranks reduce it there. The flag of
 * bucket.h is copied to the host, as whether the result is used is decided by
 * the host as for all buckets.
 *
 * Errors: those of gpu/gpu.h and of the collectives. With the drive lock. */
#ifndef DT_GRAD_PLAN_GPU_BUCKET_H
#define DT_GRAD_PLAN_GPU_BUCKET_H

#include "grad/state.h"

/* Can a plan of these gradients be made? Not if those of a rank that are on
 * GPUs are on several, as then buckets would differ between the ranks, nor if
 * any of them goes as I8, nor where there are no kernels. Collective over the
 * plan's set where any is on a GPU, and blocks. */
dt_result_t dt_gpu_bucket_try(struct dt_grad_plan *plan,
                              struct dt_gradient **gradients, int n,
                              bool *possible, struct dt_error *err);

/* Make the memory of a bucket, whose gradients are known, of so many bytes with
 * the flag; free it. */
dt_result_t dt_gpu_bucket_make(struct dt_bucket *bucket, size_t bytes,
                               struct dt_error *err);
void dt_gpu_bucket_free(struct dt_grad *grad, struct dt_bucket *bucket);

/* Pack and reduce; if not `follow`, zeros with the flag. one: the flag. */
dt_result_t dt_gpu_bucket_launch(struct dt_grad_plan *plan,
                                 struct dt_bucket *bucket, bool follow,
                                 const void *one, struct dt_error *err);

/* IN_PROGRESS until what was put on the streams last is complete. */
dt_result_t dt_gpu_bucket_test(struct dt_grad_plan *plan,
                               const struct dt_bucket *bucket,
                               struct dt_error *err);

/* The flag that has arrived, in memory of the host. */
const void *dt_gpu_bucket_flag(const struct dt_bucket *bucket);

/* Put the unpacking on a stream. */
dt_result_t dt_gpu_bucket_unpack(struct dt_grad_plan *plan,
                                 struct dt_bucket *bucket,
                                 struct dt_error *err);

#endif
