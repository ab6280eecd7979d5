/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* begin.c - what all ranks of a set have started begins. */
#include "grad/begin.h"

#include <string.h>

#include "grad/entry.h"
#include "grad/plan/plan.h"
#include "grad/run.h"
#include "grad/sets.h"
#include "grad/work.h"

/* All ranks have told of it, or take no part any more. */
static bool is_whole(const struct dt_grad_set *set, const struct dt_entry *e)
{
    if (e->ntold == set->n)
        return true;
    if (set->njoined == 0 || e->kind == DT_WORK_JOIN ||
        e->kind == DT_WORK_CLOSE)
        return false;
    for (int r = 0; r < set->n; r++)
        if (!e->told[r] && !set->joined[r])
            return false;
    return true;
}

/* A rank that has not told of it has closed its engine. */
static bool is_lost(struct dt_grad_set *set, struct dt_entry *e)
{
    if (set->nclosed == 0 || e->kind == DT_WORK_CLOSE)
        return false;
    for (int r = 0; r < set->n; r++)
        if (!e->told[r] && set->closed[r]) {
            if (e->code == DT_SUCCESS)
                e->code =
                    dt_error_set(&e->err, DT_ERR_INVALID_ARG,
                                 "'%.200s': rank %d has closed the engine",
                                 e->name, set->ranks[r]);
            return true;
        }
    return false;
}

/* What a rank that has joined cannot add zeros to. */
static void refuse_joined(struct dt_grad_set *set, struct dt_entry *e)
{
    if (e->ntold == set->n || e->code != DT_SUCCESS)
        return;
    bool possible = e->kind == DT_WORK_OPERATIONS || e->kind == DT_WORK_STEP;
    for (int i = 0; i < e->n && e->kind == DT_WORK_OPERATIONS; i++)
        possible =
            possible &&
            (e->types[i].kind == DT_GRAD_BARRIER ||
             (e->types[i].kind == DT_GRAD_ALLREDUCE &&
              (e->types[i].op == DT_OP_SUM || e->types[i].op == DT_OP_AVG)));
    int r = 0;
    while (!set->joined[r])
        r++;
    if (!possible)
        e->code = dt_error_set(&e->err, DT_ERR_UNSUPPORTED,
                               "%s '%.200s' while rank %d has joined: only "
                               "allreduces by sum or avg can be done then",
                               dt_entry_kind(e), e->name, set->ranks[r]);
}

/* Joining and closing count from the moment they are heard of. */
static void note(struct dt_grad_set *set)
{
    for (struct dt_entry *e = set->entries; e; e = e->next) {
        if (e->kind != DT_WORK_JOIN && e->kind != DT_WORK_CLOSE)
            continue;
        bool *flags = e->kind == DT_WORK_JOIN ? set->joined : set->closed;
        int *n = e->kind == DT_WORK_JOIN ? &set->njoined : &set->nclosed;
        for (int r = 0; r < set->n; r++)
            if (e->told[r] && !flags[r]) {
                flags[r] = true;
                (*n)++;
                if (e->kind == DT_WORK_JOIN)
                    set->last_joined = r;
            }
    }
}

static void end_join(struct dt_grad_set *set, struct dt_entry *e)
{
    memset(set->joined, 0, (size_t)set->n * sizeof(*set->joined));
    set->njoined = 0;
    /* who joined early has missed numbers that the others have given */
    pthread_mutex_lock(&set->grad->submit);
    set->unnamed = ++set->joins << 32;
    pthread_mutex_unlock(&set->grad->submit);
    if (e->work) {
        e->work->number = set->ranks[set->last_joined];
        dt_work_end(e->work, DT_SUCCESS, NULL);
    }
}

static dt_result_t add_runs(struct dt_grad_set *set, struct dt_entry *e,
                            struct dt_error *err)
{
    dt_result_t rc = e->plan ? dt_plan_learn(set, e, err) : DT_SUCCESS;
    return rc == DT_SUCCESS ? dt_runs_add(set, e, err) : rc;
}

/* The ranks agree: do it. The entry is out of the set. */
static dt_result_t begin(struct dt_grad_set *set, struct dt_entry *e,
                         struct dt_error *err)
{
    switch (e->kind) {
    case DT_WORK_OPERATIONS:
        return add_runs(set, e, err);
    case DT_WORK_SET_ADD:
        return dt_sets_add(set->grad, e, err);
    case DT_WORK_SET_REMOVE:
        return dt_sets_remove(set->grad, e, err);
    case DT_WORK_PLAN_CREATE:
        return dt_plan_begin(set, e, err);
    case DT_WORK_PLAN_DESTROY:
        return dt_plan_end(set, e, err);
    case DT_WORK_STEP:
        return dt_plan_step_over(set, e, err);
    case DT_WORK_JOIN:
        end_join(set, e);
        return DT_SUCCESS;
    case DT_WORK_CLOSE:
        if (e->work)
            dt_work_end(e->work, DT_SUCCESS, NULL);
    }
    return DT_SUCCESS;
}

dt_result_t dt_begin_all(struct dt_grad_set *set, struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    note(set);
    struct dt_entry **at = &set->entries;
    while (rc == DT_SUCCESS && *at) {
        struct dt_entry *e = *at;
        bool whole = is_whole(set, e);
        if (!whole && !is_lost(set, e)) {
            at = &e->next;
            continue;
        }
        dt_entry_take(set, at);
        if (whole)
            refuse_joined(set, e);
        if (e->code == DT_SUCCESS) {
            rc = begin(set, e, err);
            /* a step that is over may have failed others: from the start */
            if (e->kind == DT_WORK_STEP)
                at = &set->entries;
        } else if (e->work) {
            dt_work_end(e->work, e->code, &e->err);
        }
        dt_entry_free(e);
    }
    return rc;
}
