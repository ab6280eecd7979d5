/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* root.c - the root decides. */
#include "membership/membership_state.h"

#include <stdio.h>

enum { PART_HEAD = 22 }; /* of a DECISION, with the kind in front */

static size_t minimum(const struct dt_membership *m)
{
    return m->config.minimum ? m->config.minimum : 1;
}

/* NULL: no memory, or too long. */
static struct dt_frame *pack_members(const struct dt_membership *m)
{
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_NEWS);
    dt_frame_uint(frame, 4, m->arrivals);
    for (size_t r = 0; r < m->map->ranks; r++) {
        const struct arrival *arrival = m->arrival[r];
        if (!arrival)
            continue;
        dt_frame_uint(frame, 4, r);
        dt_frame_uint(frame, 4, arrival->incarnation);
        dt_frame_uint(frame, 8, arrival->number);
        dt_frame_blob(frame, arrival->card, arrival->len);
    }
    if (dt_frame_end(&frame, NULL) != DT_SUCCESS)
        return NULL;
    if (frame->len <= DT_MEMBERSHIP_MAX)
        return frame;
    dt_frame_unref(frame);
    return NULL;
}

static dt_result_t send_parts(struct dt_membership *m, struct dt_cursor bytes)
{
    size_t length = (size_t)(bytes.end - bytes.at), offset = 0;
    size_t most = DT_MESH_BROADCAST_MAX - PART_HEAD;
    unsigned char *part = malloc(DT_MESH_BROADCAST_MAX);
    dt_result_t rc = part ? DT_SUCCESS : DT_ERR_NO_MEMORY;
    uint64_t epoch = m->last.epoch + 1; /* the last part changes it */
    while (rc == DT_SUCCESS && offset < length) {
        size_t len = length - offset < most ? length - offset : most;
        part[0] = m->config.kind;
        part[1] = DECISION;
        dt_wire_put(part + 2, 4, m->term);
        dt_wire_put(part + 6, 8, epoch);
        dt_wire_put(part + 14, 4, length);
        dt_wire_put(part + 18, 4, offset);
        memcpy(part + PART_HEAD, bytes.at + offset, len);
        rc = dt_mesh_broadcast(m->mesh, part, PART_HEAD + len, NULL);
        offset += len;
    }
    free(part);
    return rc;
}

static void decide(struct dt_membership *m)
{
    struct dt_frame *members = pack_members(m);
    dt_result_t rc = DT_ERR_NO_MEMORY;
    if (members)
        rc = send_parts(m, dt_frame_body(members));
    dt_frame_unref(members);
    if (rc != DT_SUCCESS)
        dt_arrival_fail_all(m, DT_ERR_NO_MEMORY,
                            "no memory for the cards, or they are too long");
}

/* Those whose time is over fail. Returns the next time. */
static int64_t expire(struct dt_membership *m)
{
    int64_t due = INT64_MAX;
    char text[900] = "";
    for (size_t r = 0; r < m->map->ranks; r++) {
        struct arrival *arrival = m->arrival[r];
        if (!arrival || !arrival->timeout)
            continue;
        if (!arrival->end)
            arrival->end = m->now + arrival->timeout;
        if (m->now < arrival->end) {
            due = arrival->end < due ? arrival->end : due;
            continue;
        }
        if (!*text) /* before those that fail now are lacking, too */
            dt_arrival_describe_lacking(m, text, sizeof(text));
        m->timed_out[r] = true;
        dt_arrival_drop(m, r, DT_ERR_TIMED_OUT, text);
    }
    return due;
}

int64_t dt_root_check(struct dt_membership *m)
{
    if (m->arrivals == 0)
        return INT64_MAX;
    dt_arrival_count(m);
    if (m->living < minimum(m)) {
        char text[128];
        snprintf(text, sizeof(text),
                 "%zu rank%s left, fewer than the minimum of %zu (--elastic)",
                 m->living, m->living == 1 ? " is" : "s are", minimum(m));
        dt_arrival_fail_all(m, DT_ERR_PROC_FAILED, text);
        return INT64_MAX;
    }
    if (dt_arrival_any_lacking(m) || m->arrivals < minimum(m))
        return expire(m);
    decide(m);
    return INT64_MAX;
}

void dt_root_recover(struct dt_membership *m)
{
    struct decided hold = m->last;
    unsigned char body[18] = {m->config.kind, HOLDS};
    for (size_t i = 0; i < m->map->nodes; i++) {
        if (i == m->self || !dt_mesh_node_lives(m->mesh, i))
            continue;
        if (!m->node[i].reported)
            return;
        if (m->node[i].last.epoch > hold.epoch)
            hold = m->node[i].last;
    }
    const struct decision *last = dt_decision_find(m, hold);
    if (!dt_decided_same(hold, m->last) &&
        (!last || !dt_decision_is_complete(last)))
        return; /* it will come, as a node that lives has it */
    dt_wire_put(body + 2, 4, m->term);
    dt_decided_put(body + 6, hold);
    if (dt_mesh_broadcast(m->mesh, body, sizeof(body), NULL) ==
        DT_ERR_NO_MEMORY)
        dt_mesh_no_memory(m->mesh);
}

void dt_root_take_epoch(struct dt_membership *m, size_t from,
                        struct dt_cursor *body)
{
    size_t term = dt_cursor_uint(body, 4);
    struct decided last = dt_decided_get(body);
    if (body->failed || term != m->self)
        return;
    m->node[from].reported = true;
    m->node[from].last = last;
}
