/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* mesh.c - a libFuzzer target: one node's mesh and membership among others that
 * send what they like, also what it has sent itself, while its own ranks do one
 * thing and another. All that it begins ends, once. fuzz.t builds it. */
#include <stdlib.h>
#include <string.h>

#include "membership/membership.h"
#include "mesh/mesh.h"

enum { MEMBERSHIP = 5, KIND = 3 }; /* its requests and its broadcasts */
enum { NODES = 11, PER_NODE = 2, RANKS = NODES * PER_NODE, KEPT = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct world {
    struct dt_cursor input;
    struct dt_mesh *mesh;
    struct dt_membership *membership;
    uint32_t numbers; /* of events of others */
    size_t self;
    struct dt_frame *sent[KEPT]; /* what it sent last */
    size_t nsent;
    uint64_t tickets[KEPT];
    size_t ntickets;
    size_t begun, done;
    int64_t now;
};

static void check(bool good)
{
    if (!good)
        abort();
}

static size_t next(struct world *world, size_t below)
{
    return dt_cursor_uint(&world->input, 1) % below;
}

/* The next bytes of the input, in memory of their own. *len is how many. */
static void *next_bytes(struct world *world, size_t *len)
{
    size_t left = (size_t)(world->input.end - world->input.at);
    size_t n = next(world, 256);
    if (left > 0)
        left--;
    *len = n < left ? n : left;
    void *copy = malloc(*len ? *len : 1);
    check(copy != NULL);
    const void *bytes = dt_cursor_bytes(&world->input, *len);
    if (*len > 0 && bytes)
        memcpy(copy, bytes, *len);
    return copy;
}

/* ---- upcalls ---- */

static void on_send(void *arg, size_t node, struct dt_frame *frame)
{
    struct world *world = arg;
    struct dt_cursor head = dt_cursor(frame->bytes, frame->len);
    check(node < NODES && node != world->self && !frame->failed);
    check(dt_cursor_uint(&head, 4) == frame->len - 4 &&
          dt_frame_kind(frame) >= DT_WIRE_JOIN);
    struct dt_frame **slot = &world->sent[world->nsent++ % KEPT];
    dt_frame_unref(*slot);
    *slot = dt_frame_ref(frame);
}

static void on_ended(void *arg, size_t rank, const struct dt_mesh_rank *state)
{
    const struct world *world = arg;
    check(rank < RANKS && state->ended);
    dt_membership_rank(world->membership, rank);
}

static void on_joined(void *arg, size_t rank, uint32_t incarnation)
{
    const struct world *world = arg;
    check(rank < RANKS && incarnation > 0);
    dt_membership_rank(world->membership, rank);
}

static void on_broadcast(void *arg, size_t from, const void *data, size_t len)
{
    const struct world *world = arg;
    const unsigned char *bytes = data;
    check(from < NODES && (data || len == 0));
    if (len > 0 && bytes[0] == KIND)
        dt_membership_received(world->membership, bytes + 1, len - 1);
}

static void on_node_lost(void *arg, size_t node, const char *why)
{
    struct world *world = arg;
    check(node < NODES && node != world->self && !strchr(why, '\n'));
    dt_membership_node_lost(world->membership);
}

static void on_declared_lost(void *arg, const char *why)
{
    (void)arg;
    check(*why && !strchr(why, '\n'));
}

static void on_asked(void *arg, size_t from, uint64_t ticket, uint32_t what,
                     const void *data, size_t len)
{
    struct world *world = arg;
    check(from < NODES && (data || len == 0));
    if (what == MEMBERSHIP)
        dt_membership_asked(world->membership, from, ticket, data, len);
    else if (what & 1)
        dt_mesh_answer(world->mesh, ticket, -1, data, len);
    else
        world->tickets[world->ntickets++ % KEPT] = ticket;
}

static void on_collected(void *arg, dt_result_t rc, const void *data,
                         size_t len)
{
    struct world *world = arg;
    check(rc != DT_SUCCESS || data || len == 0);
    world->done++;
}

static void on_answer(void *arg, dt_result_t rc, int32_t status,
                      const void *data, size_t len)
{
    (void)status;
    on_collected(arg, rc, data, len);
}

/* ---- what happens ---- */

/* As the daemon does it: whoever breaks the rules is lost. */
static void receive(struct world *world, size_t from, struct dt_frame *frame)
{
    struct dt_error err = {{0}};
    if (from == world->self)
        return;
    dt_result_t rc = dt_mesh_receive(world->mesh, from, frame, &err);
    if (rc == DT_SUCCESS)
        return;
    check(*err.text && !strchr(err.text, '\n'));
    dt_mesh_node_lost(world->mesh, from, err.text);
}

static void send_new(struct world *world)
{
    size_t from = next(world, NODES), len;
    struct dt_frame *frame =
        dt_frame_begin((enum dt_wire_kind)(1 + next(world, DT_WIRE_ANSWER)));
    void *body = next_bytes(world, &len);
    dt_frame_bytes(frame, body, len);
    check(dt_frame_end(&frame, NULL) == DT_SUCCESS);
    receive(world, from, frame);
    dt_frame_unref(frame);
    free(body);
}

/* One of its own frames, maybe as another kind or with a byte changed. */
static void send_back(struct world *world)
{
    const struct dt_frame *sent = world->sent[next(world, KEPT)];
    size_t from = next(world, NODES), kind = next(world, 16);
    size_t at = next(world, 256), value = next(world, 256);
    if (!sent)
        return;
    struct dt_frame *frame = dt_frame_begin(dt_frame_kind(sent));
    dt_frame_bytes(frame, sent->bytes + 5, sent->len - 5);
    check(dt_frame_end(&frame, NULL) == DT_SUCCESS);
    if (kind > 0)
        frame->bytes[4] = (unsigned char)kind;
    if (at + 5 < frame->len)
        frame->bytes[at + 5] = (unsigned char)value;
    receive(world, from, frame);
    dt_frame_unref(frame);
}

/* A collective that this node takes part in; ranks has room for all. */
static struct dt_collective some_collective(struct world *world,
                                            uint32_t ranks[RANKS])
{
    static const char *const names[] = {"", "group"};
    static const uint32_t strides[] = {1, 4, 11, RANKS};
    uint32_t own = (uint32_t)(world->self * PER_NODE);
    struct dt_collective what = {.what = 7, .ranks = ranks};
    uint32_t stride = strides[next(world, 4)];
    what.name = names[next(world, 2)];
    for (uint32_t rank = 0; rank < RANKS; rank++)
        if (rank == own || rank % stride == 0)
            ranks[what.nranks++] = rank;
    return what;
}

static void collect(struct world *world)
{
    uint32_t ranks[RANKS];
    struct dt_collective what = some_collective(world, ranks);
    int64_t timeout = (int64_t)next(world, 2) * 10;
    size_t len;
    void *data = next_bytes(world, &len);
    world->begun++;
    dt_mesh_collect(world->mesh, &what, data, len, timeout, on_collected,
                    world);
    free(data);
}

/* The key of a collective, as doc/pmix-wire.md draws it. */
static void put_key(struct dt_frame *frame, const struct dt_collective *what,
                    size_t lives)
{
    size_t runs = 0;
    for (size_t i = 0; i < what->nranks; i++)
        runs += i == 0 || what->ranks[i] != what->ranks[i - 1] + 1;
    dt_frame_uint(frame, 4, 4 + 8 + 4 + strlen(what->name) + 4 + 8 * runs);
    dt_frame_uint(frame, 4, what->what);
    dt_frame_uint(frame, 8, lives);
    dt_frame_blob(frame, what->name, strlen(what->name));
    dt_frame_uint(frame, 4, runs);
    for (size_t i = 0, end; i < what->nranks; i = end + 1) {
        for (end = i; end + 1 < what->nranks &&
                      what->ranks[end + 1] == what->ranks[end] + 1;)
            end++;
        dt_frame_uint(frame, 4, what->ranks[i]);
        dt_frame_uint(frame, 4, what->ranks[end]);
    }
}

/* A part, or a result, of such a collective: chance alone finds no key. */
static void send_part(struct world *world)
{
    uint32_t ranks[RANKS];
    size_t from = next(world, NODES), bits = next(world, 256), len;
    struct dt_collective what = some_collective(world, ranks);
    struct dt_frame *frame =
        dt_frame_begin(bits & 1 ? DT_WIRE_RESULT : DT_WIRE_COLLECT);
    put_key(frame, &what, bits & 2 ? next(world, 4) : 0);
    dt_frame_uint(frame, 4, bits & 4 ? next(world, 4) : 0);
    dt_frame_uint(frame, 4, bits & 8 ? (uint64_t)DT_ERR_TIMED_OUT : 0);
    dt_frame_uint(frame, 4, bits & 16 ? next(world, NODES + 1) : 1);
    void *data = next_bytes(world, &len);
    dt_frame_bytes(frame, data, len);
    check(dt_frame_end(&frame, NULL) == DT_SUCCESS);
    receive(world, from, frame);
    dt_frame_unref(frame);
    free(data);
}

static void ask(struct world *world)
{
    size_t node = next(world, NODES), len;
    uint32_t what = (uint32_t)next(world, 4);
    int64_t timeout = (int64_t)next(world, 2) * 10;
    void *data = next_bytes(world, &len);
    world->begun++;
    dt_mesh_ask(world->mesh, node, what, data, len, timeout, on_answer, world);
    free(data);
}

static void ask_who_goes_on(struct world *world)
{
    size_t rank = world->self * PER_NODE + next(world, PER_NODE), len;
    int64_t timeout = (int64_t)next(world, 2) * 10;
    void *card = next_bytes(world, &len);
    world->begun++;
    dt_membership_ask(world->membership, rank, card, len, timeout, on_collected,
                      world);
    free(card);
}

/* A request or a broadcast of the membership, as doc/pmix-wire.md draws them.
 * Numbers are small, so that some fit. */
static void send_membership(struct world *world)
{
    size_t from = next(world, NODES), kind = next(world, 8), len;
    bool asks = kind & 1;
    struct dt_frame *frame = dt_frame_begin(asks ? DT_WIRE_ASK : DT_WIRE_NEWS);
    if (asks) {
        dt_frame_uint(frame, 8, 1 + next(world, 256));
        dt_frame_uint(frame, 4, MEMBERSHIP);
    } else {
        dt_frame_uint(frame, 4, from);
        dt_frame_uint(frame, 4, ++world->numbers);
        dt_frame_uint(frame, 1, 5); /* BROADCAST */
        dt_frame_uint(frame, 1, KIND);
    }
    dt_frame_uint(frame, 1, kind / 2);
    dt_frame_uint(frame, 4, next(world, RANKS)); /* the rank, or the term */
    for (size_t n = next(world, 8); n > 0; n--)
        dt_frame_uint(frame, 4, next(world, 8));
    void *data = next_bytes(world, &len);
    dt_frame_bytes(frame, data, len);
    check(dt_frame_end(&frame, NULL) == DT_SUCCESS);
    receive(world, from, frame);
    dt_frame_unref(frame);
    free(data);
}

static void rank_ends(struct world *world)
{
    size_t rank = world->self * PER_NODE + next(world, PER_NODE);
    struct dt_mesh_rank state = *dt_mesh_rank(world->mesh, rank);
    state.how = (enum dt_mesh_end)next(world, 3);
    state.finalized = next(world, 2);
    dt_mesh_rank_ended(world->mesh, rank, &state);
}

static void tell(struct world *world)
{
    size_t len;
    void *data = next_bytes(world, &len);
    (void)dt_mesh_broadcast(world->mesh, data, len, NULL);
    free(data);
}

static void one_thing(struct world *world)
{
    switch (next(world, 14)) {
    case 0:
        send_new(world);
        break;
    case 1:
        send_back(world);
        break;
    case 2:
    case 3:
        send_part(world);
        break;
    case 4:
        collect(world);
        break;
    case 5:
        ask(world);
        break;
    case 6:
        dt_mesh_answer(world->mesh, world->tickets[next(world, KEPT)], 0, "x",
                       1);
        break;
    case 7:
        if (next(world, 2))
            rank_ends(world);
        else
            dt_mesh_rank_joined(world->mesh, world->self * PER_NODE);
        break;
    case 8:
        tell(world);
        break;
    case 9:
        if (next(world, 2))
            dt_mesh_node_lost(world->mesh, next(world, NODES), "a test");
        else
            dt_mesh_node_left(world->mesh, next(world, NODES));
        break;
    case 11:
        ask_who_goes_on(world);
        break;
    case 12:
        send_membership(world);
        break;
    case 13:
        dt_membership_gone(world->membership, world->self * PER_NODE);
        break;
    default:
        world->now += (int64_t)next(world, 16);
        check(dt_mesh_progress(world->mesh, world->now) >= world->now);
        dt_membership_progress(world->membership, world->now);
    }
}

static struct dt_map *make_map(void)
{
    struct dt_map_entry *entries = calloc(NODES, sizeof(*entries));
    struct dt_map *map = NULL;
    check(entries != NULL);
    for (uint32_t i = 0; i < NODES; i++) {
        entries[i].node = i;
        strcpy(entries[i].name, "n");
        entries[i].nranks = PER_NODE;
        entries[i].ranks = calloc(PER_NODE, sizeof(*entries[i].ranks));
        check(entries[i].ranks != NULL);
        for (uint32_t k = 0; k < PER_NODE; k++)
            entries[i].ranks[k] = i * PER_NODE + k;
    }
    check(dt_map_create(&map, entries, NODES, RANKS, NULL) == DT_SUCCESS);
    return map;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world world = {.input = dt_cursor(data, size)};
    const struct dt_mesh_host host = {
        &world,       on_send,      on_ended,         on_joined,
        on_broadcast, on_node_lost, on_declared_lost, on_asked};
    struct dt_map *map = make_map();
    world.self = next(&world, NODES);
    check(dt_mesh_create(&world.mesh, map, world.self, &host, 0, NULL) ==
          DT_SUCCESS);
    struct dt_membership_config config = {.what = MEMBERSHIP, .kind = KIND};
    config.minimum = next(&world, 4);
    config.replaces = next(&world, 2);
    check(dt_membership_create(&world.membership, world.mesh, map, world.self,
                               &config, NULL) == DT_SUCCESS);
    while (world.input.at < world.input.end && !world.input.failed)
        one_thing(&world);
    dt_mesh_destroy(world.mesh);
    dt_membership_destroy(world.membership);
    check(world.begun == world.done);
    for (size_t i = 0; i < KEPT; i++)
        dt_frame_unref(world.sent[i]);
    dt_map_destroy(map);
    return 0;
}
