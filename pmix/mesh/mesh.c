/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* mesh.c - a node's mesh: its members, and what it receives. */
#include <stdlib.h>

#include "mesh/mesh_state.h"

/* Everything in flight fails. */
static void stop(struct dt_mesh *mesh)
{
    mesh->out = true;
    dt_collect_stop(mesh);
    dt_ask_stop(mesh);
}

void dt_mesh_declare_lost(struct dt_mesh *mesh, const char *why)
{
    if (mesh->out)
        return;
    stop(mesh);
    mesh->host.declared_lost(mesh->host.arg, why);
}

/* ---- which nodes and ranks live, and the neighbours in the tree ---- */

/* The parent of a node: the nearest living ancestor; where there is none, the
 * root. Its number is always lower, so neighbours never form a circle. */
static size_t parent_of(const struct dt_members *m, size_t node)
{
    for (size_t i = node; i > 0;) {
        i = dt_tree_parent(i);
        if (m->node[i] == DT_NODE_LIVES)
            return i;
    }
    return m->root == node ? DT_NO_NODE : m->root;
}

static dt_result_t open_members(struct dt_mesh *mesh)
{
    struct dt_members *m = &mesh->members;
    m->node = calloc(mesh->map->nodes, sizeof(m->node[0]));
    m->unreachable = calloc(mesh->map->nodes, sizeof(m->unreachable[0]));
    m->probed_by = calloc(mesh->map->nodes, sizeof(m->probed_by[0]));
    m->rank = calloc(mesh->map->ranks + 1, sizeof(m->rank[0]));
    m->parent = DT_NO_NODE;
    m->look = mesh->now + DT_MESH_JOIN_MS;
    return m->node && m->unreachable && m->probed_by && m->rank
               ? DT_SUCCESS
               : DT_ERR_NO_MEMORY;
}

static void close_members(struct dt_mesh *mesh)
{
    free(mesh->members.node);
    free(mesh->members.unreachable);
    free(mesh->members.probed_by);
    free(mesh->members.rank);
    free(mesh->members.child);
}

static dt_result_t join_parent(struct dt_mesh *mesh, struct dt_error *err)
{
    size_t parent = parent_of(&mesh->members, mesh->self);
    if (parent != DT_NO_NODE) {
        struct dt_frame *join = dt_frame_begin(DT_WIRE_JOIN);
        dt_result_t rc = dt_frame_end(&join, err);
        if (rc != DT_SUCCESS)
            return rc;
        dt_mesh_send(mesh, parent, join);
        dt_frame_unref(join);
    }
    mesh->members.parent = parent;
    return DT_SUCCESS;
}

static size_t child_index(const struct dt_members *m, size_t node)
{
    size_t i = 0;
    while (i < m->nchild && m->child[i] != node)
        i++;
    return i;
}

bool dt_mesh_is_neighbour(const struct dt_mesh *mesh, size_t node)
{
    const struct dt_members *m = &mesh->members;
    return node == m->parent || child_index(m, node) < m->nchild;
}

static dt_result_t add_child(struct dt_mesh *mesh, size_t from,
                             struct dt_cursor *body, struct dt_error *err)
{
    struct dt_members *m = &mesh->members;
    if (body->at != body->end)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "JOIN of node %zu has %td bytes, expected none",
                            from, body->end - body->at);
    if (from < mesh->self || child_index(m, from) < m->nchild)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "node %zu joins %zu, which is %s", from, mesh->self,
                            from < mesh->self ? "no parent for it"
                                              : "its parent already");
    if (m->nchild == m->room) {
        size_t room = m->room ? 2 * m->room : DT_MESH_WIDTH;
        size_t *child = realloc(m->child, room * sizeof(child[0]));
        if (!child)
            return dt_error_set(err, DT_ERR_NO_MEMORY,
                                "no memory for one more neighbour");
        m->child = child;
        m->room = room;
    }
    m->child[m->nchild++] = from;
    dt_notification_replay(mesh, from);
    return DT_SUCCESS;
}

static void not_living(struct dt_mesh *mesh, size_t node,
                       enum dt_node_state state)
{
    struct dt_members *m = &mesh->members;
    m->node[node] = (uint8_t)state;
    while (m->node[m->root] != DT_NODE_LIVES) /* ends at this node */
        m->root++;
    dt_ask_node_gone(mesh, node);
}

static void find_new_parent(struct dt_mesh *mesh)
{
    if (join_parent(mesh, NULL) != DT_SUCCESS)
        dt_mesh_no_memory(mesh);
    else if (mesh->members.parent != DT_NO_NODE)
        dt_notification_replay(mesh, mesh->members.parent);
}

void dt_mesh_apply_gone(struct dt_mesh *mesh, size_t node,
                        enum dt_node_state state, const char *why)
{
    struct dt_members *m = &mesh->members;
    const struct dt_map_entry *entry = &mesh->map->entry[node];
    struct dt_mesh_rank ended = {.ended = true, .how = DT_END_NODE};
    if (m->node[node] == DT_NODE_LOST || m->node[node] == DT_NODE_LEFT)
        return;
    not_living(mesh, node, state);
    if (state == DT_NODE_LOST && m->probed_by[node])
        dt_notification_refuse(mesh, node);
    size_t i = child_index(m, node);
    if (i < m->nchild)
        m->child[i] = m->child[--m->nchild];
    if (node == m->parent)
        find_new_parent(mesh);
    m->look = mesh->now;
    for (i = 0; i < entry->nranks; i++) {
        ended.incarnation = m->rank[entry->ranks[i]].incarnation;
        dt_mesh_apply_ended(mesh, entry->ranks[i], &ended);
    }
    if (state == DT_NODE_LOST && !mesh->out)
        mesh->host.node_lost(mesh->host.arg, node, why);
}

void dt_mesh_apply_ended(struct dt_mesh *mesh, size_t rank,
                         const struct dt_mesh_rank *state)
{
    struct dt_mesh_rank *r = &mesh->members.rank[rank];
    struct dt_mesh_rank before = *r;
    if (mesh->out || state->incarnation < r->incarnation ||
        (state->incarnation == r->incarnation && r->ended))
        return;
    *r = *state;
    r->ended = true;
    dt_collect_rank(mesh, rank, &before);
    struct dt_mesh_rank copy = *r; /* the upcall may change it */
    mesh->host.ended(mesh->host.arg, rank, &copy);
}

void dt_mesh_apply_joined(struct dt_mesh *mesh, size_t rank,
                          uint32_t incarnation)
{
    struct dt_mesh_rank *r = &mesh->members.rank[rank];
    struct dt_mesh_rank before = *r;
    size_t node = mesh->map->node_of[rank];
    if (incarnation <= r->incarnation)
        return;
    *r = (struct dt_mesh_rank){.incarnation = incarnation};
    dt_collect_rank(mesh, rank, &before);
    mesh->host.joined(mesh->host.arg, rank, incarnation);
    /* the event of its node may have come before its own */
    if (mesh->members.node[node] == DT_NODE_LOST ||
        mesh->members.node[node] == DT_NODE_LEFT)
        dt_mesh_apply_ended(mesh, rank,
                            &(struct dt_mesh_rank){.incarnation = incarnation,
                                                   .how = DT_END_NODE});
}

void dt_mesh_node_lost(struct dt_mesh *mesh, size_t node, const char *why)
{
    struct dt_members *m = &mesh->members;
    if (node >= mesh->map->nodes || node == mesh->self || m->unreachable[node])
        return;
    dt_mesh_enter(mesh);
    m->unreachable[node] = true;
    if (!mesh->out && m->node[node] == DT_NODE_LIVES)
        dt_notification_node(mesh, node, DT_NODE_LOST, why);
    dt_mesh_leave(mesh);
}

void dt_mesh_node_left(struct dt_mesh *mesh, size_t node)
{
    struct dt_members *m = &mesh->members;
    if (node >= mesh->map->nodes || node == mesh->self || m->unreachable[node])
        return;
    dt_mesh_enter(mesh);
    m->unreachable[node] = true;
    /* Its neighbours have all its events from before it left; a report by
     * another node could overtake the last of them. If it had no new parent
     * yet, the node that it should have joined reports it. */
    if (!mesh->out && m->node[node] == DT_NODE_LIVES) {
        if (dt_mesh_is_neighbour(mesh, node) ||
            parent_of(m, node) == mesh->self)
            dt_notification_node(mesh, node, DT_NODE_LEFT, "");
        else
            not_living(mesh, node, DT_NODE_LEAVING);
    }
    dt_mesh_leave(mesh);
}

static void check_members(struct dt_mesh *mesh)
{
    struct dt_members *m = &mesh->members;
    if (mesh->now < m->look)
        return;
    m->look = INT64_MAX;
    for (size_t i = 0; i < mesh->map->nodes && !mesh->out; i++)
        if (m->node[i] == DT_NODE_LEAVING)
            dt_notification_node(mesh, i, DT_NODE_LEFT, "");
        else if (m->node[i] == DT_NODE_LIVES && parent_of(m, i) == mesh->self &&
                 !dt_mesh_is_neighbour(mesh, i))
            dt_notification_probe(mesh, i);
}

/* ---- from the creation to the end ---- */

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
    *m = (struct dt_mesh){.map = map,
                          .self = self,
                          .host = *host,
                          .now = now,
                          .due = INT64_MAX,
                          .declare_lost = dt_mesh_declare_lost};
    m->ended_end = &m->ended;
    m->marks = calloc(map->nodes / 64 + 1, sizeof(m->marks[0]));
    dt_result_t rc = DT_ERR_NO_MEMORY;
    if (!m->marks || open_members(m) != DT_SUCCESS ||
        dt_notification_open(m) != DT_SUCCESS)
        rc = dt_error_set(err, rc, "no memory for the mesh");
    else
        rc = join_parent(m, err);
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
    dt_notification_close(mesh);
    close_members(mesh);
    free(mesh->marks);
    free(mesh);
}

static dt_result_t dispatch(struct dt_mesh *mesh, size_t from,
                            const struct dt_frame *frame, struct dt_error *err)
{
    struct dt_cursor body = dt_frame_body(frame);
    switch (dt_frame_kind(frame)) {
    case DT_WIRE_JOIN:
        return add_child(mesh, from, &body, err);
    case DT_WIRE_NEWS:
        return dt_notification_receive(mesh, from, frame, err);
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
        dt_notification_from_lost(mesh, from, frame);
    dt_mesh_leave(mesh);
    return rc;
}

int64_t dt_mesh_progress(struct dt_mesh *mesh, int64_t now)
{
    dt_mesh_enter(mesh);
    if (now > mesh->now)
        mesh->now = now;
    if (mesh->now >= mesh->due) {
        mesh->due = INT64_MAX; /* those that stay set it */
        dt_collect_expire(mesh);
        dt_ask_expire(mesh);
    }
    check_members(mesh);
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
