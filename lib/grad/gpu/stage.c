/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* stage.c - tensors of a GPU, for the operations of the host. */
#include "grad/gpu/stage.h"

#include <stdlib.h>

#include "grad/gpu/gpus.h"
#include "grad/item.h"

#define ALIGNED(bytes) (((bytes) + 63) / 64 * 64)

struct dt_stage {
    struct dt_pinned *pinned;
    const void *in; /* the caller's */
    void *out;
};

static dt_result_t begin(struct dt_grad *grad, struct dt_item *item,
                         const struct dt_grad_set *set, struct dt_error *err)
{
    const size_t in = dt_item_in_bytes(item, set);
    const size_t out = dt_item_out_bytes(item, set);
    struct dt_stage *stage = item->stage;
    const bool apart = item->out && item->out != item->in;
    const size_t bytes = apart ? ALIGNED(in) + out : in > out ? in : out;
    dt_result_t rc =
        dt_pinned_get(grad, item->device, bytes, &stage->pinned, err);
    if (rc != DT_SUCCESS)
        return rc;
    unsigned char *data = stage->pinned->data;
    stage->in = item->in;
    stage->out = item->out;
    item->in = data;
    if (item->out)
        item->out = apart ? data + ALIGNED(in) : data;
    dt_stream_t stream;
    rc = dt_gpus_stream(grad, item->device, DT_GPUS_FETCH, NULL, &stream, err);
    if (rc == DT_SUCCESS)
        rc = dt_gpus_follow(grad, item, stream, err);
    if (rc == DT_SUCCESS && in > 0)
        rc = dt_gpus_copy(grad, item->device, data, stage->in, in, stream, err);
    if (rc == DT_SUCCESS)
        rc = dt_pinned_signal(grad, stage->pinned, stream, err);
    return rc;
}

dt_result_t dt_stage_fetch(struct dt_grad *grad, struct dt_item *item,
                           const struct dt_grad_set *set, struct dt_error *err)
{
    if (!item || item->device < 0)
        return DT_SUCCESS;
    item->stage = calloc(1, sizeof(*item->stage));
    if (!item->stage)
        return dt_no_memory(err);
    return begin(grad, item, set, err);
}

bool dt_stage_has_arrived(const struct dt_item *item)
{
    return !item || !item->stage || dt_pinned_is_signalled(item->stage->pinned);
}

dt_result_t dt_stage_return(struct dt_grad *grad, struct dt_item *item,
                            const struct dt_grad_set *set, struct dt_error *err)
{
    struct dt_stage *stage = item ? item->stage : NULL;
    const size_t out = stage ? dt_item_out_bytes(item, set) : 0;
    if (out == 0)
        return DT_SUCCESS;
    dt_stream_t stream;
    dt_result_t rc =
        dt_gpus_stream(grad, item->device, DT_GPUS_RETURN, NULL, &stream, err);
    if (rc == DT_SUCCESS)
        rc = dt_gpus_copy(grad, item->device, stage->out, item->out, out,
                          stream, err);
    if (rc == DT_SUCCESS)
        rc = dt_pinned_signal(grad, stage->pinned, stream, err);
    return rc;
}

void dt_stage_end(struct dt_grad *grad, struct dt_item *item)
{
    struct dt_stage *stage = item ? item->stage : NULL;
    if (!stage)
        return;
    if (stage->pinned) {
        item->in = stage->in;
        item->out = stage->out;
    }
    dt_pinned_put(grad, stage->pinned);
    free(stage);
    item->stage = NULL;
}
