/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* notification.c - what all nodes are told. News go from neighbour to
 * neighbour; each has its origin and a number there, so that it counts once.
 *
 *   NEWS    = origin u32 | number u32 | kind u8 | ...
 *   ENDED   : rank u32 | incarnation u32 | how u8 | finalized u8 | code i32
 *   JOINED  : rank u32 | incarnation u32
 *   LOST    : node u32 | why, a text to the end
 *   LEFT    : node u32
 *   TOLD    : bytes to the end
 *   PROBE   : nothing
 *
 * The first number is 1. Number 0 is for what goes no further: the LOST that
 * tells a node of its own loss, and PROBE, by which a node looks after one that
 * should have become its child. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mesh/mesh_state.h"

enum kind { ENDED = 1, JOINED, LOST, LEFT, TOLD, PROBE };

struct news {
    size_t origin;
    uint32_t number;
    enum kind kind;
    size_t node, rank;
    struct dt_mesh_rank state;
    const void *data; /* of LOST and TOLD, in the frame */
    size_t len;
};

dt_result_t dt_notification_open(struct dt_mesh *mesh)
{
    mesh->news.last = calloc(mesh->map->nodes, sizeof(mesh->news.last[0]));
    return mesh->news.last ? DT_SUCCESS : DT_ERR_NO_MEMORY;
}

static void forget_oldest(struct dt_notification_log *book)
{
    struct dt_frame *frame = book->log[book->first];
    book->first = (book->first + 1) % DT_NOTIFICATION_LOG;
    book->count--;
    book->bytes -= frame->len;
    dt_frame_unref(frame);
}

void dt_notification_close(struct dt_mesh *mesh)
{
    while (mesh->news.count > 0)
        forget_oldest(&mesh->news);
    free(mesh->news.last);
}

static void remember(struct dt_notification_log *book, struct dt_frame *frame)
{
    while (book->count == DT_NOTIFICATION_LOG ||
           (book->count > 0 &&
            book->bytes + frame->len > DT_NOTIFICATION_LOG_BYTES))
        forget_oldest(book);
    book->log[(book->first + book->count) % DT_NOTIFICATION_LOG] =
        dt_frame_ref(frame);
    book->count++;
    book->bytes += frame->len;
}

void dt_notification_replay(struct dt_mesh *mesh, size_t node)
{
    const struct dt_notification_log *book = &mesh->news;
    for (size_t i = 0; i < book->count; i++)
        dt_mesh_send(mesh, node,
                     book->log[(book->first + i) % DT_NOTIFICATION_LOG]);
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
    return begin(mesh, mesh->news.last[mesh->self] + 1, kind);
}

/* On to all neighbours but the one that it came from. */
static void spread(struct dt_mesh *mesh, struct dt_frame *frame, size_t from)
{
    const struct dt_members *m = &mesh->members;
    remember(&mesh->news, frame);
    if (m->parent != DT_NO_NODE && m->parent != from)
        dt_mesh_send(mesh, m->parent, frame);
    for (size_t i = 0; i < m->nchild; i++)
        if (m->child[i] != from)
            dt_mesh_send(mesh, m->child[i], frame);
}

/* Takes frame. A node that cannot tell its news is of no use to the others. */
static dt_result_t publish(struct dt_mesh *mesh, struct dt_frame *frame,
                           struct dt_error *err)
{
    dt_result_t rc = dt_frame_end(&frame, err);
    if (rc != DT_SUCCESS)
        return rc;
    mesh->news.last[mesh->self]++;
    spread(mesh, frame, mesh->self);
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
        dt_members_gone(mesh, node, state, why);
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
    static const char why[] = "its connection had broken, or it had stood "
                              "still for too long";
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
        dt_members_rank_ended(mesh, rank, &ended);
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
        dt_members_rank_joined(mesh, rank, incarnation);
    dt_mesh_leave(mesh);
}

dt_result_t dt_mesh_broadcast(struct dt_mesh *mesh, const void *data,
                              size_t len, struct dt_error *err)
{
    if (len > DT_MESH_BROADCAST_MAX)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%zu bytes to tell all nodes, at most %zu can be",
                            len, DT_MESH_BROADCAST_MAX);
    if (mesh->out)
        return dt_error_set(err, DT_ERR_PROC_FAILED,
                            "this node was cast out by the others");
    struct dt_frame *frame = begin_next(mesh, TOLD);
    dt_mesh_enter(mesh);
    dt_frame_bytes(frame, data, len);
    dt_result_t rc = publish(mesh, frame, err);
    if (rc == DT_SUCCESS)
        mesh->host.broadcast(mesh->host.arg, mesh->self, data, len);
    dt_mesh_leave(mesh);
    return rc;
}

/* ---- receiving ---- */

/* What is left belongs to nothing else. */
static void rest(struct dt_cursor *body, struct news *news)
{
    news->len = (size_t)(body->end - body->at);
    news->data = dt_cursor_bytes(body, news->len);
}

static bool read_rank(const struct dt_mesh *mesh, struct dt_cursor *body,
                      struct news *news)
{
    news->rank = dt_cursor_uint(body, 4);
    news->state.incarnation = (uint32_t)dt_cursor_uint(body, 4);
    if (news->kind == ENDED) {
        uint64_t how = dt_cursor_uint(body, 1);
        uint64_t finalized = dt_cursor_uint(body, 1);
        news->state.how = (enum dt_mesh_end)how;
        news->state.finalized = finalized != 0;
        news->state.code = (int)(uint32_t)dt_cursor_uint(body, 4);
        if (how > DT_END_NODE || finalized > 1)
            return false;
    }
    return news->rank < mesh->map->ranks &&
           mesh->map->node_of[news->rank] == news->origin;
}

static bool read_node(const struct dt_mesh *mesh, struct dt_cursor *body,
                      struct news *news)
{
    news->node = dt_cursor_uint(body, 4);
    rest(body, news);
    return (news->kind == LOST || news->len == 0) &&
           news->node < mesh->map->nodes && news->node != news->origin;
}

static bool read_news(const struct dt_mesh *mesh, struct dt_cursor *body,
                      struct news *news)
{
    bool good;
    *news = (struct news){.origin = dt_cursor_uint(body, 4)};
    news->number = (uint32_t)dt_cursor_uint(body, 4);
    news->kind = (enum kind)dt_cursor_uint(body, 1);
    switch (news->kind) {
    case ENDED:
    case JOINED:
        good = read_rank(mesh, body, news);
        break;
    case LOST:
    case LEFT:
        good = read_node(mesh, body, news);
        break;
    case TOLD:
        rest(body, news);
        good = news->len <= DT_MESH_BROADCAST_MAX;
        break;
    case PROBE:
        good = news->number == 0;
        break;
    default:
        good = false;
    }
    return good && !body->failed && body->at == body->end &&
           news->origin < mesh->map->nodes;
}

/* The text of LOST, fit for a line. */
static void reason(const struct news *news, char why[256])
{
    size_t len = news->len < 255 ? news->len : 255;
    if (len > 0)
        memcpy(why, news->data, len);
    why[len] = '\0';
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)why[i] < ' ' || why[i] == 127)
            why[i] = ' ';
}

static void apply(struct dt_mesh *mesh, const struct news *news)
{
    char why[256] = "";
    switch (news->kind) {
    case ENDED:
        dt_members_rank_ended(mesh, news->rank, &news->state);
        break;
    case JOINED:
        dt_members_rank_joined(mesh, news->rank, news->state.incarnation);
        break;
    case LOST:
        reason(news, why);
        dt_members_gone(mesh, news->node, DT_NODE_LOST, why);
        break;
    case LEFT:
        dt_members_gone(mesh, news->node, DT_NODE_LEFT, why);
        break;
    case TOLD:
        mesh->host.broadcast(mesh->host.arg, news->origin, news->data,
                             news->len);
        break;
    case PROBE:
        break;
    }
}

static void declared_lost(struct dt_mesh *mesh, const struct news *news)
{
    char why[256], line[320];
    reason(news, why);
    snprintf(line, sizeof(line), "declared lost by node %zu: %s", news->origin,
             why);
    dt_mesh_declare_lost(mesh, line);
}

static bool of_our_end(const struct dt_mesh *mesh, const struct news *news)
{
    return (news->kind == LOST || news->kind == LEFT) &&
           news->node == mesh->self;
}

void dt_notification_from_lost(struct dt_mesh *mesh, size_t from,
                               const struct dt_frame *frame)
{
    struct dt_cursor body = dt_frame_body(frame);
    struct news news;
    if (dt_frame_kind(frame) == DT_WIRE_NEWS && read_news(mesh, &body, &news) &&
        of_our_end(mesh, &news))
        declared_lost(mesh, &news); /* it believes the same of us */
    else
        dt_notification_refuse(mesh, from);
}

dt_result_t dt_notification_receive(struct dt_mesh *mesh, size_t from,
                                    const struct dt_frame *frame,
                                    struct dt_error *err)
{
    struct dt_cursor body = dt_frame_body(frame);
    struct news news;
    if (!read_news(mesh, &body, &news))
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "NEWS of node %zu, %zu bytes, make no sense", from,
                            frame->len);
    if (of_our_end(mesh, &news)) {
        declared_lost(mesh, &news);
        return DT_SUCCESS;
    }
    if (news.kind == PROBE && news.origin == from) {
        mesh->members.probed_by[from] = true;
        return DT_SUCCESS;
    }
    if (!dt_members_near(mesh, from) || news.number == 0 ||
        (news.origin == mesh->self &&
         news.number > mesh->news.last[mesh->self]))
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "NEWS %u of node %zu by node %zu, which cannot "
                            "have it or is no neighbour",
                            (unsigned)news.number, news.origin, from);
    if (news.number <= mesh->news.last[news.origin])
        return DT_SUCCESS;
    mesh->news.last[news.origin] = news.number;
    /* only the count of references changes */
    spread(mesh, (struct dt_frame *)frame, from);
    apply(mesh, &news);
    return DT_SUCCESS;
}
