/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* collect.c - collectives. The parts go up the tree of the key's nodes and are
 * concatenated; the result goes down, the same bytes to all nodes.
 *
 *   COLLECT, RESULT = key blob | number u32 | status i32 | nodes u32 | data
 *
 * number: how often a node has started this key before. status: 0, or the
 * dt_result_t of the failure, which goes up and down to all. nodes: how many
 * nodes' parts the data has. If a rank has ended nothing is sent, as every node
 * is notified of that. */
#include <stdlib.h>
#include <string.h>

#include "mesh/key.h"

struct dt_collect {
    struct dt_ending ending;
    struct dt_collect *next; /* of the key */
    struct dt_mesh *mesh;
    struct dt_key *key;
    uint32_t number;
    bool started, sent;
    unsigned arrived;                     /* a bit per child */
    struct dt_frame *part[DT_MESH_WIDTH]; /* parts that came before the start */
    struct dt_frame *frame; /* our part, being written; the result */
    size_t at;              /* where its data begins */
    dt_result_t rc;
    struct dt_limit limit;
    void (*done)(void *arg, dt_result_t rc, const void *data, size_t len);
    void *arg;
};

/* The fields of a frame. */
struct message {
    const void *key;
    size_t key_len;
    uint32_t number;
    dt_result_t status;
    size_t nodes;
    const unsigned char *data;
    size_t len;
};

static bool read_message(const struct dt_frame *frame, struct message *m)
{
    struct dt_cursor body = dt_frame_body(frame);
    if (!dt_cursor_blob(&body, &m->key, &m->key_len))
        return false;
    m->number = (uint32_t)dt_cursor_uint(&body, 4);
    m->status = (dt_result_t)(int32_t)(uint32_t)dt_cursor_uint(&body, 4);
    m->nodes = dt_cursor_uint(&body, 4);
    m->data = body.at;
    m->len = (size_t)(body.end - body.at);
    return !body.failed &&
           (m->status == DT_SUCCESS || m->status == DT_ERR_TIMED_OUT ||
            m->status == DT_ERR_NO_MEMORY);
}

static struct dt_frame *begin(enum dt_wire_kind kind, const struct dt_key *key,
                              uint32_t number, dt_result_t status, size_t nodes)
{
    struct dt_frame *frame = dt_frame_begin(kind);
    dt_frame_blob(frame, key->bytes, key->len);
    dt_frame_uint(frame, 4, number);
    dt_frame_uint(frame, 4, (uint32_t)status);
    dt_frame_uint(frame, 4, nodes);
    return frame;
}

/* ---- begin and end ---- */

static void release(struct dt_collect *c)
{
    for (size_t i = 0; i < DT_MESH_WIDTH; i++)
        dt_frame_unref(c->part[i]);
    dt_frame_unref(c->frame);
    free(c);
}

static void report(struct dt_ending *ending)
{
    struct dt_collect *c = (struct dt_collect *)ending;
    if (c->rc == DT_SUCCESS)
        c->done(c->arg, c->rc, c->frame->bytes + c->at, c->frame->len - c->at);
    else
        c->done(c->arg, c->rc, NULL, 0);
    release(c);
}

static struct dt_collect *find(const struct dt_key *key, uint32_t number)
{
    struct dt_collect *c = key->flights;
    while (c && c->number != number)
        c = c->next;
    return c;
}

static struct dt_collect *add(struct dt_mesh *mesh, struct dt_key *key,
                              uint32_t number)
{
    struct dt_collect *c = NULL;
    if (mesh->collectives < DT_MESH_PENDING)
        c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->mesh = mesh;
    c->key = key;
    c->ending.report = report;
    c->number = number;
    c->next = key->flights;
    key->flights = c;
    mesh->collectives++;
    return c;
}

/* It has ended on this node. */
static void end(struct dt_collect *c, dt_result_t rc)
{
    struct dt_collect **at = &c->key->flights;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    c->mesh->collectives--;
    c->rc = rc;
    if (c->started)
        dt_mesh_end_later(c->mesh, &c->ending);
    else
        release(c);
}

static void send_down(struct dt_mesh *mesh, const struct dt_key *key,
                      size_t but, struct dt_frame *frame)
{
    for (size_t i = 0; i < key->nchild; i++)
        if (key->child[i] != but)
            dt_mesh_send(mesh, key->child[i], frame);
}

/* Notify the key's other nodes that it fails, but the one that the failure came
 * from. */
static void send_failure(struct dt_mesh *mesh, const struct dt_key *key,
                         uint32_t number, dt_result_t rc, size_t from)
{
    struct dt_frame *up = begin(DT_WIRE_COLLECT, key, number, rc, 0);
    struct dt_frame *down = begin(DT_WIRE_RESULT, key, number, rc, 0);
    if (dt_frame_end(&up, NULL) == DT_SUCCESS && key->parent != DT_NO_NODE &&
        key->parent != from)
        dt_mesh_send(mesh, key->parent, up);
    if (dt_frame_end(&down, NULL) == DT_SUCCESS)
        send_down(mesh, key, from, down);
    if (!up || !down)
        dt_mesh_no_memory(mesh);
    dt_frame_unref(up);
    dt_frame_unref(down);
}

/* It fails for all; a node that has not started it gets the failure when it
 * does. */
static void fail(struct dt_collect *c, dt_result_t rc, size_t from)
{
    if (c->rc != DT_SUCCESS)
        return;
    send_failure(c->mesh, c->key, c->number, rc, from);
    if (c->started)
        end(c, rc);
    else
        c->rc = rc;
}

/* ---- parts and results ---- */

/* All parts of this node and those below are there: send them on. */
static void complete(struct dt_collect *c)
{
    struct dt_mesh *mesh = c->mesh;
    struct dt_key *key = c->key;
    if (c->arrived != (1U << key->nchild) - 1)
        return;
    if (dt_frame_end(&c->frame, NULL) != DT_SUCCESS) {
        fail(c, DT_ERR_NO_MEMORY, DT_NO_NODE);
    } else if (key->parent == DT_NO_NODE) {
        send_down(mesh, key, DT_NO_NODE, c->frame);
        end(c, DT_SUCCESS);
    } else {
        dt_mesh_send(mesh, key->parent, c->frame);
        dt_frame_unref(c->frame);
        c->frame = NULL;
        c->sent = true;
    }
}

static void take_part(struct dt_collect *c, const struct dt_frame *frame)
{
    struct message m;
    if (read_message(frame, &m))
        dt_frame_bytes(c->frame, m.data, m.len);
}

/* Nodes whose parts this node sends on. */
static size_t nodes_here(const struct dt_key *key)
{
    size_t n = 1;
    for (size_t i = 0; i < key->nchild; i++)
        n += dt_key_below(key, i);
    return n;
}

static void start(struct dt_collect *c, const void *data, size_t len)
{
    struct dt_key *key = c->key;
    bool top = key->parent == DT_NO_NODE;
    c->frame = begin(top ? DT_WIRE_RESULT : DT_WIRE_COLLECT, key, c->number,
                     DT_SUCCESS, nodes_here(key));
    c->at = c->frame ? c->frame->len : 0;
    dt_frame_bytes(c->frame, data, len);
    for (size_t i = 0; i < key->nchild; i++)
        if (c->part[i]) {
            take_part(c, c->part[i]);
            dt_frame_unref(c->part[i]);
            c->part[i] = NULL;
        }
    complete(c);
}

void dt_mesh_collect(struct dt_mesh *mesh, const struct dt_collective *what,
                     const void *data, size_t len, int64_t timeout,
                     void (*done)(void *arg, dt_result_t rc, const void *data,
                                  size_t len),
                     void *arg)
{
    struct dt_frame *bytes = NULL;
    struct dt_key *key = NULL;
    struct dt_collect *c = NULL;
    dt_result_t rc = DT_ERR_PROC_FAILED;
    dt_mesh_enter(mesh);
    if (!mesh->out)
        rc = dt_key_bytes(mesh, what, &bytes);
    if (rc == DT_SUCCESS)
        rc = dt_key_find(mesh, bytes->bytes + 5, bytes->len - 5, &key, NULL);
    dt_frame_unref(bytes);
    if (rc == DT_ERR_NO_MEMORY && mesh->keys.count < DT_MESH_PENDING)
        dt_mesh_no_memory(
            mesh); /* the others would take the next one for this */
    if (rc == DT_SUCCESS) {
        c = find(key, key->starts);
        if (!c)
            c = add(mesh, key, key->starts);
        if (!c)
            send_failure(mesh, key, key->starts, DT_ERR_NO_MEMORY, DT_NO_NODE);
        key->starts++;
    }
    if (c) {
        c->started = true;
        c->done = done;
        c->arg = arg;
        dt_limit_begin(mesh, &c->limit, timeout);
        if (c->rc == DT_SUCCESS)
            start(c, data, len);
        else
            end(c, c->rc);
    }
    if (key && key->nodes == 1 && !key->flights) /* no other node counts */
        dt_key_free(mesh, key);
    if (!c)
        done(arg, rc == DT_SUCCESS ? DT_ERR_NO_MEMORY : rc, NULL, 0);
    dt_mesh_leave(mesh);
}

/* ---- receiving ---- */

static dt_result_t bad_message(struct dt_error *err, size_t from,
                               const char *what)
{
    return dt_error_set(err, DT_ERR_CORRUPT,
                        "node %zu sent %s of a collective that it cannot have",
                        from, what);
}

static dt_result_t from_child(struct dt_collect *c, size_t i,
                              const struct message *m,
                              const struct dt_frame *frame,
                              struct dt_error *err)
{
    const struct dt_key *key = c->key;
    if (c->arrived & 1U << i || m->nodes != dt_key_below(key, i))
        return bad_message(err, key->child[i], "a part");
    if (c->rc != DT_SUCCESS)
        return DT_SUCCESS;
    c->arrived |= 1U << i;
    if (c->started) {
        dt_frame_bytes(c->frame, m->data, m->len);
        complete(c);
    } else {
        /* only the count of references changes */
        c->part[i] = dt_frame_ref((struct dt_frame *)frame);
    }
    return DT_SUCCESS;
}

static dt_result_t from_parent(struct dt_collect *c, const struct message *m,
                               const struct dt_frame *frame,
                               struct dt_error *err)
{
    struct dt_frame *shared =
        (struct dt_frame *)frame; /* only its count changes */
    if (c->rc != DT_SUCCESS)
        return DT_SUCCESS;
    if (!c->sent || m->nodes != c->key->nodes)
        return bad_message(err, c->key->parent, "a result");
    send_down(c->mesh, c->key, DT_NO_NODE, shared);
    c->frame = dt_frame_ref(shared);
    c->at = (size_t)(m->data - frame->bytes);
    end(c, DT_SUCCESS);
    return DT_SUCCESS;
}

/* No memory for the part: it fails for its sender. */
static dt_result_t no_room(struct dt_mesh *mesh, size_t from,
                           const struct message *m, struct dt_error *err)
{
    struct dt_frame *frame = dt_frame_begin(DT_WIRE_RESULT);
    dt_frame_blob(frame, m->key, m->key_len);
    dt_frame_uint(frame, 4, m->number);
    dt_frame_uint(frame, 4, (uint32_t)DT_ERR_NO_MEMORY);
    dt_frame_uint(frame, 4, 0);
    dt_result_t rc = dt_frame_end(&frame, err);
    if (rc == DT_SUCCESS)
        dt_mesh_send(mesh, from, frame);
    dt_frame_unref(frame);
    return rc;
}

dt_result_t dt_collect_receive(struct dt_mesh *mesh, size_t from,
                               const struct dt_frame *frame,
                               struct dt_error *err)
{
    bool result = dt_frame_kind(frame) == DT_WIRE_RESULT;
    const char *what = result ? "a result" : "a part";
    struct message m;
    struct dt_key *key;
    size_t i = 0;
    if (!read_message(frame, &m))
        return bad_message(err, from, what);
    dt_result_t rc = dt_key_find(mesh, m.key, m.key_len, &key, err);
    if (rc == DT_ERR_NO_MEMORY)
        return result ? DT_SUCCESS : no_room(mesh, from, &m, err);
    if (rc != DT_SUCCESS)
        return rc == DT_ERR_NOT_FOUND ? DT_SUCCESS : rc;
    while (!result && i < key->nchild && key->child[i] != from)
        i++;
    if (result ? key->parent != from : i == key->nchild)
        return bad_message(err, from, what);
    struct dt_collect *c = find(key, m.number);
    if (!c && m.number < key->starts)
        return DT_SUCCESS; /* it has failed here; the others are notified */
    if (!c && result && m.status == DT_SUCCESS)
        return bad_message(err, from, what);
    if (!c)
        c = add(mesh, key, m.number);
    if (!c)
        return result ? DT_SUCCESS : no_room(mesh, from, &m, err);
    if (m.status != DT_SUCCESS)
        fail(c, m.status, from);
    else if (result)
        rc = from_parent(c, &m, frame, err);
    else
        rc = from_child(c, i, &m, frame, err);
    return rc;
}

/* ---- failures ---- */

static void drop_key(struct dt_mesh *mesh, struct dt_key *key)
{
    while (key->flights)
        end(key->flights, DT_ERR_PROC_FAILED);
    dt_key_free(mesh, key);
}

struct change {
    struct dt_mesh *mesh;
    size_t rank;
    struct dt_mesh_rank before, after;
};

static void change_key(struct dt_table_item *item, void *arg)
{
    const struct change *change = arg;
    struct dt_key *key = (struct dt_key *)item;
    if (!dt_key_has(key, change->rank))
        return;
    key->now += change->after.incarnation - change->before.incarnation;
    key->ended += change->after.ended;
    key->ended -= change->before.ended;
    if (dt_key_stale(key))
        drop_key(change->mesh, key);
}

void dt_collect_rank(struct dt_mesh *mesh, size_t rank,
                     const struct dt_mesh_rank *before)
{
    struct change change = {mesh, rank, *before, mesh->members.rank[rank]};
    dt_table_each(&mesh->keys, change_key, &change);
}

static void expire_key(struct dt_table_item *item, void *arg)
{
    struct dt_mesh *mesh = arg;
    struct dt_key *key = (struct dt_key *)item;
    for (struct dt_collect *c = key->flights, *next; c; c = next) {
        next = c->next;
        if (dt_limit_over(mesh, &c->limit))
            fail(c, DT_ERR_TIMED_OUT, DT_NO_NODE);
    }
}

void dt_collect_expire(struct dt_mesh *mesh)
{
    dt_table_each(&mesh->keys, expire_key, mesh);
}

static void stop_key(struct dt_table_item *item, void *arg)
{
    drop_key(arg, (struct dt_key *)item);
}

void dt_collect_stop(struct dt_mesh *mesh)
{
    dt_table_each(&mesh->keys, stop_key, mesh);
}
