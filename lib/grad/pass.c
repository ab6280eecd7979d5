/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pass.c - one pass over all that is under way. */
#include "grad/pass.h"

#include "base/env.h"
#include "coll/engine/engine.h"
#include "grad/entry.h"
#include "grad/gpu/gpus.h"
#include "grad/plan/plan.h"
#include "grad/round.h"
#include "grad/run.h"
#include "grad/stall.h"
#include "grad/work.h"

#define LOOK 0.5 /* seconds between looks at what takes long */

/* ---- failure ---- */

static void fail_list(struct dt_grad_work *work, dt_result_t code,
                      const struct dt_error *err)
{
    struct dt_grad_work *next;
    for (; work; work = next) {
        next = work->next;
        if (!work->on_end)
            dt_work_end(work, code, err);
    }
}

static void fail_set(struct dt_grad_set *set, dt_result_t code,
                     const struct dt_error *err)
{
    pthread_mutex_lock(&set->grad->submit);
    struct dt_grad_work *new = set->first;
    set->first = NULL;
    set->last = &set->first;
    pthread_mutex_unlock(&set->grad->submit);
    fail_list(new, code, err);
    fail_list(set->telling, code, err);
    set->telling = NULL;
    for (struct dt_entry *e = set->entries; e; e = e->next) {
        if (e->work && !e->work->on_end)
            dt_work_end(e->work, code, err);
        e->work = NULL;
    }
    dt_entries_clear(set);
    set->open = 0;
}

/* Nothing may use the program's buffers any more when its work has failed: so
 * all that is under way in libdt fails, too, and is taken back. */
static void abandon(struct dt_grad *grad, dt_result_t code,
                    const struct dt_error *err)
{
    struct dt_error text = *err;
    struct dt_world *world = grad->world->world;
    dt_world_lock(world);
    dt_world_fail(world, code, &text);
    dt_device_step(world); /* the streams wait for no other rank any more */
    dt_world_unlock(world);
    for (struct dt_grad_set *s = grad->sets; s; s = s->next)
        dt_test(&s->round.request);
    for (struct dt_grad_plan *p = grad->plans; p; p = p->next)
        for (int b = 0; b < p->nbuckets; b++)
            dt_test(&p->buckets[b].request);
    dt_gpus_drain(grad, grad->timeout);
}

static void fail(struct dt_grad *grad, dt_result_t code,
                 const struct dt_error *err)
{
    pthread_mutex_lock(&grad->submit);
    grad->failure_text = *err;
    atomic_store(&grad->failure, code);
    pthread_mutex_unlock(&grad->submit);
    abandon(grad, code, err);
    dt_runs_fail(grad, code, err);
    for (struct dt_grad_set *set = grad->sets; set; set = set->next)
        fail_set(set, code, err);
    for (struct dt_grad_plan *plan = grad->plans; plan; plan = plan->next)
        dt_plan_fail(plan, code, err);
    atomic_store(&grad->told, true);
}

/* ---- what takes too long ---- */

/* Since when the oldest work of the set waits for others, or 0. A rank that has
 * joined may wait for as long as the others train. */
static const struct dt_grad_work *oldest_of(const struct dt_grad_work *a,
                                            const struct dt_grad_work *b)
{
    if (!b || b->kind == DT_WORK_JOIN)
        return a;
    return !a || b->since < a->since ? b : a;
}

static dt_result_t overdue(struct dt_grad *grad, const char *what,
                           struct dt_error *err)
{
    dt_error_set(err, DT_ERR_TIMED_OUT,
                 "'%.200s' was started %.0f s ago (" DT_ENV_TIMEOUT
                 ") and a rank has not started it, or is stopped",
                 what, grad->timeout);
    struct dt_world *world = grad->world->world;
    dt_world_lock(world);
    dt_world_fail(world, DT_ERR_TIMED_OUT, err);
    dt_world_unlock(world);
    return DT_ERR_TIMED_OUT;
}

static dt_result_t look_at_set(struct dt_grad_set *set, double before,
                               struct dt_error *err)
{
    const struct dt_grad_work *oldest = NULL;
    for (struct dt_grad_work *w = set->telling; w; w = w->next)
        oldest = oldest_of(oldest, w);
    for (struct dt_entry *e = set->entries; e; e = e->next)
        oldest = oldest_of(oldest, e->work);
    if (oldest && oldest->since < before)
        return overdue(set->grad, oldest->name, err);
    return DT_SUCCESS;
}

static dt_result_t look_at_plan(struct dt_grad_plan *plan, double before,
                                struct dt_error *err)
{
    if (plan->launched == plan->finished)
        return DT_SUCCESS;
    struct dt_bucket *b =
        &plan->buckets[plan->finished % (uint64_t)plan->nbuckets];
    if (b->since >= before)
        return DT_SUCCESS;
    return overdue(plan->grad, b->gradients[0]->work.name, err);
}

static dt_result_t look(struct dt_grad *grad, struct dt_error *err)
{
    double now = dt_grad_now(), before = now - grad->timeout;
    dt_result_t rc = DT_SUCCESS;
    if (now - grad->looked < LOOK)
        return rc;
    grad->looked = now;
    for (struct dt_grad_set *s = grad->sets; rc == DT_SUCCESS && s; s = s->next)
        rc = look_at_set(s, before, err);
    for (struct dt_grad_plan *p = grad->plans; rc == DT_SUCCESS && p;
         p = p->next)
        rc = look_at_plan(p, before, err);
    const char *late = dt_runs_late(grad, before);
    if (rc == DT_SUCCESS && late)
        rc = overdue(grad, late, err);
    return rc == DT_SUCCESS ? dt_stall_look(grad, now, err) : rc;
}

/* ---- one pass ---- */

static dt_result_t try_all(struct dt_grad *grad, bool *moved,
                           struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    for (struct dt_grad_plan *p = grad->plans; rc == DT_SUCCESS && p;
         p = p->next)
        rc = dt_plan_progress(p, moved, err);
    for (struct dt_grad_set *s = grad->sets; rc == DT_SUCCESS && s; s = s->next)
        if (s->me >= 0)
            rc = dt_round_progress(s, moved, err);
    if (rc == DT_SUCCESS && grad->runs)
        rc = dt_runs_progress(grad, moved, err);
    return rc == DT_SUCCESS ? look(grad, err) : rc;
}

/* True when anything moved. The drive lock is held. */
bool dt_pass(struct dt_grad *grad)
{
    struct dt_error err = {""};
    bool moved = false;
    if (grad->failure != DT_SUCCESS)
        return false;
    dt_result_t rc = try_all(grad, &moved, &err);
    if (rc != DT_SUCCESS)
        fail(grad, rc, &err);
    return moved || rc != DT_SUCCESS;
}

/* Is anything under way? The drive lock is held. */
bool dt_pass_is_busy(const struct dt_grad *grad)
{
    if (grad->failure != DT_SUCCESS)
        return false;
    for (const struct dt_grad_set *s = grad->sets; s; s = s->next)
        if (s->round.phase != DT_ROUND_NONE || s->open > 0)
            return true;
    for (const struct dt_grad_plan *p = grad->plans; p; p = p->next)
        if (p->launched != p->finished)
            return true;
    return grad->runs != NULL;
}
