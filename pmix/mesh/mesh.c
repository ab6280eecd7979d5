/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* mesh.c - a node's mesh from its creation to its end: what comes in, and what
 * is told to the host. */
#include <stdlib.h>

#include "mesh/mesh_core.h"

void dt_mesh_enter(struct dt_mesh *mesh)
{
    mesh->busy++;
}

static void tell_first(struct dt_mesh *mesh)
{
    struct dt_ending *ending = mesh->ended;
    mesh->ended = ending->next;
    if (!mesh->ended)
        mesh->ended_end = &mesh->ended;
    ending->tell(ending);
}

void dt_mesh_leave(struct dt_mesh *mesh)
{
    while (mesh->busy == 1 && (mesh->ended || (mesh->starved && !mesh->out)))
        if (mesh->ended)
            tell_first(mesh);
        else
            dt_mesh_cast_out(mesh, "no memory for what other nodes wait for");
    mesh->busy--;
}

void dt_mesh_starve(struct dt_mesh *mesh)
{
    mesh->starved = true;
}

void dt_mesh_end_later(struct dt_mesh *mesh, struct dt_ending *ending)
{
    ending->next = NULL;
    *mesh->ended_end = ending;
    mesh->ended_end = &ending->next;
}

void dt_limit_begin(struct dt_mesh *mesh, struct dt_limit *limit, int64_t ms)
{
    *limit = (struct dt_limit){.ms = ms};
    if (ms > 0)
        mesh->due = INT64_MIN;
}

bool dt_limit_over(struct dt_mesh *mesh, struct dt_limit *limit)
{
    if (limit->ms <= 0)
        return false;
    if (limit->end == 0)
        limit->end = limit->ms < INT64_MAX - mesh->now ? mesh->now + limit->ms
                                                       : INT64_MAX;
    if (limit->end <= mesh->now)
        return true;
    if (limit->end < mesh->due)
        mesh->due = limit->end;
    return false;
}

/* Everything in flight fails; the host is told by and by. */
static void stop(struct dt_mesh *mesh)
{
    mesh->out = true;
    dt_collect_stop(mesh);
    dt_ask_stop(mesh);
}

void dt_mesh_cast_out(struct dt_mesh *mesh, const char *why)
{
    if (mesh->out)
        return;
    stop(mesh);
    mesh->host.cast_out(mesh->host.arg, why);
}

void dt_mesh_send(struct dt_mesh *mesh, size_t node, struct dt_frame *frame)
{
    if (!mesh->out && !mesh->members.unreachable[node])
        mesh->host.send(mesh->host.arg, node, frame);
}

dt_result_t dt_mesh_create(struct dt_mesh **mesh, const struct dt_map *map,
                           size_t self, const struct dt_mesh_host *host,
                           int64_t now, struct dt_error *err)
{
    if (self >= map->nodes)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "node %zu, the map has nodes 0 to %zu", self,
                            map->nodes - 1);
    struct dt_mesh *m = calloc(1, sizeof(*m));
    if (!m)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for the mesh");
    *m = (struct dt_mesh){
        .map = map, .self = self, .host = *host, .now = now, .due = INT64_MAX};
    m->ended_end = &m->ended;
    m->marks = calloc(map->nodes / 64 + 1, sizeof(m->marks[0]));
    dt_result_t rc = DT_ERR_NO_MEMORY;
    if (!m->marks || dt_members_open(m) != DT_SUCCESS ||
        dt_news_open(m) != DT_SUCCESS)
        rc = dt_error_set(err, rc, "no memory for the mesh");
    else
        rc = dt_members_join(m, err);
    if (rc != DT_SUCCESS)
        dt_mesh_destroy(m);
    else
        *mesh = m;
    return rc;
}

void dt_mesh_destroy(struct dt_mesh *mesh)
{
    if (!mesh)
        return;
    dt_mesh_enter(mesh);
    stop(mesh);
    dt_mesh_leave(mesh);
    dt_table_free(&mesh->keys);
    dt_table_free(&mesh->asks);
    dt_news_close(mesh);
    dt_members_close(mesh);
    free(mesh->marks);
    free(mesh);
}

static dt_result_t dispatch(struct dt_mesh *mesh, size_t from,
                            const struct dt_frame *frame, struct dt_error *err)
{
    struct dt_cursor body = dt_frame_body(frame);
    switch (dt_frame_kind(frame)) {
    case DT_WIRE_JOIN:
        return dt_members_joined(mesh, from, &body, err);
    case DT_WIRE_NEWS:
        return dt_news_receive(mesh, from, frame, err);
    case DT_WIRE_COLLECT:
    case DT_WIRE_RESULT:
        return dt_collect_receive(mesh, from, frame, err);
    case DT_WIRE_ASK:
        return dt_ask_receive(mesh, from, frame, err);
    case DT_WIRE_ANSWER:
        return dt_answer_receive(mesh, from, frame, err);
    default:
        return dt_error_set(
            err, DT_ERR_CORRUPT, "a message of kind %d, expected %d to %d",
            (int)dt_frame_kind(frame), DT_WIRE_JOIN, DT_WIRE_ANSWER);
    }
}

dt_result_t dt_mesh_receive(struct dt_mesh *mesh, size_t from,
                            const struct dt_frame *frame, struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    if (from >= mesh->map->nodes || from == mesh->self)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "a message from node %zu, expected another of 0 "
                            "to %zu",
                            from, mesh->map->nodes - 1);
    if (mesh->out)
        return DT_SUCCESS;
    dt_mesh_enter(mesh);
    if (mesh->members.node[from] == DT_NODE_LIVES)
        rc = dispatch(mesh, from, frame, err);
    else if (mesh->members.node[from] == DT_NODE_LOST)
        dt_news_from_lost(mesh, from, frame);
    dt_mesh_leave(mesh);
    return rc;
}

int64_t dt_mesh_turn(struct dt_mesh *mesh, int64_t now)
{
    dt_mesh_enter(mesh);
    if (now > mesh->now)
        mesh->now = now;
    if (mesh->now >= mesh->due) {
        mesh->due = INT64_MAX; /* those that stay say when they are due */
        dt_collect_expire(mesh);
        dt_ask_expire(mesh);
    }
    dt_members_turn(mesh);
    dt_mesh_leave(mesh);
    int64_t due =
        mesh->members.look < mesh->due ? mesh->members.look : mesh->due;
    return due > mesh->now ? due : mesh->now;
}

size_t dt_mesh_root(const struct dt_mesh *mesh)
{
    return mesh->members.root;
}

bool dt_mesh_node_lives(const struct dt_mesh *mesh, size_t node)
{
    return mesh->members.node[node] == DT_NODE_LIVES;
}

const struct dt_mesh_rank *dt_mesh_rank(const struct dt_mesh *mesh, size_t rank)
{
    return &mesh->members.rank[rank];
}
