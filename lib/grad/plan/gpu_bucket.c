/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gpu_bucket.c - a bucket in the memory of a GPU. */
#include "grad/plan/gpu_bucket.h"

#include <stdlib.h>
#include <string.h>

#include "coll/engine/engine.h"
#include "exec/exec.h"
#include "grad/gpu/gpus.h"
#include "grad/item.h"

#define FLAG 8 /* bytes in pinned memory: what arrives, then what is sent */

/* ---- before a plan is made ---- */

/* Where the gradients on GPUs are: -1 if there are none. False: they cannot go
 * by a plan. */
static bool find_device(struct dt_gradient **gradients, int n, int *device)
{
    bool one = true;
    *device = -1;
    for (int i = 0; i < n; i++) {
        const struct dt_item *item = &gradients[i]->item;
        if (item->device < 0)
            continue;
        one = one && !dt_item_is_quantized(&item->type) &&
              (*device < 0 || item->device == *device);
        *device = item->device;
    }
    return one;
}

/* The stream of the plan's collectives. */
static dt_result_t stream_of(struct dt_grad_plan *plan, int device,
                             dt_stream_t *stream, struct dt_error *err)
{
    return dt_gpus_stream(plan->grad, device, DT_GPUS_REDUCE, plan, stream,
                          err);
}

/* Are there kernels? */
static dt_result_t probe(struct dt_grad *grad, int device, void *data,
                         dt_stream_t stream, bool *possible,
                         struct dt_error *err)
{
    const struct dt_gpu_part zero = {.dst = data,
                                     .count = 1,
                                     .to = DT_DTYPE_F32,
                                     .from = DT_DTYPE_F32,
                                     .before = 1.0,
                                     .after = 1.0};
    dt_result_t rc = dt_gpus_convert(grad, device, &zero, 1, stream, err);
    if (rc != DT_ERR_UNSUPPORTED)
        return rc;
    *possible = false;
    return DT_SUCCESS;
}

/* If all ranks can, make the first allreduce of the communicator on a GPU,
 * which blocks until all ranks do: later the ranks' programs might wait for
 * each other meanwhile. */
static dt_result_t connect(struct dt_grad_plan *plan, void *data,
                           dt_stream_t stream, bool *possible,
                           struct dt_error *err)
{
    int32_t refused = !*possible;
    dt_result_t rc = dt_allreduce(&refused, &refused, 1, DT_DTYPE_I32,
                                  DT_OP_MAX, plan->comm, DT_STREAM_NONE);
    *possible = refused == 0;
    if (rc == DT_SUCCESS && *possible)
        rc = dt_allreduce(data, data, 1, DT_DTYPE_F32, DT_OP_SUM, plan->comm,
                          stream);
    return rc == DT_SUCCESS ? rc : dt_grad_failed(rc, err);
}

dt_result_t dt_gpu_bucket_try(struct dt_grad_plan *plan,
                              struct dt_gradient **gradients, int n,
                              bool *possible, struct dt_error *err)
{
    void *data = NULL;
    dt_stream_t stream;
    int device;
    *possible = find_device(gradients, n, &device);
    if (device < 0)
        return DT_SUCCESS;
    dt_result_t rc = stream_of(plan, device, &stream, err);
    if (rc == DT_SUCCESS)
        rc = dt_gpus_alloc(plan->grad, device, sizeof(float), &data, err);
    if (rc == DT_SUCCESS && *possible)
        rc = probe(plan->grad, device, data, stream, possible, err);
    if (rc == DT_SUCCESS)
        rc = connect(plan, data, stream, possible, err);
    dt_gpus_free(plan->grad, data);
    return rc;
}

/* ---- making and freeing ---- */

dt_result_t dt_gpu_bucket_make(struct dt_bucket *bucket, size_t bytes,
                               struct dt_error *err)
{
    struct dt_grad *grad = bucket->gradients[0]->plan->grad;
    void *data;
    bucket->parts = calloc((size_t)bucket->n + 1, sizeof(*bucket->parts));
    if (!bucket->parts)
        return dt_no_memory(err);
    dt_result_t rc =
        dt_pinned_get(grad, bucket->device, 2 * FLAG, &bucket->pinned, err);
    if (rc == DT_SUCCESS)
        rc = dt_gpus_alloc(grad, bucket->device, bytes, &data, err);
    if (rc == DT_SUCCESS)
        bucket->data = data;
    return rc;
}

void dt_gpu_bucket_free(struct dt_grad *grad, struct dt_bucket *bucket)
{
    dt_gpus_free(grad, bucket->data);
    dt_pinned_put(grad, bucket->pinned);
    free(bucket->parts);
}

/* ---- sending ---- */

/* Elements of the bucket, `at` bytes from its start, without a cast. */
static struct dt_gpu_part plain(const struct dt_bucket *bucket, size_t at,
                                size_t count, const void *src)
{
    return (struct dt_gpu_part){
        .dst = bucket->data + at,
        .src = src,
        .count = count,
        .to = (dt_dtype_t)bucket->wire,
        .from = (dt_dtype_t)bucket->wire,
        .before = 1.0,
        .after = 1.0,
    };
}

static struct dt_gpu_part part_in(const struct dt_bucket *bucket,
                                  const struct dt_gradient *g)
{
    struct dt_gpu_part part = plain(bucket, g->offset, g->count, g->item.in);
    part.from = (dt_dtype_t)g->item.type.dtype;
    part.before = g->item.type.prescale;
    return part;
}

static dt_result_t pack(struct dt_grad_plan *plan, struct dt_bucket *bucket,
                        bool follow, const void *one, dt_stream_t stream,
                        struct dt_error *err)
{
    const size_t end =
        bucket->elements * dt_dtype_size((dt_dtype_t)bucket->wire);
    size_t n = 0;
    dt_result_t rc = DT_SUCCESS;
    for (int i = 0; follow && rc == DT_SUCCESS && i < bucket->n; i++) {
        struct dt_gradient *g = bucket->gradients[i];
        rc = dt_gpus_follow(plan->grad, &g->item, stream, err);
        bucket->parts[n++] = part_in(bucket, g);
    }
    if (!follow) {
        memcpy(bucket->pinned->data + FLAG, one, FLAG);
        bucket->parts[n++] = plain(bucket, 0, bucket->elements, NULL);
    }
    bucket->parts[n++] =
        plain(bucket, end, 1, follow ? NULL : bucket->pinned->data + FLAG);
    if (rc == DT_SUCCESS)
        rc = dt_gpus_convert(plan->grad, bucket->device, bucket->parts, n,
                             stream, err);
    return rc;
}

dt_result_t dt_gpu_bucket_launch(struct dt_grad_plan *plan,
                                 struct dt_bucket *bucket, bool follow,
                                 const void *one, struct dt_error *err)
{
    const dt_dtype_t wire = (dt_dtype_t)bucket->wire;
    const size_t size = dt_dtype_size(wire);
    dt_stream_t stream;
    dt_result_t rc = stream_of(plan, bucket->device, &stream, err);
    if (rc == DT_SUCCESS)
        rc = pack(plan, bucket, follow, one, stream, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = dt_allreduce(bucket->data, bucket->data, bucket->elements + 1, wire,
                      (dt_op_t)bucket->op, plan->comm, stream);
    if (rc != DT_SUCCESS)
        return dt_grad_failed(rc, err);
    rc =
        dt_gpus_copy(plan->grad, bucket->device, bucket->pinned->data,
                     bucket->data + bucket->elements * size, size, stream, err);
    if (rc == DT_SUCCESS)
        rc = dt_pinned_signal(plan->grad, bucket->pinned, stream, err);
    return rc;
}

/* ---- arriving ---- */

/* After a failure the streams wait for no other rank, and what they signal then
 * is no result: so look at the signal first, and at the failure after. */
dt_result_t dt_gpu_bucket_test(struct dt_grad_plan *plan,
                               const struct dt_bucket *bucket,
                               struct dt_error *err)
{
    const struct dt_world *world = plan->grad->world->world;
    const bool there = dt_pinned_is_signalled(bucket->pinned);
    if (world->failure != DT_SUCCESS)
        return dt_error_set(err, world->failure, "%s",
                            world->failure_text.text);
    return there ? DT_SUCCESS : DT_IN_PROGRESS;
}

const void *dt_gpu_bucket_flag(const struct dt_bucket *bucket)
{
    return bucket->pinned->data;
}

/* As dt_convert_out, for which integers are scaled and divided at once. */
static struct dt_gpu_part part_out(const struct dt_grad_plan *plan,
                                   const struct dt_bucket *bucket,
                                   const struct dt_gradient *g)
{
    const struct dt_item_type *type = &g->item.type;
    const bool divide = type->op == DT_OP_AVG && bucket->op == DT_OP_SUM;
    struct dt_gpu_part part = {
        .dst = g->item.out,
        .src = bucket->data + g->offset,
        .count = g->count,
        .to = (dt_dtype_t)type->dtype,
        .from = (dt_dtype_t)bucket->wire,
        .before = 1.0,
        .after = type->postscale,
        .divisor = divide ? (uint32_t)plan->set->n : 1,
    };
    if (!dt_exec_is_float(part.to) && part.after != 1.0) {
        part.after /= part.divisor;
        part.divisor = 1;
    }
    return part;
}

dt_result_t dt_gpu_bucket_unpack(struct dt_grad_plan *plan,
                                 struct dt_bucket *bucket, struct dt_error *err)
{
    dt_stream_t stream;
    for (int i = 0; i < bucket->n; i++)
        bucket->parts[i] = part_out(plan, bucket, bucket->gradients[i]);
    dt_result_t rc = dt_gpus_stream(plan->grad, bucket->device, DT_GPUS_RETURN,
                                    NULL, &stream, err);
    if (rc == DT_SUCCESS)
        rc = dt_gpus_convert(plan->grad, bucket->device, bucket->parts,
                             (size_t)bucket->n, stream, err);
    if (rc == DT_SUCCESS)
        rc = dt_pinned_signal(plan->grad, bucket->pinned, stream, err);
    return rc;
}
