/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* notification.c - events that all nodes are notified of. They go from
 * neighbour to neighbour; each has its origin and a number there, so that it
 * counts once.
 *
 *   EVENT   = origin u32 | number u32 | kind u8 | ...
 *   ENDED   : rank u32 | incarnation u32 | how u8 | finalized u8 | code i32
 *   JOINED  : rank u32 | incarnation u32
 *   LOST    : node u32 | why, a text to the end
 *   LEFT    : node u32
 *   BROADCAST : bytes to the end: dt_mesh_broadcast
 *   PROBE   : nothing
 *
 * The first number is 1. Number 0 is for what is not sent on: the LOST that
 * notifies a node of its own loss, and PROBE, by which a node checks one that
 * should have become its child. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mesh/mesh_state.h"

enum kind { ENDED = 1, JOINED, LOST, LEFT, BROADCAST, PROBE };

struct event {
    size_t origin;
    uint32_t number;
    enum kind kind;
    size_t node, rank;
    struct dt_mesh_rank state;
    const void *data; /* of LOST and BROADCAST, in the frame */
    size_t len;
};

dt_result_t dt_notification_open(struct dt_mesh *mesh)
{
    mesh->log.last = calloc(mesh->map->nodes, sizeof(mesh->log.last[0]));
    return mesh->log.last ? DT_SUCCESS : DT_ERR_NO_MEMORY;
}

static void forget_oldest(struct dt_notification_log *log)
{
    struct dt_frame *frame = log->frame[log->first];
    log->first = (log->first + 1) % DT_NOTIFICATION_LOG;
    log->count--;
    log->bytes -= frame->len;
    dt_frame_unref(frame);
}

void dt_notification_close(struct dt_mesh *mesh)
{
    while (mesh->log.count > 0)
        forget_oldest(&mesh->log);
    free(mesh->log.last);
}

static void remember(struct dt_notification_log *log, struct dt_frame *frame)
{
    while (
        log->count == DT_NOTIFICATION_LOG ||
        (log->count > 0 && log->bytes + frame->len > DT_NOTIFICATION_LOG_BYTES))
        forget_oldest(log);
    log->frame[(log->first + log->count) % DT_NOTIFICATION_LOG] =
        dt_frame_ref(frame);
    log->count++;
    log->bytes += frame->len;
}

void dt_notification_replay(struct dt_mesh *mesh, size_t node)
{
    const struct dt_notification_log *log = &mesh->log;
    for (size_t i = 0; i < log->count; i++)
        dt_mesh_send(mesh, node,
                     log->frame[(log->first + i) % DT_NOTIFICATION_LOG]);
}

/* ---- sending ---- */

static struct dt_frame *begin(struct dt_mesh *mesh, uint32_t number,
                              enum kind kind)
{
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_NEWS);
    dt_frame_uint(frame, 4, mesh->self);
    dt_frame_uint(frame, 4, number);
    dt_frame_uint(frame, 1, kind);
    return frame;
}

static struct dt_frame *begin_next(struct dt_mesh *mesh, enum kind kind)
{
    return begin(mesh, mesh->log.last[mesh->self] + 1, kind);
}

/* Send it to all neighbours but the one that it came from. */
static void forward(struct dt_mesh *mesh, struct dt_frame *frame, size_t from)
{
    const struct dt_members *m = &mesh->members;
    remember(&mesh->log, frame);
    if (m->parent != DT_NO_NODE && m->parent != from)
        dt_mesh_send(mesh, m->parent, frame);
    for (size_t i = 0; i < m->nchild; i++)
        if (m->child[i] != from)
            dt_mesh_send(mesh, m->child[i], frame);
}

/* Ownership of frame is transferred. */
static dt_result_t publish(struct dt_mesh *mesh, struct dt_frame *frame,
                           struct dt_error *err)
{
    dt_result_t rc = dt_frame_end(&frame, err);
    if (rc != DT_SUCCESS)
        return rc;
    mesh->log.last[mesh->self]++;
    forward(mesh, frame, mesh->self);
    dt_frame_unref(frame);
    return DT_SUCCESS;
}

static bool published(struct dt_mesh *mesh, struct dt_frame *frame)
{
    if (publish(mesh, frame, NULL) == DT_SUCCESS)
        return true;
    dt_mesh_no_memory(mesh);
    return false;
}

void dt_notification_node(struct dt_mesh *mesh, size_t node,
                          enum dt_node_state state, const char *why)
{
    bool lost = state == DT_NODE_LOST;
    struct dt_frame *frame = begin_next(mesh, lost ? LOST : LEFT);
    dt_frame_uint(frame, 4, node);
    if (lost)
        dt_frame_bytes(frame, why, strnlen(why, 255));
    if (published(mesh, frame))
        dt_mesh_apply_gone(mesh, node, state, why);
}

void dt_notification_probe(struct dt_mesh *mesh, size_t node)
{
    struct dt_frame *frame = begin(mesh, 0, PROBE);
    if (dt_frame_end(&frame, NULL) == DT_SUCCESS)
        dt_mesh_send(mesh, node, frame);
    dt_frame_unref(frame);
}

void dt_notification_refuse(struct dt_mesh *mesh, size_t node)
{
    static const char why[] = "its connection broke, or it was stopped for too "
                              "long";
    struct dt_frame *frame = begin(mesh, 0, LOST);
    dt_frame_uint(frame, 4, node);
    dt_frame_bytes(frame, why, sizeof(why) - 1);
    if (dt_frame_end(&frame, NULL) == DT_SUCCESS)
        dt_mesh_send(mesh, node, frame);
    dt_frame_unref(frame);
}

static bool ours(const struct dt_mesh *mesh, size_t rank)
{
    return rank < mesh->map->ranks && mesh->map->node_of[rank] == mesh->self;
}

void dt_mesh_rank_ended(struct dt_mesh *mesh, size_t rank,
                        const struct dt_mesh_rank *state)
{
    if (mesh->out || !ours(mesh, rank) || mesh->members.rank[rank].ended ||
        mesh->members.rank[rank].incarnation != state->incarnation)
        return;
    struct dt_mesh_rank ended = *state;
    struct dt_frame *frame = begin_next(mesh, ENDED);
    dt_mesh_enter(mesh);
    dt_frame_uint(frame, 4, rank);
    dt_frame_uint(frame, 4, ended.incarnation);
    dt_frame_uint(frame, 1, ended.how);
    dt_frame_uint(frame, 1, ended.finalized);
    dt_frame_uint(frame, 4, (uint32_t)ended.code);
    if (published(mesh, frame))
        dt_mesh_apply_ended(mesh, rank, &ended);
    dt_mesh_leave(mesh);
}

void dt_mesh_rank_joined(struct dt_mesh *mesh, size_t rank)
{
    if (mesh->out || !ours(mesh, rank) || !mesh->members.rank[rank].ended)
        return;
    uint32_t incarnation = mesh->members.rank[rank].incarnation + 1;
    struct dt_frame *frame = begin_next(mesh, JOINED);
    dt_mesh_enter(mesh);
    dt_frame_uint(frame, 4, rank);
    dt_frame_uint(frame, 4, incarnation);
    if (published(mesh, frame))
        dt_mesh_apply_joined(mesh, rank, incarnation);
    dt_mesh_leave(mesh);
}

dt_result_t dt_mesh_broadcast(struct dt_mesh *mesh, const void *data,
                              size_t len, struct dt_error *err)
{
    if (len > DT_MESH_BROADCAST_MAX)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "a broadcast of %zu bytes, expected at most %zu",
                            len, DT_MESH_BROADCAST_MAX);
    if (mesh->out)
        return dt_error_set(err, DT_ERR_PROC_FAILED,
                            "this node was declared lost by the others");
    struct dt_frame *frame = begin_next(mesh, BROADCAST);
    dt_mesh_enter(mesh);
    dt_frame_bytes(frame, data, len);
    dt_result_t rc = publish(mesh, frame, err);
    if (rc == DT_SUCCESS)
        mesh->host.broadcast(mesh->host.arg, mesh->self, data, len);
    dt_mesh_leave(mesh);
    return rc;
}

/* ---- receiving ---- */

/* All that is left. */
static void rest(struct dt_cursor *body, struct event *event)
{
    event->len = (size_t)(body->end - body->at);
    event->data = dt_cursor_bytes(body, event->len);
}

static bool read_rank(const struct dt_mesh *mesh, struct dt_cursor *body,
                      struct event *event)
{
    event->rank = dt_cursor_uint(body, 4);
    event->state.incarnation = (uint32_t)dt_cursor_uint(body, 4);
    if (event->kind == ENDED) {
        uint64_t how = dt_cursor_uint(body, 1);
        uint64_t finalized = dt_cursor_uint(body, 1);
        event->state.how = (enum dt_mesh_end)how;
        event->state.finalized = finalized != 0;
        event->state.code = (int)(uint32_t)dt_cursor_uint(body, 4);
        if (how > DT_END_NODE || finalized > 1)
            return false;
    }
    return event->rank < mesh->map->ranks &&
           mesh->map->node_of[event->rank] == event->origin;
}

static bool read_node(const struct dt_mesh *mesh, struct dt_cursor *body,
                      struct event *event)
{
    event->node = dt_cursor_uint(body, 4);
    rest(body, event);
    return (event->kind == LOST || event->len == 0) &&
           event->node < mesh->map->nodes && event->node != event->origin;
}

static bool read_event(const struct dt_mesh *mesh, struct dt_cursor *body,
                       struct event *event)
{
    bool good;
    *event = (struct event){.origin = dt_cursor_uint(body, 4)};
    event->number = (uint32_t)dt_cursor_uint(body, 4);
    event->kind = (enum kind)dt_cursor_uint(body, 1);
    switch (event->kind) {
    case ENDED:
    case JOINED:
        good = read_rank(mesh, body, event);
        break;
    case LOST:
    case LEFT:
        good = read_node(mesh, body, event);
        break;
    case BROADCAST:
        rest(body, event);
        good = event->len <= DT_MESH_BROADCAST_MAX;
        break;
    case PROBE:
        good = event->number == 0;
        break;
    default:
        good = false;
    }
    return good && !body->failed && body->at == body->end &&
           event->origin < mesh->map->nodes;
}

/* The text of LOST, made printable. */
static void reason(const struct event *event, char why[256])
{
    size_t len = event->len < 255 ? event->len : 255;
    if (len > 0)
        memcpy(why, event->data, len);
    why[len] = '\0';
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)why[i] < ' ' || why[i] == 127)
            why[i] = ' ';
}

static void apply(struct dt_mesh *mesh, const struct event *event)
{
    char why[256] = "";
    switch (event->kind) {
    case ENDED:
        dt_mesh_apply_ended(mesh, event->rank, &event->state);
        break;
    case JOINED:
        dt_mesh_apply_joined(mesh, event->rank, event->state.incarnation);
        break;
    case LOST:
        reason(event, why);
        dt_mesh_apply_gone(mesh, event->node, DT_NODE_LOST, why);
        break;
    case LEFT:
        dt_mesh_apply_gone(mesh, event->node, DT_NODE_LEFT, why);
        break;
    case BROADCAST:
        mesh->host.broadcast(mesh->host.arg, event->origin, event->data,
                             event->len);
        break;
    case PROBE:
        break;
    }
}

static void on_own_loss(struct dt_mesh *mesh, const struct event *event)
{
    char why[256], line[320];
    reason(event, why);
    snprintf(line, sizeof(line), "declared lost by node %zu: %s", event->origin,
             why);
    dt_mesh_declare_lost(mesh, line);
}

static bool is_own_loss(const struct dt_mesh *mesh, const struct event *event)
{
    return (event->kind == LOST || event->kind == LEFT) &&
           event->node == mesh->self;
}

void dt_notification_from_lost(struct dt_mesh *mesh, size_t from,
                               const struct dt_frame *frame)
{
    struct dt_cursor body = dt_frame_body(frame);
    struct event event;
    if (dt_frame_kind(frame) == DT_WIRE_NEWS &&
        read_event(mesh, &body, &event) && is_own_loss(mesh, &event))
        on_own_loss(mesh, &event); /* it has declared this node lost */
    else
        dt_notification_refuse(mesh, from);
}

dt_result_t dt_notification_receive(struct dt_mesh *mesh, size_t from,
                                    const struct dt_frame *frame,
                                    struct dt_error *err)
{
    struct dt_cursor body = dt_frame_body(frame);
    struct event event;
    if (!read_event(mesh, &body, &event))
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "NEWS of node %zu, %zu bytes, is malformed", from,
                            frame->len);
    if (is_own_loss(mesh, &event)) {
        on_own_loss(mesh, &event);
        return DT_SUCCESS;
    }
    if (event.kind == PROBE && event.origin == from) {
        mesh->members.probed_by[from] = true;
        return DT_SUCCESS;
    }
    if (!dt_mesh_is_neighbour(mesh, from) || event.number == 0 ||
        (event.origin == mesh->self &&
         event.number > mesh->log.last[mesh->self]))
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "NEWS %u of node %zu from node %zu, which cannot "
                            "have it or is no neighbour",
                            (unsigned)event.number, event.origin, from);
    if (event.number <= mesh->log.last[event.origin])
        return DT_SUCCESS;
    mesh->log.last[event.origin] = event.number;
    /* only its count changes */
    forward(mesh, (struct dt_frame *)frame, from);
    apply(mesh, &event);
    return DT_SUCCESS;
}
