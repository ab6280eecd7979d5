/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* work.c - what this rank has started, and the names that are under way. */
#include "grad/work.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grad/gpu/gpus.h"
#include "grad/item.h"
#include "grad/progress.h"

/* ---- its life ---- */

dt_result_t dt_work_create(struct dt_grad_set *set, enum dt_work_kind kind,
                           const char *name, struct dt_grad_work **out,
                           struct dt_error *err)
{
    struct dt_grad_work *work = calloc(1, sizeof(*work));
    char *copy = strdup(name);
    if (!work || !copy) {
        free(work);
        free(copy);
        return dt_no_memory(err);
    }
    work->grad = set->grad;
    work->set = set;
    work->kind = kind;
    work->name = copy;
    work->status = DT_IN_PROGRESS;
    *out = work;
    return DT_SUCCESS;
}

void dt_work_destroy(struct dt_grad_work *work)
{
    if (!work)
        return;
    for (int i = 0; i < work->n; i++) {
        dt_gpus_unmark(work->grad, &work->items[i]);
        dt_item_fini(&work->items[i]);
    }
    free(work->items);
    free(work->name);
    free(work);
}

/* Take it out of the list of all. With the submit lock. */
static void forget(struct dt_grad_work *work)
{
    struct dt_grad *grad = work->grad;
    if (work->newer)
        work->newer->older = work->older;
    else if (grad->newest == work)
        grad->newest = work->older;
    if (work->older)
        work->older->newer = work->newer;
    work->newer = work->older = NULL;
}

void dt_work_release(struct dt_grad_work *work)
{
    pthread_mutex_lock(&work->grad->submit);
    bool over = atomic_load(&work->status) != DT_IN_PROGRESS;
    work->forgotten = true;
    if (over)
        forget(work);
    pthread_mutex_unlock(&work->grad->submit);
    if (over)
        dt_work_destroy(work);
}

void dt_work_destroy_all(struct dt_grad *grad)
{
    while (grad->newest) {
        struct dt_grad_work *work = grad->newest;
        grad->newest = work->older;
        dt_work_destroy(work);
    }
}

void dt_work_tell(struct dt_grad_work *work)
{
    struct dt_grad_set *set = work->set;
    work->since = dt_grad_now();
    work->next = NULL;
    *set->last = work;
    set->last = &work->next;
    dt_grad_progress_call(set->grad);
}

/* ---- names that are under way here ---- */

static struct dt_grad_work **find_name(struct dt_grad *grad, int set,
                                       const char *name)
{
    struct dt_grad_work **at = &grad->names[dt_grad_hash(0, name)];
    while (*at && ((*at)->set->id != set || strcmp((*at)->name, name) != 0))
        at = &(*at)->chain;
    return at;
}

static void forget_name(struct dt_grad_work *work)
{
    struct dt_grad_work **at = &work->grad->names[dt_grad_hash(0, work->name)];
    while (*at && *at != work)
        at = &(*at)->chain;
    if (*at)
        *at = work->chain;
}

void dt_work_end(struct dt_grad_work *work, dt_result_t code,
                 const struct dt_error *err)
{
    struct dt_grad *grad = work->grad;
    if (code != DT_SUCCESS && err)
        work->err = *err;
    if (work->on_end) {
        atomic_store(&work->status, code);
        work->on_end(work);
        return;
    }
    pthread_mutex_lock(&grad->submit);
    if (work->kind == DT_WORK_OPERATIONS)
        forget_name(work);
    bool forgotten = work->forgotten;
    if (forgotten)
        forget(work);
    atomic_store(&work->status, code);
    pthread_mutex_unlock(&grad->submit);
    if (forgotten)
        dt_work_destroy(work);
}

dt_result_t dt_work_result(struct dt_grad_work *work, struct dt_error *err)
{
    dt_result_t rc = atomic_load(&work->status);
    if (rc < 0)
        *err = work->err;
    return rc;
}

bool dt_work_is_over(void *arg)
{
    struct dt_grad_work *work = arg;
    return atomic_load(&work->status) != DT_IN_PROGRESS;
}

dt_result_t dt_work_finish(struct dt_grad_work *work, int *number,
                           struct dt_error *err)
{
    struct dt_grad *grad = work->grad;
    pthread_mutex_lock(&grad->submit);
    dt_work_tell(work);
    pthread_mutex_unlock(&grad->submit);
    dt_grad_progress_await(grad, dt_work_is_over, work, -1);
    dt_result_t rc = dt_work_result(work, err);
    if (rc == DT_SUCCESS && number)
        *number = work->number;
    dt_work_destroy(work);
    return rc;
}

dt_result_t dt_work_enter(struct dt_grad_work *work, bool numbered,
                          struct dt_error *err)
{
    struct dt_grad *grad = work->grad;
    dt_result_t rc = DT_SUCCESS;
    pthread_mutex_lock(&grad->submit);
    if (numbered)
        snprintf(work->name, sizeof(DT_WORK_NUMBERED), "unnamed.%" PRIu64,
                 work->set->unnamed++);
    struct dt_grad_work **at = find_name(grad, work->set->id, work->name);
    if (*at)
        rc = dt_error_set(err, DT_ERR_INVALID_ARG,
                          "'%.200s' is under way on this rank already: wait "
                          "for it, or take another name",
                          work->name);
    else if (grad->failure != DT_SUCCESS)
        rc = dt_error_set(err, grad->failure, "%s", grad->failure_text.text);
    else
        *at = work;
    if (rc == DT_SUCCESS) {
        work->older = grad->newest;
        if (work->older)
            work->older->newer = work;
        grad->newest = work;
        dt_work_tell(work);
    }
    pthread_mutex_unlock(&grad->submit);
    return rc;
}
