/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ask.c - requests from node to node.
 *
 *   ASK    = id u64 | what u32 | data
 *   ANSWER = id u64 | status i32 | data
 *
 * id: the sender's, from 1; in an ANSWER its highest bit is set if there was no
 * memory for the data. A ticket is the sender's node and the id. */
#include <stdlib.h>

#include "mesh/mesh_state.h"

enum { ID_BITS = 40 };
#define ID_MASK   (((uint64_t)1 << ID_BITS) - 1)
#define NO_ANSWER ((uint64_t)1 << 63)

struct ask {
    struct dt_table_item item; /* of mesh->asks; the hash is the id */
    struct dt_ending ending;
    size_t node;
    struct dt_limit limit;
    dt_result_t rc;
    int32_t status;
    struct dt_frame *frame; /* the answer, and where its data begins */
    size_t at;
    void (*done)(void *arg, dt_result_t rc, int32_t status, const void *data,
                 size_t len);
    void *arg;
};

static void report(struct dt_ending *ending)
{
    struct ask *ask =
        (struct ask *)((char *)ending - offsetof(struct ask, ending));
    if (ask->rc == DT_SUCCESS)
        ask->done(ask->arg, ask->rc, ask->status, ask->frame->bytes + ask->at,
                  ask->frame->len - ask->at);
    else
        ask->done(ask->arg, ask->rc, 0, NULL, 0);
    dt_frame_unref(ask->frame);
    free(ask);
}

static void end(struct dt_mesh *mesh, struct ask *ask, dt_result_t rc)
{
    dt_table_remove(&mesh->asks, &ask->item);
    ask->rc = rc;
    ask->ending.report = report;
    dt_mesh_end_later(mesh, &ask->ending);
}

static struct ask *find(const struct dt_mesh *mesh, uint64_t id)
{
    return (struct ask *)dt_table_find(&mesh->asks, id, NULL);
}

/* ---- our requests ---- */

static struct ask *add(struct dt_mesh *mesh, size_t node, int64_t timeout)
{
    struct ask *ask = NULL;
    if (mesh->asks.count < DT_MESH_PENDING)
        ask = calloc(1, sizeof(*ask));
    if (!ask)
        return NULL;
    ask->node = node;
    ask->item.hash = mesh->asked + 1;
    dt_limit_begin(mesh, &ask->limit, timeout);
    if (dt_table_add(&mesh->asks, &ask->item) != DT_SUCCESS) {
        free(ask);
        return NULL;
    }
    mesh->asked++;
    return ask;
}

static void put(struct dt_mesh *mesh, struct ask *ask, uint32_t what,
                const void *data, size_t len)
{
    uint64_t id = ask->item.hash;
    if (ask->node == mesh->self) {
        mesh->host.asked(mesh->host.arg, mesh->self,
                         (uint64_t)mesh->self << ID_BITS | id, what, data, len);
        return;
    }
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_ASK);
    dt_frame_uint(frame, 8, id);
    dt_frame_uint(frame, 4, what);
    dt_frame_bytes(frame, data, len);
    if (dt_frame_end(&frame, NULL) == DT_SUCCESS)
        dt_mesh_send(mesh, ask->node, frame);
    else
        end(mesh, ask, DT_ERR_NO_MEMORY);
    dt_frame_unref(frame);
}

void dt_mesh_ask(struct dt_mesh *mesh, size_t node, uint32_t what,
                 const void *data, size_t len, int64_t timeout,
                 void (*done)(void *arg, dt_result_t rc, int32_t status,
                              const void *data, size_t len),
                 void *arg)
{
    dt_result_t rc = DT_ERR_PROC_FAILED;
    struct ask *ask = NULL;
    dt_mesh_enter(mesh);
    if (node >= mesh->map->nodes)
        rc = DT_ERR_INVALID_ARG;
    else if (!mesh->out && mesh->members.node[node] == DT_NODE_LIVES) {
        ask = add(mesh, node, timeout);
        rc = DT_ERR_NO_MEMORY;
    }
    if (ask) {
        ask->done = done;
        ask->arg = arg;
        put(mesh, ask, what, data, len);
    } else {
        done(arg, rc, 0, NULL, 0);
    }
    dt_mesh_leave(mesh);
}

dt_result_t dt_answer_receive(struct dt_mesh *mesh, size_t from,
                              const struct dt_frame *frame,
                              struct dt_error *err)
{
    struct dt_cursor body = dt_frame_body(frame);
    uint64_t word = dt_cursor_uint(&body, 8), id = word & ~NO_ANSWER;
    uint32_t status = (uint32_t)dt_cursor_uint(&body, 4);
    struct ask *ask = find(mesh, id);
    if (body.failed || id == 0 || id > mesh->asked ||
        (ask && ask->node != from))
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "an answer of node %zu to no request", from);
    if (!ask) /* too late */
        return DT_SUCCESS;
    ask->status = (int32_t)status;
    ask->frame =
        dt_frame_ref((struct dt_frame *)frame); /* only its count changes */
    ask->at = (size_t)(body.at - frame->bytes);
    end(mesh, ask, word == id ? DT_SUCCESS : DT_ERR_NO_MEMORY);
    return DT_SUCCESS;
}

/* ---- requests to us ---- */

dt_result_t dt_ask_receive(struct dt_mesh *mesh, size_t from,
                           const struct dt_frame *frame, struct dt_error *err)
{
    struct dt_cursor body = dt_frame_body(frame);
    uint64_t id = dt_cursor_uint(&body, 8);
    uint32_t what = (uint32_t)dt_cursor_uint(&body, 4);
    if (body.failed || id == 0 || id > ID_MASK)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "a request of node %zu, %zu bytes, is malformed",
                            from, frame->len);
    mesh->host.asked(mesh->host.arg, from, (uint64_t)from << ID_BITS | id, what,
                     body.at, (size_t)(body.end - body.at));
    return DT_SUCCESS;
}

/* NULL: no memory, or too long. */
static struct dt_frame *answer(uint64_t id, int32_t status, const void *data,
                               size_t len)
{
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_ANSWER);
    dt_frame_uint(frame, 8, id);
    dt_frame_uint(frame, 4, (uint32_t)status);
    dt_frame_bytes(frame, data, len);
    return dt_frame_end(&frame, NULL) == DT_SUCCESS ? frame : NULL;
}

void dt_mesh_answer(struct dt_mesh *mesh, uint64_t ticket, int32_t status,
                    const void *data, size_t len)
{
    uint64_t id = ticket & ID_MASK;
    size_t asker = ticket >> ID_BITS;
    struct ask *ask = asker == mesh->self ? find(mesh, id) : NULL;
    if (mesh->out || asker >= mesh->map->nodes ||
        mesh->members.node[asker] != DT_NODE_LIVES ||
        (asker == mesh->self && (!ask || ask->node != asker)))
        return;
    dt_mesh_enter(mesh);
    struct dt_frame *frame = answer(id, status, data, len);
    if (ask) {
        ask->status = status;
        ask->at = frame ? frame->len - len : 0;
        ask->frame = frame;
        end(mesh, ask, frame ? DT_SUCCESS : DT_ERR_NO_MEMORY);
        frame = NULL; /* owned by the request now */
    } else if (frame || (frame = answer(id | NO_ANSWER, 0, NULL, 0))) {
        dt_mesh_send(mesh, asker, frame);
    } else {
        dt_mesh_no_memory(mesh);
    }
    dt_frame_unref(frame);
    dt_mesh_leave(mesh);
}

/* ---- failures ---- */

struct visit {
    struct dt_mesh *mesh;
    size_t node;
};

static void fail_if_there(struct dt_table_item *item, void *arg)
{
    const struct visit *visit = arg;
    struct ask *ask = (struct ask *)item;
    if (ask->node == visit->node || visit->node == DT_NO_NODE)
        end(visit->mesh, ask, DT_ERR_PROC_FAILED);
}

void dt_ask_node_gone(struct dt_mesh *mesh, size_t node)
{
    dt_table_each(&mesh->asks, fail_if_there, &(struct visit){mesh, node});
}

void dt_ask_stop(struct dt_mesh *mesh)
{
    dt_ask_node_gone(mesh, DT_NO_NODE);
}

static void expire(struct dt_table_item *item, void *arg)
{
    struct dt_mesh *mesh = arg;
    struct ask *ask = (struct ask *)item;
    if (dt_limit_over(mesh, &ask->limit))
        end(mesh, ask, DT_ERR_TIMED_OUT);
}

void dt_ask_expire(struct dt_mesh *mesh)
{
    dt_table_each(&mesh->asks, expire, mesh);
}
