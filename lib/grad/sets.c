/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* sets.c - process sets are added and removed, by all ranks of the world, and
 * asked about. */
#include "grad/sets.h"

#include <stdlib.h>

#include "base/api.h"
#include "grad/plan/plan.h"
#include "grad/set.h"
#include "grad/work.h"

/* ---- adding and removing ---- */

static bool is_same(const struct dt_grad_set *set, const int64_t *ranks, int n)
{
    if (set->n != n)
        return false;
    for (int r = 0; r < n; r++)
        if (set->ranks[r] != (int)ranks[r])
            return false;
    return true;
}

/* The ranks of a new set, ascending by the caller. */
static dt_result_t check(struct dt_grad *grad, const int64_t *ranks, int n,
                         struct dt_error *err)
{
    for (int r = 0; r < n; r++) {
        if (ranks[r] < 0 || ranks[r] >= dt_size())
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "a new set: there is no rank %d, only 0 to %d",
                                (int)ranks[r], dt_size() - 1);
        if (r && ranks[r] == ranks[r - 1])
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "a new set: rank %d is in it twice",
                                (int)ranks[r]);
    }
    for (struct dt_grad_set *set = grad->sets; set; set = set->next)
        if (is_same(set, ranks, n))
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "a new set: process set %d has the same ranks",
                                set->id);
    return DT_SUCCESS;
}

dt_result_t dt_sets_add(struct dt_grad *grad, struct dt_entry *e,
                        struct dt_error *err)
{
    struct dt_error why;
    struct dt_grad_set *set;
    dt_result_t rc = check(grad, e->ranks, e->nranks, &why);
    if (rc != DT_SUCCESS) {
        dt_work_end(e->work, rc, &why);
        return DT_SUCCESS;
    }
    rc = dt_set_make(grad, grad->next_set, e->ranks, e->nranks, &set, err);
    if (rc != DT_SUCCESS)
        return rc;
    dt_set_enlist(grad, set);
    e->work->number = set->id;
    if (set->me >= 0)
        rc = dt_set_connect(grad, set, err);
    if (rc == DT_SUCCESS)
        dt_work_end(e->work, DT_SUCCESS, NULL);
    return rc;
}

dt_result_t dt_sets_remove(struct dt_grad *grad, struct dt_entry *e,
                           struct dt_error *err)
{
    struct dt_error why;
    struct dt_grad_set *set;
    dt_result_t rc = dt_set_get(grad, e->types[0].root, &set, &why);
    for (int r = 0; rc == DT_SUCCESS && r < dt_size(); r++)
        if (e->rows[r] != 0)
            rc = dt_error_set(&why, DT_ERR_INVALID_ARG,
                              "process set %d cannot be removed: something of "
                              "it is under way on rank %d",
                              set->id, r);
    if (rc != DT_SUCCESS) {
        dt_work_end(e->work, rc, &why);
        return DT_SUCCESS;
    }
    pthread_mutex_lock(&grad->submit);
    struct dt_grad_set **at = &grad->sets;
    while (*at != set)
        at = &(*at)->next;
    *at = set->next;
    pthread_mutex_unlock(&grad->submit);
    rc = dt_plans_free(grad, set, true);
    dt_result_t rc2 = dt_set_free(set, true);
    if (rc == DT_SUCCESS)
        rc = rc2;
    if (rc != DT_SUCCESS)
        return dt_grad_failed(rc, err);
    dt_work_end(e->work, DT_SUCCESS, NULL);
    return DT_SUCCESS;
}

/* ---- the public calls ---- */

static int ascending(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* Work of the world's with one item, which the caller fills. */
static dt_result_t ask(struct dt_grad *grad, enum dt_work_kind kind,
                       const char *name, struct dt_grad_work **work,
                       struct dt_error *err)
{
    dt_result_t rc = dt_work_create(grad->sets, kind, name, work, err);
    if (rc != DT_SUCCESS)
        return rc;
    (*work)->items = calloc(1, sizeof(*(*work)->items));
    if (!(*work)->items) {
        dt_work_destroy(*work);
        return dt_no_memory(err);
    }
    (*work)->n = 1;
    return DT_SUCCESS;
}

static dt_result_t add(struct dt_grad *grad, const int *ranks, int n, int *id,
                       struct dt_error *err)
{
    struct dt_grad_work *work;
    if (!ranks || n < 1 || !id)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "dt_grad_set_add: a set of %d ranks", n);
    dt_result_t rc = ask(grad, DT_WORK_SET_ADD, "a new set", &work, err);
    if (rc != DT_SUCCESS)
        return rc;
    struct dt_item *item = work->items;
    item->splits = calloc((size_t)n, sizeof(*item->splits));
    if (!item->splits) {
        dt_work_destroy(work);
        return dt_no_memory(err);
    }
    for (int i = 0; i < n; i++)
        item->splits[i] = ranks[i];
    qsort(item->splits, (size_t)n, sizeof(*item->splits), ascending);
    item->rows = n;
    return dt_work_finish(work, id, err);
}

dt_result_t dt_grad_set_add(dt_grad_t grad, const int *ranks, int n, int *set)
{
    struct dt_error err = {""};
    dt_result_t rc = dt_grad_usable(grad, &err);
    if (rc == DT_SUCCESS)
        rc = add(grad, ranks, n, set, &err);
    return dt_api_return(rc, &err);
}

/* Is anything of it under way on this rank? */
static bool is_under_way(struct dt_grad *grad, int id)
{
    bool found = false;
    pthread_mutex_lock(&grad->submit);
    for (size_t i = 0; i < DT_NAMES; i++)
        for (struct dt_grad_work *w = grad->names[i]; w; w = w->chain)
            found = found || w->set->id == id;
    for (struct dt_grad_plan *p = grad->plans; p; p = p->next)
        found = found || (p->set->id == id && atomic_load(&p->open) > 0);
    pthread_mutex_unlock(&grad->submit);
    return found;
}

static dt_result_t remove_set(struct dt_grad *grad, int id,
                              struct dt_error *err)
{
    struct dt_grad_work *work;
    struct dt_grad_set *set;
    dt_result_t rc = dt_set_get(grad, id, &set, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (id == DT_GRAD_WORLD)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "process set 0, the world, cannot be removed");
    bool busy = is_under_way(grad, id);
    rc = ask(grad, DT_WORK_SET_REMOVE, "the end of a set", &work, err);
    if (rc != DT_SUCCESS)
        return rc;
    /* as an allgather's, as its first dimension may differ */
    work->items[0].type = (struct dt_item_type){
        .kind = DT_GRAD_ALLGATHER, .root = id, .ndim = 1, .shape = {busy}};
    return dt_work_finish(work, NULL, err);
}

dt_result_t dt_grad_set_remove(dt_grad_t grad, int set)
{
    struct dt_error err = {""};
    dt_result_t rc = dt_grad_usable(grad, &err);
    if (rc == DT_SUCCESS)
        rc = remove_set(grad, set, &err);
    return dt_api_return(rc, &err);
}

static int about(struct dt_grad *grad, int id, bool size)
{
    struct dt_error err = {""};
    struct dt_grad_set *set;
    dt_result_t rc = dt_grad_usable(grad, &err);
    if (rc == DT_SUCCESS)
        rc = dt_set_get(grad, id, &set, &err);
    if (rc != DT_SUCCESS)
        return dt_api_return(rc, &err);
    return size ? set->n : set->me;
}

int dt_grad_set_rank(dt_grad_t grad, int set)
{
    return about(grad, set, false);
}

int dt_grad_set_size(dt_grad_t grad, int set)
{
    return about(grad, set, true);
}

static dt_result_t fits(int room, int n, struct dt_error *err)
{
    if (n <= room)
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_INVALID_ARG, "room for %d of %d", room, n);
}

dt_result_t dt_grad_sets(dt_grad_t grad, int *sets, int *n)
{
    struct dt_error err = {""};
    dt_result_t rc = dt_grad_usable(grad, &err);
    if (rc != DT_SUCCESS)
        return dt_api_return(rc, &err);
    int room = *n, count = 0;
    pthread_mutex_lock(&grad->submit);
    for (struct dt_grad_set *set = grad->sets; set; set = set->next, count++)
        if (count < room)
            sets[count] = set->id;
    pthread_mutex_unlock(&grad->submit);
    *n = count;
    return dt_api_return(fits(room, count, &err), &err);
}

dt_result_t dt_grad_set_ranks(dt_grad_t grad, int id, int *ranks, int *n)
{
    struct dt_error err = {""};
    struct dt_grad_set *set;
    dt_result_t rc = dt_grad_usable(grad, &err);
    if (rc == DT_SUCCESS)
        rc = dt_set_get(grad, id, &set, &err);
    if (rc != DT_SUCCESS)
        return dt_api_return(rc, &err);
    int room = *n;
    for (int r = 0; r < set->n && r < room; r++)
        ranks[r] = set->ranks[r];
    *n = set->n;
    return dt_api_return(fits(room, set->n, &err), &err);
}
