/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* set.c - process sets. */
#include "grad/set.h"

#include <stdlib.h>
#include <string.h>

/* ---- making ---- */

/* Room for the set's rounds. */
static dt_result_t init_round(struct dt_grad_set *set, struct dt_error *err)
{
    struct dt_round *round = &set->round;
    size_t n = (size_t)set->n;
    round->room = DT_ROUND_HEAD;
    round->mine = malloc(round->room);
    round->heads = malloc(n * DT_ROUND_HEAD);
    round->counts = calloc(n, sizeof(*round->counts));
    round->displs = calloc(n, sizeof(*round->displs));
    if (round->mine && round->heads && round->counts && round->displs)
        return DT_SUCCESS;
    return dt_no_memory(err);
}

static void fini_round(struct dt_grad_set *set)
{
    free(set->round.mine);
    free(set->round.heads);
    free(set->round.bodies);
    free(set->round.counts);
    free(set->round.displs);
}

dt_result_t dt_set_make(struct dt_grad *grad, int id, const int64_t *ranks,
                        int n, struct dt_grad_set **out, struct dt_error *err)
{
    struct dt_grad_set *set = calloc(1, sizeof(*set));
    if (!set)
        return dt_no_memory(err);
    set->grad = grad;
    set->id = id;
    set->n = n;
    set->me = -1;
    set->last = &set->first;
    set->entries_end = &set->entries;
    set->ranks = calloc((size_t)n, sizeof(*set->ranks));
    set->joined = calloc((size_t)n, sizeof(*set->joined));
    set->closed = calloc((size_t)n, sizeof(*set->closed));
    dt_result_t rc = init_round(set, err);
    if (!set->ranks || !set->joined || !set->closed || rc != DT_SUCCESS) {
        dt_set_free(set, false);
        return dt_no_memory(err);
    }
    for (int r = 0; r < n; r++) {
        set->ranks[r] = (int)ranks[r];
        if (set->ranks[r] == dt_rank())
            set->me = r;
    }
    *out = set;
    return DT_SUCCESS;
}

dt_result_t dt_set_connect(struct dt_grad *grad, struct dt_grad_set *set,
                           struct dt_error *err)
{
    dt_result_t rc =
        dt_comm_create(grad->world, set->ranks, set->n, &set->control);
    if (rc == DT_SUCCESS)
        rc = dt_comm_create(grad->world, set->ranks, set->n, &set->data);
    return rc == DT_SUCCESS ? rc : dt_grad_failed(rc, err);
}

void dt_set_enlist(struct dt_grad *grad, struct dt_grad_set *set)
{
    pthread_mutex_lock(&grad->submit);
    struct dt_grad_set **at = &grad->sets;
    while (*at)
        at = &(*at)->next;
    *at = set;
    grad->next_set = set->id + 1;
    pthread_mutex_unlock(&grad->submit);
}

dt_result_t dt_set_open_world(struct dt_grad *grad, struct dt_error *err)
{
    int n = dt_size();
    int64_t *ranks = calloc((size_t)n, sizeof(*ranks));
    struct dt_grad_set *set = NULL;
    if (!ranks)
        return dt_no_memory(err);
    for (int r = 0; r < n; r++)
        ranks[r] = r;
    dt_result_t rc = dt_set_make(grad, DT_GRAD_WORLD, ranks, n, &set, err);
    free(ranks);
    if (rc != DT_SUCCESS)
        return rc;
    dt_set_enlist(grad, set);
    return dt_set_connect(grad, set, err);
}

dt_result_t dt_set_free(struct dt_grad_set *set, bool together)
{
    dt_result_t rc = DT_SUCCESS;
    if (together && set->me >= 0) {
        rc = dt_comm_destroy(set->control);
        dt_result_t rc2 = dt_comm_destroy(set->data);
        if (rc == DT_SUCCESS)
            rc = rc2;
    }
    dt_entries_clear(set);
    fini_round(set);
    free(set->ranks);
    free(set->joined);
    free(set->closed);
    free(set);
    return rc;
}

/* ---- finding ---- */

static struct dt_grad_set *find(struct dt_grad *grad, int id)
{
    struct dt_grad_set *set = grad->sets;
    while (set && set->id != id)
        set = set->next;
    return set;
}

dt_result_t dt_set_get(struct dt_grad *grad, int id, struct dt_grad_set **set,
                       struct dt_error *err)
{
    pthread_mutex_lock(&grad->submit);
    *set = find(grad, id);
    pthread_mutex_unlock(&grad->submit);
    if (*set)
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_INVALID_ARG, "there is no process set %d",
                        id);
}

dt_result_t dt_set_mine(struct dt_grad *grad, int id, struct dt_grad_set **out,
                        struct dt_error *err)
{
    struct dt_grad_set *set;
    dt_result_t rc = dt_set_get(grad, id, &set, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (set->me < 0)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "rank %d is not in process set %d", dt_rank(), id);
    *out = set;
    return DT_SUCCESS;
}
