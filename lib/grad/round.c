/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* round.c - a round is an allgather of heads of fixed size, which hold what
 * fits; where a rank tells more, an allgather of the bodies follows.
 *
 *   head   u32 length of the body | u32 0 | the body, if it fits
 */
#include "grad/round.h"

#include <stdlib.h>
#include <string.h>

#include "grad/begin.h"
#include "grad/entry.h"
#include "grad/message.h"

#define HEAD   DT_ROUND_HEAD
#define INLINE (HEAD - 8)
#define MOST   (1 << 20) /* bytes of requests that begin a round, roughly */

#define PAUSE_LEAST 20e-6 /* seconds */
#define PAUSE_MOST  2e-3

static uint32_t get(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
           (uint32_t)at[3] << 24;
}

static void put(unsigned char *at, size_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

/* Move new work to what is told in this round, at the end of it. */
static dt_result_t collect(struct dt_grad_set *set, struct dt_error *err)
{
    struct dt_round *round = &set->round;
    struct dt_grad_work **end = &set->telling;
    dt_result_t rc = DT_SUCCESS;
    round->len = 0;
    pthread_mutex_lock(&set->grad->submit);
    while (rc == DT_SUCCESS && set->first && round->len < MOST) {
        struct dt_grad_work *work = set->first;
        rc = dt_message_append(round, work, err);
        if (rc != DT_SUCCESS)
            break;
        set->first = work->next;
        if (!set->first)
            set->last = &set->first;
        work->next = NULL;
        *end = work;
        end = &work->next;
    }
    pthread_mutex_unlock(&set->grad->submit);
    return rc;
}

static dt_result_t tell_heads(struct dt_grad_set *set, struct dt_error *err)
{
    struct dt_round *round = &set->round;
    dt_result_t rc = collect(set, err);
    if (rc != DT_SUCCESS)
        return rc;
    unsigned char *head = round->heads + (size_t)set->me * HEAD;
    memset(head, 0, HEAD);
    put(head, round->len);
    if (round->len <= INLINE)
        memcpy(head + 8, round->mine, round->len);
    round->phase = DT_ROUND_HEADS;
    round->since = dt_grad_now();
    set->grad->stats.rounds++;
    rc = dt_iallgather(head, round->heads, HEAD, DT_DTYPE_U8, set->control,
                       DT_STREAM_NONE, &round->request);
    return rc == DT_SUCCESS ? rc : dt_grad_failed(rc, err);
}

/* Does any rank tell more than a head holds? Then the bodies of all follow. */
static size_t lay_out(struct dt_grad_set *set)
{
    struct dt_round *round = &set->round;
    size_t sum = 0;
    bool more = false;
    for (size_t r = 0; r < (size_t)set->n; r++) {
        round->counts[r] = get(round->heads + r * HEAD);
        round->displs[r] = sum;
        sum += round->counts[r];
        more = more || round->counts[r] > INLINE;
    }
    return more ? sum : 0;
}

static dt_result_t tell_bodies(struct dt_grad_set *set, size_t bytes,
                               struct dt_error *err)
{
    struct dt_round *round = &set->round;
    unsigned char *bodies = realloc(round->bodies, bytes);
    if (!bodies)
        return dt_no_memory(err);
    round->bodies = bodies;
    round->phase = DT_ROUND_BODIES;
    dt_result_t rc = dt_iallgatherv(round->mine, bodies, round->counts,
                                    round->displs, DT_DTYPE_U8, set->control,
                                    DT_STREAM_NONE, &round->request);
    return rc == DT_SUCCESS ? rc : dt_grad_failed(rc, err);
}

static double longer(double pause)
{
    if (pause < PAUSE_LEAST)
        return PAUSE_LEAST;
    return pause < PAUSE_MOST / 2 ? 2 * pause : PAUSE_MOST;
}

static dt_result_t hear(struct dt_grad_set *set, struct dt_error *err)
{
    struct dt_round *round = &set->round;
    bool whole = round->phase == DT_ROUND_BODIES, news = false;
    dt_result_t rc = DT_SUCCESS;
    round->phase = DT_ROUND_NONE;
    round->since = dt_grad_now();
    for (int r = 0; rc == DT_SUCCESS && r < set->n; r++) {
        const unsigned char *body = whole ? round->bodies + round->displs[r]
                                          : round->heads + (size_t)r * HEAD + 8;
        news = news || round->counts[r] > 0;
        rc = dt_entries_hear(set, r, body, round->counts[r], err);
    }
    round->pause = news ? 0 : longer(round->pause);
    free(round->bodies);
    round->bodies = NULL;
    return rc == DT_SUCCESS ? dt_begin_all(set, err) : rc;
}

static bool has_reason(struct dt_grad_set *set)
{
    if (set->open > 0 && (set->round.pause == 0 ||
                          dt_grad_now() - set->round.since >= set->round.pause))
        return true;
    pthread_mutex_lock(&set->grad->submit);
    bool new = set->first != NULL;
    pthread_mutex_unlock(&set->grad->submit);
    return new;
}

dt_result_t dt_round_progress(struct dt_grad_set *set, bool *moved,
                              struct dt_error *err)
{
    struct dt_round *round = &set->round;
    if (round->phase == DT_ROUND_NONE) {
        if (!has_reason(set))
            return DT_SUCCESS;
        *moved = true;
        return tell_heads(set, err);
    }
    dt_result_t rc = dt_test(&round->request);
    if (rc == DT_IN_PROGRESS)
        return DT_SUCCESS;
    if (rc != DT_SUCCESS)
        return dt_grad_failed(rc, err);
    *moved = true;
    size_t bytes = round->phase == DT_ROUND_HEADS ? lay_out(set) : 0;
    return bytes > 0 ? tell_bodies(set, bytes, err) : hear(set, err);
}
