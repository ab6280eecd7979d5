/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* run.c - operations that all ranks have started.
 *
 * They are not fused, so that the bits of a result depend on its own shape
 * alone, and not on what else has become ready with it. */
#include "grad/run.h"

#include <stdlib.h>
#include <string.h>

#include "exec/exec.h"
#include "grad/adasum.h"
#include "grad/convert.h"
#include "grad/gpu/stage.h"
#include "grad/item.h"
#include "grad/plan/gradient.h"
#include "grad/timeline.h"
#include "grad/work.h"

#define UNDER_WAY 32 /* collectives at a time */

struct dt_run {
    struct dt_grad_set *set;
    struct dt_grad_work *work; /* NULL: this rank has joined, and adds zeros */
    int i;                     /* item of the work */
    struct dt_item_type type;
    int64_t *rows, *received; /* of all ranks; owned */
    unsigned char *buffer;    /* of its own, or NULL */
    dt_request_t request;
    bool taken, begun, done; /* its input; the collective; that has ended */
    double since;
    struct dt_run *next;
};

static void destroy(struct dt_run *run)
{
    free(run->rows);
    free(run->received);
    free(run->buffer);
    free(run);
}

static int64_t *copy(const int64_t *cells, int n)
{
    int64_t *new = malloc((size_t)n * sizeof(*new));
    if (new)
        memcpy(new, cells, (size_t)n * sizeof(*new));
    return new;
}

dt_result_t dt_runs_add(struct dt_grad_set *set, struct dt_entry *e,
                        struct dt_error *err)
{
    struct dt_grad *grad = set->grad;
    for (int i = 0; i < e->n; i++) {
        struct dt_run *run = calloc(1, sizeof(*run));
        size_t cell = (size_t)i * (size_t)set->n;
        if (!run)
            return dt_no_memory(err);
        *run = (struct dt_run){
            .set = set,
            .work = e->work,
            .i = i,
            .type = e->types[i],
            .rows = copy(e->rows + cell, set->n),
            .received = copy(e->received + cell, set->n),
        };
        if (!run->rows || !run->received) {
            destroy(run);
            return dt_no_memory(err);
        }
        *grad->runs_end = run;
        grad->runs_end = &run->next;
    }
    return DT_SUCCESS;
}

/* ---- each kind ---- */

static struct dt_item *item_of(const struct dt_run *run)
{
    return run->work ? &run->work->items[run->i] : NULL;
}

static bool get_buffer(struct dt_run *run, size_t bytes)
{
    run->buffer = run->work ? malloc(bytes + 1) : calloc(1, bytes + 1);
    return run->buffer != NULL;
}

static size_t divisor_of(const struct dt_run *run)
{
    return run->type.op == DT_OP_AVG ? (size_t)run->set->n : 1;
}

/* Does the collective itself do all of it, from and to the caller's memory? */
static bool is_plain(const struct dt_run *run)
{
    const struct dt_item_type *type = &run->type;
    return run->work && type->wire == type->dtype && type->prescale == 1.0 &&
           type->postscale == 1.0;
}

/* Of a gradient of a plan that does not stand: each rank gets all of it. */
static dt_result_t begin_quantized(struct dt_run *run)
{
    size_t bytes = dt_gradient_bytes(&run->type), n = (size_t)run->set->n;
    if (!get_buffer(run, n * bytes))
        return DT_ERR_NO_MEMORY;
    unsigned char *mine = run->buffer + (size_t)run->set->me * bytes;
    if (run->work)
        dt_gradient_pack(dt_gradient_of(run->work), mine);
    return dt_iallgather(mine, run->buffer, bytes, DT_DTYPE_U8, run->set->data,
                         DT_STREAM_NONE, &run->request);
}

static dt_result_t begin_allreduce(struct dt_run *run)
{
    const struct dt_item_type *type = &run->type;
    struct dt_item *item = item_of(run);
    size_t count = dt_item_count(type);
    dt_dtype_t dtype = (dt_dtype_t)type->dtype, wire = (dt_dtype_t)type->wire;
    if (is_plain(run))
        return dt_iallreduce(item->in, item->out, count, dtype,
                             (dt_op_t)type->op, run->set->data, DT_STREAM_NONE,
                             &run->request);
    bool plain = wire == dtype && type->prescale == 1.0 &&
                 type->postscale == 1.0; /* on those that have not joined */
    if (!get_buffer(run, count * dt_dtype_size(wire)))
        return DT_ERR_NO_MEMORY;
    if (item)
        dt_convert_in(run->buffer, wire, item->in, dtype, count,
                      type->prescale);
    return dt_iallreduce(run->buffer, run->buffer, count, wire,
                         plain ? (dt_op_t)type->op : dt_item_wire_op(type),
                         run->set->data, DT_STREAM_NONE, &run->request);
}

static dt_result_t begin_adasum(struct dt_run *run)
{
    size_t count = dt_item_count(&run->type);
    dt_dtype_t dtype = (dt_dtype_t)run->type.dtype;
    size_t bytes = count * dt_dtype_size(dtype), n = (size_t)run->set->n;
    if (!get_buffer(run, n * bytes))
        return DT_ERR_NO_MEMORY;
    unsigned char *mine = run->buffer + (size_t)run->set->me * bytes;
    dt_convert_in(mine, dtype, item_of(run)->in, dtype, count,
                  run->type.prescale);
    return dt_iallgather(mine, run->buffer, count, dtype, run->set->data,
                         DT_STREAM_NONE, &run->request);
}

static dt_result_t begin_broadcast(struct dt_run *run)
{
    struct dt_item *item = item_of(run);
    size_t bytes = dt_item_count(&run->type) * run->type.element;
    if (run->set->me == run->type.root && item->out != item->in)
        memcpy(item->out, item->in, bytes);
    return dt_ibcast(item->out, bytes, DT_DTYPE_U8, run->type.root,
                     run->set->data, DT_STREAM_NONE, &run->request);
}

/* counts[r] and displs[r] of rows[r] rows; the rows in all are returned. */
static int64_t lay_out(const int64_t *rows, int n, size_t row, size_t *counts,
                       size_t *displs)
{
    int64_t sum = 0;
    for (int r = 0; r < n; r++) {
        counts[r] = (size_t)rows[r] * row;
        displs[r] = (size_t)sum * row;
        sum += rows[r];
    }
    return sum;
}

static dt_result_t begin_allgather(struct dt_run *run)
{
    struct dt_item *item = item_of(run);
    int n = run->set->n;
    size_t row = dt_item_row(&run->type) * run->type.element;
    size_t *counts = calloc(2 * (size_t)n, sizeof(*counts));
    if (!counts)
        return DT_ERR_NO_MEMORY;
    item->rows = lay_out(run->rows, n, row, counts, counts + n);
    item->result = malloc((size_t)item->rows * row + 1);
    dt_result_t rc = DT_ERR_NO_MEMORY;
    if (item->result)
        rc = dt_iallgatherv(item->in, item->result, counts, counts + n,
                            DT_DTYPE_U8, run->set->data, DT_STREAM_NONE,
                            &run->request);
    free(counts);
    return rc;
}

static dt_result_t begin_alltoall(struct dt_run *run)
{
    struct dt_item *item = item_of(run);
    size_t n = (size_t)run->set->n;
    size_t row = dt_item_row(&run->type) * run->type.element;
    size_t *counts = calloc(4 * n, sizeof(*counts));
    if (!counts)
        return DT_ERR_NO_MEMORY;
    lay_out(item->splits, (int)n, row, counts, counts + n);
    item->rows =
        lay_out(run->received, (int)n, row, counts + 2 * n, counts + 3 * n);
    item->received = run->received;
    run->received = NULL;
    item->result = malloc((size_t)item->rows * row + 1);
    dt_result_t rc = DT_ERR_NO_MEMORY;
    if (item->result)
        rc = dt_ialltoallv(item->in, counts, counts + n, item->result,
                           counts + 2 * n, counts + 3 * n, DT_DTYPE_U8,
                           run->set->data, DT_STREAM_NONE, &run->request);
    free(counts);
    return rc;
}

static dt_result_t begin_reducescatter(struct dt_run *run)
{
    struct dt_item *item = item_of(run);
    const struct dt_item_type *type = &run->type;
    size_t n = (size_t)run->set->n, row = dt_item_row(type);
    dt_dtype_t dtype = (dt_dtype_t)type->dtype;
    size_t *counts = calloc(n, sizeof(*counts));
    const void *in = item->in;
    if (!counts)
        return DT_ERR_NO_MEMORY;
    for (size_t r = 0; r < n; r++)
        counts[r] = (size_t)dt_item_share(type->shape[0], (int)r, (int)n) * row;
    item->rows = dt_item_share(type->shape[0], run->set->me, (int)n);
    if (!is_plain(run) || item->out == in) {
        size_t count = dt_item_count(type);
        if (!get_buffer(run, count * type->element)) {
            free(counts);
            return DT_ERR_NO_MEMORY;
        }
        dt_convert_in(run->buffer, dtype, in, dtype, count, type->prescale);
        in = run->buffer;
    }
    dt_result_t rc = dt_ireduce_scatterv(
        in, item->out, counts, dtype,
        is_plain(run) ? (dt_op_t)type->op : dt_item_wire_op(type),
        run->set->data, DT_STREAM_NONE, &run->request);
    free(counts);
    return rc;
}

static dt_result_t begin(struct dt_run *run)
{
    run->since = dt_grad_now();
    run->begun = true;
    switch (run->type.kind) {
    case DT_GRAD_ALLREDUCE:
        if (dt_item_is_quantized(&run->type))
            return begin_quantized(run);
        return run->type.op == DT_GRAD_ADASUM ? begin_adasum(run)
                                              : begin_allreduce(run);
    case DT_GRAD_BROADCAST:
        return begin_broadcast(run);
    case DT_GRAD_ALLGATHER:
        return begin_allgather(run);
    case DT_GRAD_ALLTOALL:
        return begin_alltoall(run);
    case DT_GRAD_REDUCESCATTER:
        return begin_reducescatter(run);
    default: /* a barrier: all have come */
        return DT_SUCCESS;
    }
}

/* ---- completion ---- */

static dt_result_t end_allreduce(struct dt_run *run, struct dt_item *item)
{
    const struct dt_item_type *type = &run->type;
    size_t count = dt_item_count(type);
    dt_dtype_t dtype = (dt_dtype_t)type->dtype, wire = (dt_dtype_t)type->wire;
    if (dt_item_is_quantized(type)) {
        dt_gradient_unpack(dt_gradient_of(run->work), run->buffer);
        return DT_SUCCESS;
    }
    if (type->op == DT_GRAD_ADASUM) {
        if (!dt_adasum(item->out, run->buffer, run->set->n, count, dtype))
            return DT_ERR_NO_MEMORY;
        dt_convert_out(item->out, dtype, item->out, dtype, count,
                       type->postscale, 1);
        return DT_SUCCESS;
    }
    if (run->buffer)
        dt_convert_out(
            item->out, dtype, run->buffer, wire, count, type->postscale,
            dt_item_wire_op(type) == DT_OP_SUM ? divisor_of(run) : 1);
    return DT_SUCCESS;
}

static dt_result_t end(struct dt_run *run)
{
    struct dt_item *item = item_of(run);
    const struct dt_item_type *type = &run->type;
    if (item && type->kind == DT_GRAD_ALLREDUCE)
        return end_allreduce(run, item);
    if (item && type->kind == DT_GRAD_REDUCESCATTER && run->buffer)
        dt_convert_out(item->out, (dt_dtype_t)type->dtype, item->out,
                       (dt_dtype_t)type->dtype,
                       (size_t)item->rows * dt_item_row(type), type->postscale,
                       dt_item_wire_op(type) == DT_OP_SUM ? divisor_of(run)
                                                          : 1);
    return DT_SUCCESS;
}

static void count(struct dt_grad *grad, const struct dt_run *run)
{
    size_t elements =
        run->type.kind == DT_GRAD_BARRIER ? 0 : dt_item_count(&run->type);
    bool reduced = run->type.kind == DT_GRAD_ALLREDUCE;
    grad->stats.bytes += elements * run->type.element;
    if (dt_item_is_quantized(&run->type))
        grad->stats.wire_bytes += dt_gradient_bytes(&run->type);
    else
        grad->stats.wire_bytes +=
            elements * (reduced ? dt_dtype_size((dt_dtype_t)run->type.wire)
                                : run->type.element);
    grad->stats.collectives += run->type.kind != DT_GRAD_BARRIER;
    if (run->work && run->work->on_end)
        grad->stats.gradients++;
    else
        grad->stats.operations++;
}

/* This one is over: the work is, when it was the last of its items. */
static void retire(struct dt_grad *grad, struct dt_run **at)
{
    struct dt_run *run = *at;
    *at = run->next;
    if (grad->runs_end == &run->next)
        grad->runs_end = at;
    grad->nrunning--;
    count(grad, run);
    dt_stage_end(grad, item_of(run));
    dt_timeline_add(grad->timeline, run->work ? run->work->name : "joined",
                    dt_item_kind(run->type.kind), run->since, dt_grad_now());
    if (run->work && --run->work->left == 0)
        dt_work_end(run->work, DT_SUCCESS, NULL);
    destroy(run);
}

static dt_result_t test(struct dt_run *run, struct dt_error *err)
{
    dt_result_t rc = dt_test(&run->request);
    if (rc == DT_IN_PROGRESS)
        return rc;
    if (rc != DT_SUCCESS)
        return dt_grad_failed(rc, err);
    rc = end(run);
    return rc == DT_SUCCESS ? rc : dt_no_memory(err);
}

/* Begin to fetch its input, and begin when that is here and all before it have
 * begun. *held: one before it has not; set if this one has not either. */
static dt_result_t start(struct dt_run *run, bool *held, bool *moved,
                         struct dt_error *err)
{
    struct dt_grad *grad = run->set->grad;
    dt_result_t rc = DT_SUCCESS;
    if (!run->taken) {
        run->taken = true;
        run->since = dt_grad_now();
        grad->nrunning++;
        rc = dt_stage_fetch(grad, item_of(run), run->set, err);
        if (rc != DT_SUCCESS)
            return rc;
    }
    *held = *held || !dt_stage_has_arrived(item_of(run));
    if (*held)
        return DT_IN_PROGRESS;
    *moved = true;
    rc = begin(run);
    if (rc == DT_ERR_NO_MEMORY && !run->request)
        return dt_no_memory(err);
    return rc == DT_SUCCESS ? rc : dt_grad_failed(rc, err);
}

/* Is it over, with its output where it belongs? */
static dt_result_t complete(struct dt_run *run, bool *moved,
                            struct dt_error *err)
{
    struct dt_item *item = item_of(run);
    if (!run->done) {
        dt_result_t rc = test(run, err);
        if (rc == DT_SUCCESS)
            rc = dt_stage_return(run->set->grad, item, run->set, err);
        if (rc != DT_SUCCESS)
            return rc;
        run->done = true;
        *moved = true;
    }
    return dt_stage_has_arrived(item) ? DT_SUCCESS : DT_IN_PROGRESS;
}

dt_result_t dt_runs_progress(struct dt_grad *grad, bool *moved,
                             struct dt_error *err)
{
    struct dt_run **at = &grad->runs;
    bool held = false;
    while (*at) {
        struct dt_run *run = *at;
        dt_result_t rc = DT_SUCCESS;
        if (!run->taken && grad->nrunning >= UNDER_WAY)
            break;
        if (!run->begun)
            rc = start(run, &held, moved, err);
        if (rc == DT_SUCCESS)
            rc = complete(run, moved, err);
        if (rc == DT_IN_PROGRESS) {
            at = &run->next;
            continue;
        }
        if (rc != DT_SUCCESS)
            return rc;
        retire(grad, at);
    }
    return DT_SUCCESS;
}

const char *dt_runs_late(struct dt_grad *grad, double before)
{
    for (struct dt_run *run = grad->runs; run; run = run->next)
        if (run->taken && run->since < before)
            return run->work ? run->work->name : "an allreduce of others";
    return NULL;
}

void dt_runs_fail(struct dt_grad *grad, dt_result_t code,
                  const struct dt_error *err)
{
    while (grad->runs) {
        struct dt_run *run = grad->runs;
        grad->runs = run->next;
        dt_test(&run->request);
        dt_stage_end(grad, item_of(run));
        if (run->work && --run->work->left == 0)
            dt_work_end(run->work, code, err);
        destroy(run);
    }
    grad->runs_end = &grad->runs;
    grad->nrunning = 0;
}
