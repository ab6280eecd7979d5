/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* work.c - one call on GPU memory, from its begin until nobody asks for it.
 *
 *   under way --over, held--> ended --released--> freed
 *             --over, not held------------------> freed
 */
#include <stdlib.h>
#include <string.h>

#include "gpu/coll/comm.h"

void dt_gpu_works_init(struct dt_gpu_works *works)
{
    works->first = NULL;
    works->last = &works->first;
}

void dt_gpu_works_add(struct dt_gpu_works *works, struct dt_gpu_work *work)
{
    work->next = NULL;
    *works->last = work;
    works->last = &work->next;
}

void dt_gpu_works_take(struct dt_gpu_works *works, struct dt_gpu_work *work)
{
    struct dt_gpu_work **at = &works->first;
    while (*at != work)
        at = &(*at)->next;
    *at = work->next;
    if (works->last == &work->next)
        works->last = at;
}

/* Copies of counts and displs (NULL: one behind the other). */
static bool copy_counts(struct dt_gpu_side *side, size_t n,
                        const size_t *counts, const size_t *displs)
{
    side->counts = calloc(n, sizeof(*counts));
    side->displs = calloc(n, sizeof(*displs));
    if (!side->counts || !side->displs)
        return false;
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        side->counts[i] = counts[i];
        side->displs[i] = displs ? displs[i] : at;
        at += counts[i];
    }
    return true;
}

/* What each side has: one row, or one for each rank. */
static bool measure(struct dt_gpu_work *work)
{
    const struct dt_shape *shape = &work->base.shape;
    const struct dt_comm *comm = work->base.comm;
    const size_t n = comm->size, mine = comm->rank, one = 1, none = 0;
    bool root = shape->root == mine;
    work->out.rows = work->in.rows = 1;
    work->out.pitch = work->in.pitch =
        shape->count * dt_dtype_size(shape->dtype);
    switch (shape->coll) {
    case DT_COLL_ALLREDUCE:
        break;
    case DT_COLL_REDUCE:
        work->in.rows = root;
        break;
    case DT_COLL_BCAST:
        work->out.rows = root;
        work->in.rows = !root;
        break;
    case DT_COLL_ALLGATHER:
        work->in.rows = n;
        if (shape->sendcounts)
            return copy_counts(&work->out, one, &shape->sendcounts[mine],
                               &none) &&
                   copy_counts(&work->in, n, shape->sendcounts,
                               shape->recvdispls);
        break;
    case DT_COLL_REDUCE_SCATTER:
        work->out.rows = n;
        if (shape->recvcounts)
            return copy_counts(&work->out, n, shape->recvcounts, NULL) &&
                   copy_counts(&work->in, one, &shape->recvcounts[mine], &none);
        break;
    case DT_COLL_ALLTOALL:
        work->out.rows = work->in.rows = n;
        if (shape->sendcounts)
            return copy_counts(&work->out, n, shape->sendcounts,
                               shape->senddispls) &&
                   copy_counts(&work->in, n, shape->recvcounts,
                               shape->recvdispls);
        break;
    case DT_COLL_GATHER:
        work->in.rows = root ? n : 0;
        break;
    case DT_COLL_SCATTER:
        work->out.rows = root ? n : 0;
        break;
    case DT_COLL_SEND:
        work->in.rows = 0;
        break;
    case DT_COLL_RECV:
        work->out.rows = 0;
        break;
    }
    return true;
}

dt_result_t dt_gpu_work_create(const struct dt_call *call,
                               struct dt_gpu_work **out, struct dt_error *err)
{
    struct dt_gpu_work *work = calloc(1, sizeof(*work));
    if (!work)
        goto no_memory;
    work->base.comm = call->comm;
    work->base.shape = call->shape;
    work->base.on_device = true;
    work->base.status = DT_IN_PROGRESS;
    work->held = true;
    work->stream = call->stream;
    work->out.buf = (char *)call->sendbuf; /* only read from */
    work->in.buf = call->recvbuf;
    if (!measure(work))
        goto free_work;
    if (work->out.counts) {
        work->scratch = calloc(2 * call->comm->size, sizeof(*work->scratch));
        if (!work->scratch)
            goto free_work;
    }
    if (call->kind == DT_CALL_BARRIER)
        work->out.rows = work->in.rows = 0;
    *out = work;
    return DT_SUCCESS;

free_work:
    dt_gpu_work_free(work);
no_memory:
    return dt_error_set(err, DT_ERR_NO_MEMORY,
                        "no memory for a collective of %zu elements",
                        call->shape.count);
}

void dt_gpu_work_free(struct dt_gpu_work *work)
{
    if (!work)
        return;
    free(work->out.counts);
    free(work->out.displs);
    free(work->in.counts);
    free(work->in.displs);
    free(work->scratch);
    free(work);
}

void dt_gpu_work_retire(struct dt_gpu_works *works, struct dt_gpu_work *work,
                        dt_result_t status)
{
    dt_gpu_works_take(works, work);
    work->base.status = status;
    if (work->held)
        dt_gpu_works_add(&dt_gpu_comm_of(work->base.comm)->ended, work);
    else
        dt_gpu_work_free(work);
}

void dt_gpu_work_release(struct dt_gpu_work *work)
{
    work->held = false;
    if (work->base.status == DT_IN_PROGRESS)
        return;
    dt_gpu_works_take(&dt_gpu_comm_of(work->base.comm)->ended, work);
    dt_gpu_work_free(work);
}
