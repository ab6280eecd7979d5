/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* arrival.c - the requests that the root has, and the ranks that it lacks. */
#include "membership/membership_state.h"

#include <stdio.h>

/* It has ended, and there will be no replacement. */
static bool is_gone(const struct dt_membership *m, size_t rank)
{
    const struct dt_mesh_rank *state = dt_mesh_rank(m->mesh, rank);
    return state->ended &&
           (!m->config.replaces || m->gone[rank] > state->incarnation ||
            !dt_mesh_node_lives(m->mesh, m->map->node_of[rank]));
}

/* Its request is there: then it lives, whether or not the event that it has
 * joined has come. Or else: does a decision need it? */
static bool is_lacking(const struct dt_membership *m, size_t rank)
{
    const struct dt_mesh_rank *state = dt_mesh_rank(m->mesh, rank);
    if (m->arrival[rank] || is_gone(m, rank))
        return false;
    return m->config.replaces || m->base == 0 ||
           m->member[rank] == state->incarnation + 1;
}

void dt_arrival_count(struct dt_membership *m)
{
    if (!m->changed)
        return;
    m->changed = false;
    m->living = m->base = 0;
    for (size_t r = 0; r < m->map->ranks; r++) {
        const struct dt_mesh_rank *state = dt_mesh_rank(m->mesh, r);
        uint32_t now = state->incarnation;
        if (m->arrival[r])
            now = m->arrival[r]->incarnation;
        else if (is_gone(m, r))
            continue;
        m->living++;
        m->base += m->member[r] == now + 1;
    }
}

bool dt_arrival_any_lacking(struct dt_membership *m)
{
    if (is_lacking(m, m->lacking))
        return true;
    for (size_t r = 0; r < m->map->ranks; r++)
        if (is_lacking(m, r)) {
            m->lacking = r;
            return true;
        }
    return false;
}

void dt_arrival_take(struct dt_membership *m, size_t from, uint64_t ticket,
                     struct dt_cursor *body)
{
    size_t rank = dt_cursor_uint(body, 4);
    uint32_t incarnation = (uint32_t)dt_cursor_uint(body, 4);
    uint64_t number = dt_cursor_uint(body, 8);
    int64_t timeout = (int64_t)dt_cursor_uint(body, 8);
    size_t len = (size_t)(body->end - body->at);
    if (body->failed || rank >= m->map->ranks ||
        m->map->node_of[rank] != from || timeout < 0 ||
        len > DT_MEMBERSHIP_CARD_MAX) {
        dt_mesh_answer(m->mesh, ticket, DT_ERR_INVALID_ARG, NULL, 0);
        return;
    }
    const struct dt_mesh_rank *state = dt_mesh_rank(m->mesh, rank);
    struct arrival *arrival = NULL;
    /* its process has ended; or a decision of a former root, which its node did
     * not have yet, answers it */
    if (incarnation < state->incarnation + state->ended ||
        (m->member[rank] == incarnation + 1 && number <= m->number[rank])) {
        dt_mesh_answer(m->mesh, ticket, DT_SUCCESS, NULL, 0);
        return;
    }
    if (m->arrival[rank])
        dt_arrival_drop(m, rank, DT_SUCCESS, ""); /* of the one before */
    arrival = calloc(1, sizeof(*arrival) + len);
    if (!arrival) {
        dt_mesh_answer(m->mesh, ticket, DT_ERR_NO_MEMORY, NULL, 0);
        return;
    }
    *arrival = (struct arrival){.ticket = ticket,
                                .number = number,
                                .incarnation = incarnation,
                                .timeout = timeout,
                                .len = len};
    if (len)
        memcpy(arrival->card, body->at, len);
    m->changed |= incarnation > state->incarnation;
    m->arrival[rank] = arrival;
    m->timed_out[rank] = false;
    m->arrivals++;
}

void dt_arrival_drop(struct dt_membership *m, size_t rank, dt_result_t rc,
                     const char *text)
{
    struct arrival *arrival = m->arrival[rank];
    m->arrival[rank] = NULL;
    m->arrivals--;
    m->changed = true;
    dt_mesh_answer(m->mesh, arrival->ticket, rc, text, strlen(text));
    free(arrival);
}

void dt_arrival_fail_all(struct dt_membership *m, dt_result_t rc,
                         const char *text)
{
    for (size_t r = 0; r < m->map->ranks; r++)
        if (m->arrival[r])
            dt_arrival_drop(m, r, rc, text);
}

/* ---- texts ---- */

enum { LIST = 320 };

/* "rank 3", "ranks 0, 2-5 and 3 more" */
static void list_ranks(const struct dt_membership *m,
                       bool (*has)(const struct dt_membership *m, size_t rank),
                       char text[LIST])
{
    char list[LIST - 8] = "";
    size_t named = 0, more = 0, len = 0;
    for (size_t first = 0; first < m->map->ranks; first++) {
        size_t last = first;
        const char *comma = len > 0 ? ", " : "";
        if (!has(m, first))
            continue;
        while (last + 1 < m->map->ranks && has(m, last + 1))
            last++;
        named += last - first + 1;
        if (len + 64 > sizeof(list))
            more += last - first + 1;
        else if (last == first)
            len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%zu",
                                    comma, first);
        else
            len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%zu-%zu",
                                    comma, first, last);
        first = last;
    }
    if (more > 0)
        snprintf(list + len, sizeof(list) - len, " and %zu more", more);
    snprintf(text, LIST, "rank%s %s", named == 1 ? "" : "s", list);
}

static bool never_came(const struct dt_membership *m, size_t rank)
{
    return is_lacking(m, rank) && !dt_mesh_rank(m->mesh, rank)->ended &&
           !m->timed_out[rank];
}

static bool lives_and_lacks(const struct dt_membership *m, size_t rank)
{
    return is_lacking(m, rank) && !dt_mesh_rank(m->mesh, rank)->ended;
}

static bool ended_and_lacks(const struct dt_membership *m, size_t rank)
{
    return is_lacking(m, rank) && dt_mesh_rank(m->mesh, rank)->ended;
}

/* Where the base has come but is fewer than the minimum. */
static bool is_absent(const struct dt_membership *m, size_t rank)
{
    return !m->arrival[rank] && !is_gone(m, rank);
}

static bool any(const struct dt_membership *m,
                bool (*has)(const struct dt_membership *m, size_t rank))
{
    size_t rank = 0;
    while (rank < m->map->ranks && !has(m, rank))
        rank++;
    return rank < m->map->ranks;
}

void dt_arrival_describe_lacking(const struct dt_membership *m, char *text,
                                 size_t size)
{
    char alive[LIST] = "", ended[LIST] = "";
    bool others = any(m, ended_and_lacks);
    if (any(m, never_came)) /* those that gave up are not the reason */
        list_ranks(m, never_came, alive);
    else if (any(m, lives_and_lacks))
        list_ranks(m, lives_and_lacks, alive);
    else if (!others)
        list_ranks(m, is_absent, alive);
    if (others)
        list_ranks(m, ended_and_lacks, ended);
    snprintf(text, size, "%s%s%s%s did not come", alive,
             *alive && *ended ? " and " : "",
             *ended ? "the replacement of " : "", ended);
}
