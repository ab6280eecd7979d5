/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* operation.c - dt_grad_start and what becomes of it, and joining. */
#include <stdlib.h>
#include <string.h>

#include "base/api.h"
#include "grad/gpu/gpus.h"
#include "grad/item.h"
#include "grad/progress.h"
#include "grad/set.h"
#include "grad/work.h"

#define LONGEST_NAME 1000

/* ---- the public calls ---- */

static dt_result_t check_name(const char *name, struct dt_error *err)
{
    size_t len = name ? strlen(name) : 1;
    if (len > 0 && len <= LONGEST_NAME)
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_INVALID_ARG,
                        "a name of %zu bytes: 1 to %d are possible", len,
                        LONGEST_NAME);
}

static dt_result_t fill(struct dt_grad_work *work, const struct dt_grad_op *ops,
                        int n, dt_stream_t stream, struct dt_error *err)
{
    work->items = calloc((size_t)n, sizeof(*work->items));
    if (!work->items)
        return dt_no_memory(err);
    for (int i = 0; i < n; i++) {
        if (ops[i].set != ops[0].set)
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "operations of sets %d and %d in one call: "
                                "they are of one set",
                                ops[0].set, ops[i].set);
        dt_result_t rc =
            dt_item_init(&work->items[i], &ops[i], work->set->n, err);
        if (rc != DT_SUCCESS)
            return rc;
        work->n = i + 1;
        rc = dt_item_check_buffers(&work->items[i], work->set->me, err);
        if (rc == DT_SUCCESS && ops[i].kind != DT_GRAD_BARRIER)
            rc = dt_gpus_place(work->grad, &work->items[i], work->set, stream,
                               err);
        if (rc != DT_SUCCESS)
            return rc;
    }
    work->left = n;
    return DT_SUCCESS;
}

static dt_result_t start(struct dt_grad *grad, const char *name,
                         const struct dt_grad_op *ops, int n,
                         dt_stream_t stream, struct dt_grad_work **out,
                         struct dt_error *err)
{
    struct dt_grad_set *set;
    dt_result_t rc = dt_grad_usable(grad, err);
    if (rc == DT_SUCCESS && (!ops || n < 1 || n > UINT16_MAX || !out))
        rc = dt_error_set(err, DT_ERR_INVALID_ARG,
                          "dt_grad_start: %d operations: 1 to %d are possible",
                          n, UINT16_MAX);
    if (rc == DT_SUCCESS)
        rc = check_name(name, err);
    if (rc == DT_SUCCESS)
        rc = dt_set_mine(grad, ops[0].set, &set, err);
    if (rc != DT_SUCCESS)
        return rc;
    struct dt_grad_work *work;
    rc = dt_work_create(set, DT_WORK_OPERATIONS, name ? name : DT_WORK_NUMBERED,
                        &work, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = fill(work, ops, n, stream, err);
    if (rc == DT_SUCCESS)
        rc = dt_work_enter(work, name == NULL, err);
    if (rc != DT_SUCCESS) {
        dt_work_destroy(work);
        return rc;
    }
    *out = work;
    return DT_SUCCESS;
}

dt_result_t dt_grad_start_on(dt_grad_t grad, const char *name,
                             const dt_grad_op_t *ops, int n, dt_stream_t stream,
                             dt_grad_work_t *work)
{
    struct dt_error err = {""};
    return dt_api_return(start(grad, name, ops, n, stream, work, &err), &err);
}

dt_result_t dt_grad_start(dt_grad_t grad, const char *name,
                          const dt_grad_op_t *ops, int n, dt_grad_work_t *work)
{
    return dt_grad_start_on(grad, name, ops, n, DT_STREAM_NONE, work);
}

dt_result_t dt_grad_test(dt_grad_work_t work)
{
    struct dt_error err = {""};
    if (!work)
        return dt_api_return(
            dt_error_set(&err, DT_ERR_INVALID_ARG, "dt_grad_test: no work"),
            &err);
    dt_result_t rc = dt_grad_not_forked(work->grad, &err);
    if (rc == DT_SUCCESS)
        rc = dt_work_result(work, &err);
    return rc < 0 ? dt_api_return(rc, &err) : rc;
}

dt_result_t dt_grad_wait(dt_grad_work_t work, double seconds)
{
    struct dt_error err;
    if (work && atomic_load(&work->status) == DT_IN_PROGRESS &&
        dt_grad_not_forked(work->grad, &err) == DT_SUCCESS)
        dt_grad_progress_await(work->grad, dt_work_is_over, work, seconds);
    return dt_grad_test(work);
}

static dt_result_t check_output(struct dt_grad_work *work, int i,
                                struct dt_error *err)
{
    if (!work || i < 0 || i >= work->n)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "there is no operation %d in this work", i);
    dt_result_t rc = dt_work_result(work, err);
    if (rc == DT_IN_PROGRESS)
        rc = dt_error_set(err, DT_ERR_INVALID_ARG,
                          "'%.200s' is not complete: wait for it first",
                          work->name);
    return rc;
}

dt_result_t dt_grad_output(dt_grad_work_t work, int i, int *ndim,
                           int64_t *shape, int64_t *received)
{
    struct dt_error err = {""};
    dt_result_t rc = check_output(work, i, &err);
    if (rc != DT_SUCCESS)
        return dt_api_return(rc, &err);
    const struct dt_item *item = &work->items[i];
    const struct dt_item_type *type = &item->type;
    if (ndim)
        *ndim = type->ndim;
    for (int d = 0; shape && d < type->ndim; d++)
        shape[d] = type->shape[d];
    if (shape && type->ndim && type->kind != DT_GRAD_ALLREDUCE &&
        type->kind != DT_GRAD_BROADCAST)
        shape[0] = item->rows;
    if (received && item->received)
        memcpy(received, item->received,
               (size_t)work->set->n * sizeof(*received));
    return dt_api_return(DT_SUCCESS, &err);
}

dt_result_t dt_grad_take(dt_grad_work_t work, int i, void *out)
{
    return dt_grad_take_on(work, i, out, DT_STREAM_NONE);
}

dt_result_t dt_grad_take_on(dt_grad_work_t work, int i, void *out,
                            dt_stream_t stream)
{
    struct dt_error err = {""};
    dt_result_t rc = check_output(work, i, &err);
    if (rc != DT_SUCCESS)
        return dt_api_return(rc, &err);
    struct dt_item *item = &work->items[i];
    size_t bytes =
        (size_t)item->rows * dt_item_row(&item->type) * item->type.element;
    if (!item->result && (item->type.kind != DT_GRAD_ALLGATHER &&
                          item->type.kind != DT_GRAD_ALLTOALL))
        return dt_api_return(
            dt_error_set(&err, DT_ERR_INVALID_ARG,
                         "dt_grad_take: %s has written to its out",
                         dt_item_kind(item->type.kind)),
            &err);
    if (!item->result && bytes > 0)
        return dt_api_return(dt_error_set(&err, DT_ERR_INVALID_ARG,
                                          "dt_grad_take: it was taken already"),
                             &err);
    if (bytes > 0 && !out)
        return dt_api_return(
            dt_error_set(&err, DT_ERR_INVALID_ARG, "dt_grad_take: out is NULL"),
            &err);
    if (bytes > 0)
        rc = dt_gpus_take(work->grad, out, item->result, bytes, stream, &err);
    if (rc != DT_SUCCESS)
        return dt_api_return(rc, &err);
    free(item->result);
    item->result = NULL;
    return dt_api_return(DT_SUCCESS, &err);
}

void dt_grad_free(dt_grad_work_t work)
{
    struct dt_error err;
    if (!work || dt_grad_not_forked(work->grad, &err) != DT_SUCCESS)
        return;
    dt_work_release(work);
}

/* ---- joining ---- */

static dt_result_t begin_join(struct dt_grad *grad, struct dt_error *err)
{
    struct dt_grad_work *work;
    dt_result_t rc =
        dt_work_create(grad->sets, DT_WORK_JOIN, "join", &work, err);
    if (rc != DT_SUCCESS)
        return rc;
    pthread_mutex_lock(&grad->submit);
    grad->join = work;
    for (struct dt_grad_plan *p = grad->plans; p; p = p->next)
        if (p->set == grad->sets)
            atomic_store(&p->leave, true);
    dt_work_tell(work);
    pthread_mutex_unlock(&grad->submit);
    return DT_SUCCESS;
}

dt_result_t dt_grad_join(dt_grad_t grad, double seconds, int *last)
{
    struct dt_error err = {""};
    dt_result_t rc = dt_grad_usable(grad, &err);
    if (rc == DT_SUCCESS && !grad->join)
        rc = begin_join(grad, &err);
    if (rc != DT_SUCCESS)
        return dt_api_return(rc, &err);
    struct dt_grad_work *work = grad->join;
    dt_grad_progress_await(grad, dt_work_is_over, work, seconds);
    rc = dt_work_result(work, &err);
    if (rc == DT_IN_PROGRESS)
        return rc;
    if (rc == DT_SUCCESS && last)
        *last = work->number;
    grad->join = NULL;
    dt_work_destroy(work);
    return dt_api_return(rc, &err);
}
