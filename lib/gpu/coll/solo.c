/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* solo.c - the collectives of a rank that is alone: a copy on the GPU. */
#include "gpu/coll/comm.h"

static dt_result_t put_copy(const struct dt_gpu_comm *gpu,
                            const struct dt_gpu_work *work, dt_stream_t stream,
                            struct dt_error *err)
{
    const struct dt_shape *shape = &work->base.shape;
    const struct dt_gpu_side *out = &work->out, *in = &work->in;
    const size_t elem = dt_dtype_size(shape->dtype);
    const double factor = shape->prescale * shape->postscale;
    const size_t count = in->counts ? in->counts[0] : shape->count;
    const struct dt_gpu_copy copy = {
        .dst = in->buf + (in->displs ? in->displs[0] * elem : 0),
        .src = out->buf + (out->displs ? out->displs[0] * elem : 0),
        .len = count * elem,
        .rows = 1};
    if (!in->rows || !out->rows || !count)
        return DT_SUCCESS;
    if (factor != 1)
        return gpu->gpu->ops->scale(gpu->gpu, gpu->device, copy.dst, copy.src,
                                    count, shape->dtype, factor, stream, err);
    return copy.dst == copy.src
               ? DT_SUCCESS
               : gpu->gpu->ops->copy(gpu->gpu, gpu->device, &copy, stream, err);
}

dt_result_t dt_gpu_solo(struct dt_gpu_comm *gpu, struct dt_gpu_work *work,
                        const struct dt_call *call, struct dt_error *err)
{
    const struct dt_gpu_ops *ops = gpu->gpu->ops;
    struct dt_gpu_lane *lane;
    if (call->capturing) { /* nobody can ask for it: there is no request */
        dt_result_t rc = put_copy(gpu, work, work->stream, err);
        if (rc == DT_SUCCESS)
            dt_gpu_skip(work);
        return rc;
    }
    dt_result_t rc = dt_gpu_lane(gpu, work->base.shape.coll, 0, &lane, err);
    if (rc == DT_SUCCESS)
        rc = ops->order(gpu->gpu, gpu->device, work->stream, lane->in, err);
    if (rc == DT_SUCCESS)
        rc = dt_gpu_append(lane, work, 1, err);
    if (rc == DT_SUCCESS)
        rc = put_copy(gpu, work, lane->in, err);
    if (rc == DT_SUCCESS)
        rc = ops->signal(gpu->gpu, gpu->device, lane->free, work->first,
                         lane->in, err);
    return rc;
}
