/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* membership.c - which ranks of a job go on together. */
#include "membership/membership_state.h"

static void epoch_answered(void *arg, dt_result_t rc, int32_t status,
                           const void *data, size_t len)
{
    struct dt_membership *m = arg;
    (void)status, (void)data, (void)len;
    if (rc == DT_ERR_NO_MEMORY)
        dt_mesh_no_memory(m->mesh); /* the root waits for it */
}

static void report_epoch(struct dt_membership *m)
{
    unsigned char body[17] = {EPOCH};
    dt_wire_put(body + 1, 4, m->term);
    dt_decided_put(body + 5, m->last);
    m->reported = true;
    dt_mesh_ask(m->mesh, m->term, m->config.what, body, sizeof(body), 0,
                epoch_answered, m);
}

/* ---- from the mesh ---- */

static void take_gone(struct dt_membership *m, struct dt_cursor *body)
{
    size_t rank = dt_cursor_uint(body, 4);
    uint32_t incarnation = (uint32_t)dt_cursor_uint(body, 4);
    if (body->failed || rank >= m->map->ranks)
        return;
    m->gone[rank] = incarnation + 1;
    m->changed = true;
}

void dt_membership_received(struct dt_membership *m, const void *data,
                            size_t len)
{
    struct dt_cursor body = dt_cursor(data, len);
    switch (dt_cursor_uint(&body, 1)) {
    case DECISION:
        dt_decision_take_part(m, &body);
        break;
    case HOLDS:
        dt_decision_take_holds(m, &body);
        break;
    case GONE:
        take_gone(m, &body);
        break;
    default:
        break;
    }
}

void dt_membership_asked(struct dt_membership *m, size_t from, uint64_t ticket,
                         const void *data, size_t len)
{
    struct dt_cursor body = dt_cursor(data, len);
    switch (dt_cursor_uint(&body, 1)) {
    case REQUEST:
        dt_arrival_take(m, from, ticket, &body);
        break;
    case EPOCH:
        dt_root_take_epoch(m, from, &body);
        dt_mesh_answer(m->mesh, ticket, DT_SUCCESS, NULL, 0);
        break;
    default:
        dt_mesh_answer(m->mesh, ticket, DT_ERR_INVALID_ARG, NULL, 0);
        break;
    }
}

void dt_membership_rank(struct dt_membership *m, size_t rank)
{
    const struct dt_mesh_rank *state = dt_mesh_rank(m->mesh, rank);
    uint32_t least = state->incarnation + state->ended; /* that may live */
    struct request **at = &m->requests;
    m->changed = true;
    if (m->arrival[rank] && m->arrival[rank]->incarnation < least)
        dt_arrival_drop(m, rank, DT_SUCCESS, "");
    while (*at && ((*at)->rank != rank || (*at)->incarnation >= least))
        at = &(*at)->next;
    if (*at)
        dt_request_fail(at, DT_ERR_PROC_FAILED, "rank %zu has ended", rank);
}

void dt_membership_node_lost(struct dt_membership *m)
{
    m->changed = true;
}

void dt_membership_gone(struct dt_membership *m, size_t rank)
{
    unsigned char body[10] = {m->config.kind, GONE};
    if (!m->config.replaces)
        return; /* nobody waits for it */
    dt_wire_put(body + 2, 4, rank);
    dt_wire_put(body + 6, 4, dt_mesh_rank(m->mesh, rank)->incarnation);
    if (dt_mesh_broadcast(m->mesh, body, sizeof(body), NULL) ==
        DT_ERR_NO_MEMORY)
        dt_mesh_no_memory(m->mesh); /* others wait for it */
}

static void begin_term(struct dt_membership *m, size_t root)
{
    m->term = root;
    m->held = false;
    m->reported = root == m->self;
    m->changed = true;
    for (struct request *r = m->requests; r; r = r->next)
        r->sent = false;
}

int64_t dt_membership_progress(struct dt_membership *m, int64_t now)
{
    int64_t due = INT64_MAX;
    struct request *request;
    if (now > m->now)
        m->now = now;
    if (dt_mesh_root(m->mesh) != m->term)
        begin_term(m, dt_mesh_root(m->mesh));
    while ((request = dt_request_first_unsent(m)))
        dt_request_send(m, request);
    if (!m->reported)
        report_epoch(m);
    if (m->term == m->self) {
        if (!m->held)
            dt_root_recover(m);
        if (m->held)
            due = dt_root_check(m);
    }
    return dt_request_first_unsent(m) ? m->now : due;
}

/* ---- from the creation to the end ---- */

dt_result_t dt_membership_create(struct dt_membership **membership,
                                 struct dt_mesh *mesh, const struct dt_map *map,
                                 size_t self,
                                 const struct dt_membership_config *config,
                                 struct dt_error *err)
{
    struct dt_membership *m = calloc(1, sizeof(*m));
    if (!m)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for members");
    *m = (struct dt_membership){.mesh = mesh,
                                .map = map,
                                .self = self,
                                .config = *config,
                                .reported = true,
                                .held = true,
                                .changed = true};
    m->member = calloc(map->ranks, sizeof(*m->member));
    m->number = calloc(map->ranks, sizeof(*m->number));
    m->gone = calloc(map->ranks, sizeof(*m->gone));
    m->arrival = calloc(map->ranks, sizeof(*m->arrival));
    m->timed_out = calloc(map->ranks, sizeof(*m->timed_out));
    m->node = calloc(map->nodes, sizeof(*m->node));
    if (!m->member || !m->number || !m->gone || !m->arrival || !m->timed_out ||
        !m->node) {
        dt_membership_destroy(m);
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for members");
    }
    *membership = m;
    return DT_SUCCESS;
}

void dt_membership_destroy(struct dt_membership *m)
{
    if (!m)
        return;
    while (m->requests)
        dt_request_fail(&m->requests, DT_ERR_PROC_FAILED,
                        "the server has ended");
    for (size_t r = 0; m->arrival && r < m->map->ranks; r++)
        free(m->arrival[r]);
    dt_decision_free_all(m);
    free(m->member);
    free(m->number);
    free(m->gone);
    free(m->arrival);
    free(m->timed_out);
    free(m->node);
    free(m);
}
