/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* grad.c - the gradient engine: opened and closed. */
#include "grad/state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/api.h"
#include "coll/engine/engine.h"
#include "grad/gpu/gpus.h"
#include "grad/pass.h"
#include "grad/plan/plan.h"
#include "grad/progress.h"
#include "grad/set.h"
#include "grad/stall.h"
#include "grad/timeline.h"
#include "grad/work.h"

#define BUCKET       (4 << 20)
#define FIRST_BUCKET (256 << 10)
#define STALL        60

/* ---- opening ---- */

static void set_options(struct dt_grad_options *mine,
                        const struct dt_grad_options *given)
{
    memset(mine, 0, sizeof(*mine));
    if (given)
        *mine = *given;
    if (mine->bucket_bytes == 0)
        mine->bucket_bytes = BUCKET;
    if (mine->first_bucket_bytes == 0)
        mine->first_bucket_bytes = FIRST_BUCKET;
    if (mine->stall_seconds == 0)
        mine->stall_seconds = STALL;
}

/* All ranks have the same options, or none opens. */
static dt_result_t compare(const struct dt_grad *grad, struct dt_error *err)
{
    const struct dt_grad_options *o = &grad->options;
    double mine[8] = {
        (double)o->bucket_bytes,
        (double)o->first_bucket_bytes,
        o->stall_seconds,
        o->stall_fatal,
    };
    double least[8], most[8];
    for (int i = 0; i < 4; i++)
        mine[4 + i] = -mine[i];
    dt_result_t rc = dt_allreduce(mine, most, 8, DT_DTYPE_F64, DT_OP_MAX,
                                  grad->world, DT_STREAM_NONE);
    if (rc != DT_SUCCESS)
        return dt_grad_failed(rc, err);
    for (int i = 0; i < 4; i++) {
        least[i] = -most[4 + i];
        if (least[i] != most[i])
            return dt_error_set(err, DT_ERR_MISMATCH,
                                "dt_grad_open: the ranks' options differ: %g "
                                "on one rank, %g on another",
                                least[i], most[i]);
    }
    return DT_SUCCESS;
}

static dt_result_t init_locks(struct dt_grad *grad, struct dt_error *err)
{
    pthread_condattr_t attr;
    if (pthread_condattr_init(&attr) != 0)
        return dt_error_set(err, DT_ERR_SYSTEM, "no condition variable");
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&grad->drive, NULL);
    pthread_mutex_init(&grad->submit, NULL);
    pthread_cond_init(&grad->wake, &attr);
    pthread_condattr_destroy(&attr);
    return DT_SUCCESS;
}

static void destroy(struct dt_grad *grad)
{
    dt_gpus_close(grad);
    pthread_cond_destroy(&grad->wake);
    pthread_mutex_destroy(&grad->drive);
    pthread_mutex_destroy(&grad->submit);
    free(grad);
}

static dt_result_t connect(struct dt_grad *grad, struct dt_error *err)
{
    dt_result_t rc = dt_comm_split(dt_comm_world(), 0, dt_rank(), &grad->world);
    if (rc != DT_SUCCESS)
        return dt_grad_failed(rc, err);
    const struct dt_world *world = grad->world->world;
    grad->timeout = (double)world->timeout;
    grad->spins = world->spins;
    rc = compare(grad, err);
    if (rc == DT_SUCCESS)
        rc = dt_set_open_world(grad, err);
    if (rc == DT_SUCCESS)
        rc = dt_stall_open(grad, err);
    if (rc == DT_SUCCESS)
        rc = dt_gpus_open(grad, err);
    return rc;
}

/* Close what there is; with the other ranks, unless a failure is known. */
static dt_result_t disconnect(struct dt_grad *grad, bool together)
{
    dt_result_t rc = dt_plans_free(grad, NULL, together);
    dt_stall_close(grad, together);
    while (grad->sets) {
        struct dt_grad_set *set = grad->sets;
        grad->sets = set->next;
        dt_result_t rc2 = dt_set_free(set, together);
        if (rc == DT_SUCCESS)
            rc = rc2;
    }
    if (together && grad->world) {
        dt_result_t rc2 = dt_comm_destroy(grad->world);
        if (rc == DT_SUCCESS)
            rc = rc2;
    }
    return rc;
}

dt_result_t dt_grad_open(const dt_grad_options_t *options, dt_grad_t *out)
{
    struct dt_error err = {""};
    if (!dt_comm_world() || !out)
        return dt_api_return(
            dt_error_set(&err,
                         out ? DT_ERR_NOT_INITIALIZED : DT_ERR_INVALID_ARG,
                         "dt_grad_open: dt_init comes first"),
            &err);
    struct dt_grad *grad = calloc(1, sizeof(*grad));
    if (!grad)
        return dt_api_return(dt_no_memory(&err), &err);
    set_options(&grad->options, options);
    grad->pid = getpid();
    grad->runs_end = &grad->runs;
    grad->pass = dt_pass;
    grad->busy = dt_pass_is_busy;
    dt_result_t rc = init_locks(grad, &err);
    if (rc != DT_SUCCESS) {
        free(grad);
        return dt_api_return(rc, &err);
    }
    rc = connect(grad, &err);
    if (rc == DT_SUCCESS)
        rc = dt_grad_progress_begin(grad, &err);
    if (rc != DT_SUCCESS) {
        disconnect(grad, rc == DT_ERR_MISMATCH);
        destroy(grad);
        return dt_api_return(rc, &err);
    }
    atomic_fetch_add(&grad->world->world->grads, 1);
    *out = grad;
    return dt_api_return(DT_SUCCESS, &err);
}

/* ---- closing ---- */

/* Tell all sets of this rank that it closes, then wait until all ranks do. */
static dt_result_t leave(struct dt_grad *grad, struct dt_error *err)
{
    struct dt_grad_work *first = NULL, **last = &first, *work;
    dt_result_t rc = DT_SUCCESS;
    for (struct dt_grad_set *set = grad->sets; set; set = set->next) {
        if (set->me < 0)
            continue;
        rc = dt_work_create(set, DT_WORK_CLOSE, "closing", &work, err);
        if (rc != DT_SUCCESS)
            return rc;
        *last = work;
        last = &work->chain;
    }
    pthread_mutex_lock(&grad->submit);
    rc = atomic_load(&grad->failure); /* that ends nothing which comes later */
    for (work = first; rc == DT_SUCCESS && work; work = work->chain)
        dt_work_tell(work);
    if (rc != DT_SUCCESS)
        *err = grad->failure_text;
    pthread_mutex_unlock(&grad->submit);
    const bool told = rc == DT_SUCCESS;
    while (first) {
        work = first;
        first = work->chain;
        if (told)
            dt_grad_progress_await(grad, dt_work_is_over, work, -1);
        if (rc == DT_SUCCESS)
            rc = dt_work_result(work, err);
        dt_work_destroy(work);
    }
    return rc;
}

dt_result_t dt_grad_close(dt_grad_t grad)
{
    struct dt_error err = {""};
    if (!grad)
        return DT_SUCCESS;
    dt_result_t rc = dt_grad_usable(grad, &err);
    if (rc == DT_ERR_INVALID_ARG)
        return dt_api_return(rc, &err); /* forked */
    if (rc == DT_SUCCESS) {
        dt_plans_stop(grad);
        rc = leave(grad, &err);
    }
    dt_grad_progress_end(grad);
    bool together = atomic_load(&grad->failure) == DT_SUCCESS;
    struct dt_error lost;
    atomic_fetch_sub(&grad->world->world->grads, 1);
    dt_timeline_close(grad->timeline, &lost);
    dt_result_t rc2 = disconnect(grad, together);
    if (rc == DT_SUCCESS && rc2 != DT_SUCCESS)
        rc = dt_grad_failed(rc2, &err);
    dt_work_destroy_all(grad);
    destroy(grad);
    return dt_api_return(rc, &err);
}

/* ---- what it did ---- */

dt_result_t dt_grad_stats(dt_grad_t grad, dt_grad_stats_t *stats)
{
    struct dt_error err = {""};
    dt_result_t rc = dt_grad_usable(grad, &err);
    if (rc != DT_SUCCESS)
        return dt_api_return(rc, &err);
    pthread_mutex_lock(&grad->drive);
    pthread_mutex_lock(&grad->submit);
    *stats = grad->stats;
    pthread_mutex_unlock(&grad->submit);
    pthread_mutex_unlock(&grad->drive);
    return dt_api_return(DT_SUCCESS, &err);
}
