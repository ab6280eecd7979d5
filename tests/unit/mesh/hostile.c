/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* hostile.c - what a mesh does with messages that no good peer sends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mesh/mesh.h"
#include "../tap.h"

enum { NODES = 12, KEPT = 64 };

/* One mesh, and what it sent. */
struct lone {
    struct dt_mesh *mesh;
    struct dt_frame *frame[KEPT];
    size_t to[KEPT], n;
    unsigned out, asked, done, told, ended, joined;
    dt_result_t rc;
};

static struct dt_map *map;

static void keep(void *arg, size_t node, struct dt_frame *frame)
{
    struct lone *lone = arg;
    if (lone->n < KEPT) {
        lone->to[lone->n] = node;
        lone->frame[lone->n++] = dt_frame_ref(frame);
    }
}

static void ended(void *arg, size_t rank, const struct dt_mesh_rank *state)
{
    (void)rank;
    (void)state;
    ((struct lone *)arg)->ended++;
}

static void joined(void *arg, size_t rank, uint32_t incarnation)
{
    (void)rank;
    (void)incarnation;
    ((struct lone *)arg)->joined++;
}

static void told(void *arg, size_t node, const void *data, size_t len)
{
    (void)node;
    (void)data;
    (void)len;
    ((struct lone *)arg)->told++;
}

static void node_lost(void *arg, size_t node, const char *why)
{
    (void)arg;
    (void)node;
    (void)why;
}

static void declared_lost(void *arg, const char *why)
{
    (void)why;
    ((struct lone *)arg)->out++;
}

static void asked(void *arg, size_t node, uint64_t ticket, uint32_t what,
                  const void *data, size_t len)
{
    struct lone *lone = arg;
    (void)what;
    if (node != 1) /* the tests' own question is answered there */
        lone->asked++;
    dt_mesh_answer(lone->mesh, ticket, 0, data, len);
}

static void done(void *arg, dt_result_t rc, const void *data, size_t len)
{
    (void)data;
    (void)len;
    ((struct lone *)arg)->done++;
    ((struct lone *)arg)->rc = rc;
}

static void answered(void *arg, dt_result_t rc, int32_t status,
                     const void *data, size_t len)
{
    (void)status;
    done(arg, rc, data, len);
}

static void lone_open(struct lone *lone, size_t node)
{
    const struct dt_mesh_host host = {lone, keep,      ended,         joined,
                                      told, node_lost, declared_lost, asked};
    struct dt_error err;
    *lone = (struct lone){0};
    if (dt_mesh_create(&lone->mesh, map, node, &host, 0, &err) != DT_SUCCESS)
        abort();
}

static void lone_close(struct lone *lone)
{
    dt_mesh_destroy(lone->mesh);
    for (size_t i = 0; i < lone->n; i++)
        dt_frame_unref(lone->frame[i]);
}

/* A fence of all ranks. */
static void fence(struct lone *lone, const char *data)
{
    static const uint32_t ranks[NODES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    struct dt_collective what = {
        .what = 1, .name = "all", .ranks = ranks, .nranks = NODES};
    dt_mesh_collect(lone->mesh, &what, data, strlen(data), 0, done, lone);
}

/* The first len bytes of frame, in just as much memory. */
static dt_result_t feed(struct lone *lone, size_t from,
                        const struct dt_frame *frame, size_t len)
{
    struct dt_frame *copy = malloc(sizeof(*copy));
    struct dt_error err = {""};
    unsigned char *bytes = malloc(len);
    if (!copy || !bytes)
        abort();
    memcpy(bytes, frame->bytes, len);
    *copy = (struct dt_frame){1, len, len, false, bytes};
    dt_result_t rc = dt_mesh_receive(lone->mesh, from, copy, &err);
    if (rc != DT_SUCCESS && (rc != DT_ERR_CORRUPT || strlen(err.text) < 10))
        ok(false, "%d, '%s'", rc, err.text);
    dt_frame_unref(copy);
    return rc;
}

static struct dt_frame *made(struct dt_frame *frame)
{
    if (dt_frame_end(&frame, NULL) != DT_SUCCESS)
        abort();
    return frame;
}

/* The last frame of this kind that it sent. */
static struct dt_frame *sent(struct lone *lone, enum dt_wire_kind kind)
{
    for (size_t i = lone->n; i > 0; i--)
        if (dt_frame_kind(lone->frame[i - 1]) == kind)
            return dt_frame_ref(lone->frame[i - 1]);
    abort();
}

/* Samples of all kinds, from node `from`, for node 0 or 2; below least bytes
 * each is no message. */
struct sample {
    const char *name;
    struct dt_frame *frame;
    size_t from, to, least;
};

enum { SAMPLES = 9 };

static struct dt_frame *event(struct lone *peer, unsigned i)
{
    struct dt_mesh_rank state = {.how = DT_END_EXIT, .code = 3};
    struct dt_error err;
    switch (i) {
    case 0:
        dt_mesh_broadcast(peer->mesh, "news", 4, &err);
        break;
    case 1:
        dt_mesh_rank_ended(peer->mesh, 1, &state);
        break;
    case 2:
        dt_mesh_rank_joined(peer->mesh, 1);
        break;
    case 3:
        dt_mesh_node_lost(peer->mesh, 9, "lost");
        break;
    default:
        dt_mesh_node_left(peer->mesh, 10);
    }
    return sent(peer, DT_WIRE_NEWS);
}

static void make_samples(struct sample s[SAMPLES])
{
    static const size_t more[5] = {4, 0, 0, 4, 0}; /* bytes that may lack */
    struct lone one, ten, nine, zero;
    struct dt_frame *join = made(dt_frame_begin(DT_WIRE_JOIN));
    size_t n = 0;
    lone_open(&one, 1);
    lone_open(&nine, 9);
    lone_open(&ten, 10);
    lone_open(&zero, 0);
    feed(&one, 9, join, 5);
    feed(&one, 10, join, 5);
    s[n++] = (struct sample){"JOIN", dt_frame_ref(join), 1, 0, 5};
    for (unsigned i = 0; i < 5; i++, n++) {
        s[n] = (struct sample){"NEWS", event(&one, i), 1, 0, 0};
        s[n].least = s[n].frame->len - more[i];
    }
    fence(&nine, "abc");
    s[n++] = (struct sample){"COLLECT", sent(&nine, DT_WIRE_COLLECT), 9, 1, 0};
    s[n - 1].least = s[n - 1].frame->len - 3;
    dt_mesh_ask(nine.mesh, 10, 7, "xyz", 3, 0, answered, &nine);
    s[n++] = (struct sample){"ASK", sent(&nine, DT_WIRE_ASK), 9, 10, 17};
    feed(&ten, 9, s[n - 1].frame, s[n - 1].frame->len);
    s[n++] = (struct sample){"ANSWER", sent(&ten, DT_WIRE_ANSWER), 10, 9, 17};
    lone_close(&one);
    lone_close(&nine);
    lone_close(&ten);
    lone_close(&zero);
    dt_frame_unref(join);
}

/* A mesh that can receive the samples. */
static void receiver(struct lone *lone, size_t node, bool joins)
{
    struct dt_frame *join = made(dt_frame_begin(DT_WIRE_JOIN));
    lone_open(lone, node);
    if (joins && node == 0)
        feed(lone, 1, join, 5);
    if (node == 9)
        dt_mesh_ask(lone->mesh, 10, 7, "xyz", 3, 0, answered, lone);
    fence(lone, "mine");
    dt_frame_unref(join);
}

static void test_cut(struct sample *s)
{
    for (size_t i = 0; i < SAMPLES; i++) {
        size_t wrong = 0;
        for (size_t len = 5; len <= s[i].frame->len; len++) {
            struct lone lone;
            receiver(&lone, s[i].to, strcmp(s[i].name, "JOIN") != 0);
            dt_result_t rc = feed(&lone, s[i].from, s[i].frame, len);
            wrong += rc != (len < s[i].least ? DT_ERR_CORRUPT : DT_SUCCESS);
            lone_close(&lone);
        }
        ok(wrong == 0, "%s (%zu), cut everywhere", s[i].name, i);
    }
}

static void test_senders(struct sample *s)
{
    for (size_t i = 0; i < SAMPLES; i++) {
        struct lone lone;
        size_t corrupt = 0, wanted = NODES - 1;
        for (size_t from = 0; from < NODES + 1; from++) {
            if (from == s[i].from || from == s[i].to)
                continue;
            receiver(&lone, s[i].to, true);
            corrupt += feed(&lone, from, s[i].frame, s[i].frame->len) ==
                       DT_ERR_CORRUPT;
            lone_close(&lone);
        }
        if (strcmp(s[i].name, "COLLECT") == 0)
            wanted = NODES - 3; /* its two siblings could have sent it */
        if (strcmp(s[i].name, "ASK") == 0 || strcmp(s[i].name, "JOIN") == 0)
            wanted = 1; /* others may do this, a node beyond the map not */
        ok(corrupt == wanted, "%s (%zu) of other senders: %zu refused",
           s[i].name, i, corrupt);
    }
}

static void test_flipped(struct sample *s)
{
    uint64_t random = 1;
    size_t refused = 0, runs = 0;
    for (size_t i = 0; i < SAMPLES; i++)
        for (unsigned k = 0; k < 1500; k++, runs++) {
            struct lone lone;
            struct dt_frame *f = dt_frame_begin(dt_frame_kind(s[i].frame));
            dt_frame_bytes(f, s[i].frame->bytes + 5, s[i].frame->len - 5);
            f = made(f);
            for (unsigned flips = 1 + k % 3; flips > 0; flips--) {
                random = random * 6364136223846793005U + 1442695040888963407U;
                f->bytes[4 + (random >> 33) % (f->len - 4)] ^=
                    (unsigned char)(1 << (random >> 60) % 8);
            }
            receiver(&lone, s[i].to, true);
            refused += feed(&lone, s[i].from, f, f->len) != DT_SUCCESS;
            lone_close(&lone);
            dt_frame_unref(f);
        }
    ok(refused > runs / 4, "%zu of %zu damaged messages are refused", refused,
       runs);
}

static void test_twice(struct sample *s)
{
    struct lone lone;
    receiver(&lone, 0, true);
    ok(feed(&lone, 1, s[0].frame, 5) == DT_ERR_CORRUPT,
       "a child that joins twice");
    ok(feed(&lone, 1, s[1].frame, s[1].frame->len) == DT_SUCCESS &&
           feed(&lone, 1, s[1].frame, s[1].frame->len) == DT_SUCCESS &&
           lone.told == 1,
       "an event that comes twice counts once");
    lone_close(&lone);
    receiver(&lone, 1, true);
    ok(feed(&lone, 9, s[6].frame, s[6].frame->len) == DT_SUCCESS &&
           feed(&lone, 9, s[6].frame, s[6].frame->len) == DT_ERR_CORRUPT,
       "a part that comes twice");
    ok(feed(&lone, 0, s[0].frame, 5) == DT_ERR_CORRUPT,
       "a parent that joins its child");
    lone_close(&lone);
}

/* A copy with one byte changed. */
static struct dt_frame *changed(const struct dt_frame *frame, size_t at,
                                unsigned char byte)
{
    struct dt_frame *copy = dt_frame_begin(dt_frame_kind(frame));
    dt_frame_bytes(copy, frame->bytes + 5, frame->len - 5);
    copy = made(copy);
    copy->bytes[at] = byte;
    return copy;
}

static void test_lies(struct sample *s)
{
    struct lone lone;
    struct dt_frame *part = changed(s[6].frame, s[6].frame->len - 7, 2);
    struct dt_frame *rank = changed(s[2].frame, 5 + 9, 5);
    struct dt_frame *life = changed(s[3].frame, 5 + 9, 5);
    receiver(&lone, 1, true);
    ok(feed(&lone, 9, part, part->len) == DT_ERR_CORRUPT,
       "a part of more nodes than are there");
    lone_close(&lone);
    receiver(&lone, 0, true);
    ok(feed(&lone, 1, rank, rank->len) == DT_ERR_CORRUPT &&
           feed(&lone, 1, life, life->len) == DT_ERR_CORRUPT,
       "an event of another node's rank");
    lone_close(&lone);
    dt_frame_unref(part);
    dt_frame_unref(rank);
    dt_frame_unref(life);
}

static void test_result(void)
{
    struct lone zero, one, nine, early;
    struct dt_frame *part, *result;
    lone_open(&nine, 9);
    receiver(&one, 1, true);
    receiver(&zero, 0, true);
    fence(&nine, "9");
    part = sent(&nine, DT_WIRE_COLLECT);
    feed(&one, 9, part, part->len);
    dt_frame_unref(part);
    for (size_t i = 10; i < NODES; i++) {
        struct lone leaf;
        lone_open(&leaf, i);
        fence(&leaf, "x");
        part = sent(&leaf, DT_WIRE_COLLECT);
        feed(&one, i, part, part->len);
        dt_frame_unref(part);
        lone_close(&leaf);
    }
    for (size_t i = 2; i < 9; i++) {
        struct lone leaf;
        lone_open(&leaf, i);
        fence(&leaf, "x");
        part = sent(&leaf, DT_WIRE_COLLECT);
        feed(&zero, i, part, part->len);
        dt_frame_unref(part);
        lone_close(&leaf);
    }
    part = sent(&one, DT_WIRE_COLLECT);
    feed(&zero, 1, part, part->len);
    dt_frame_unref(part);
    ok(zero.done == 1 && zero.rc == DT_SUCCESS,
       "the first node has the result");
    result = sent(&zero, DT_WIRE_RESULT);
    receiver(&early, 1, true);
    ok(feed(&early, 0, result, result->len) == DT_ERR_CORRUPT &&
           early.done == 0,
       "a result before all parts were there");
    lone_close(&early);
    size_t before = one.n, same = 0;
    struct dt_error err;
    ok(dt_mesh_receive(one.mesh, 0, result, &err) == DT_SUCCESS &&
           one.done == 1 && one.rc == DT_SUCCESS,
       "its child, too");
    for (size_t i = before; i < one.n; i++)
        same += one.frame[i] == result;
    ok(same == 3 && one.n == before + 3, "which sends on the same bytes");
    ok(feed(&nine, 1, result, result->len) == DT_SUCCESS && nine.done == 1,
       "and so does the child's child");
    dt_frame_unref(result);
    lone_close(&zero);
    lone_close(&one);
    lone_close(&nine);
}

static void test_out(void)
{
    struct lone lone;
    struct dt_error err = {""};
    struct dt_frame *f = dt_frame_begin(DT_WIRE_NEWS);
    dt_frame_uint(f, 4, 3);
    dt_frame_uint(f, 4, 0);
    dt_frame_uint(f, 1, 3);
    dt_frame_uint(f, 4, 1);
    dt_frame_bytes(f, "cold", 4);
    f = made(f);
    receiver(&lone, 1, true);
    size_t before = lone.n;
    ok(feed(&lone, 3, f, f->len) == DT_SUCCESS && lone.out == 1 &&
           lone.done == 1 && lone.rc == DT_ERR_PROC_FAILED,
       "a node that is notified of its own loss fails its operations");
    feed(&lone, 3, f, f->len);
    fence(&lone, "late");
    dt_mesh_ask(lone.mesh, 0, 1, "", 0, 0, answered, &lone);
    dt_mesh_ask(lone.mesh, 1, 1, "", 0, 0, answered, &lone);
    dt_mesh_node_lost(lone.mesh, 0, "x");
    dt_mesh_node_left(lone.mesh, 4);
    ok(dt_mesh_broadcast(lone.mesh, "x", 1, &err) == DT_ERR_PROC_FAILED &&
           lone.out == 1 && lone.done == 4 && lone.n == before &&
           dt_mesh_progress(lone.mesh, 99999) == INT64_MAX,
       "and sends nothing: %s", err.text);
    lone_close(&lone);
    receiver(&lone, 3, true);
    dt_mesh_node_lost(lone.mesh, 0, "x");
    f->bytes[5] = 9;
    ok(feed(&lone, 0, f, f->len) == DT_SUCCESS && lone.out == 0,
       "a lost node is ignored");
    lone_close(&lone);
    dt_frame_unref(f);
}

/* ENDED or JOINED of rank 1, whose node sends it, or a broadcast; false: it is
 * refused. */
static bool feed_event(struct lone *lone, uint32_t number, bool end,
                       uint32_t incarnation)
{
    struct dt_frame *f = dt_frame_begin(DT_WIRE_NEWS);
    dt_frame_uint(f, 4, 1);
    dt_frame_uint(f, 4, number);
    dt_frame_uint(f, 1, end ? 1 : 2);
    dt_frame_uint(f, 4, 1);
    dt_frame_uint(f, 4, incarnation);
    if (end)
        dt_frame_uint(f, 6, 0);
    f = made(f);
    bool good = feed(lone, 1, f, f->len) == DT_SUCCESS;
    dt_frame_unref(f);
    return good;
}

static void test_incarnations(void)
{
    struct lone lone;
    const struct dt_mesh_rank first = {.incarnation = 0},
                              third = {.incarnation = 2};
    receiver(&lone, 0, true);
    ok(feed_event(&lone, 1, true, 0) && feed_event(&lone, 2, false, 1) &&
           lone.ended == 1 && lone.joined == 1,
       "a rank ends and is replaced");
    ok(feed_event(&lone, 3, true, 0) && lone.ended == 1,
       "that the first has ended says nothing about the second");
    ok(feed_event(&lone, 4, false, 1) && feed_event(&lone, 5, false, 0) &&
           lone.joined == 1,
       "none joins twice");
    ok(feed_event(&lone, 6, true, 1) && feed_event(&lone, 7, true, 1) &&
           lone.ended == 2,
       "nor ends twice");
    dt_mesh_rank_joined(lone.mesh, 0);
    ok(lone.joined == 1, "who lives is not replaced");
    dt_mesh_rank_ended(lone.mesh, 0, &third);
    ok(lone.ended == 2, "one that is not known does not end");
    dt_mesh_rank_ended(lone.mesh, 0, &first);
    dt_mesh_rank_joined(lone.mesh, 0);
    dt_mesh_rank_ended(lone.mesh, 0, &first);
    ok(lone.ended == 3 && lone.joined == 2 &&
           dt_mesh_rank(lone.mesh, 0)->incarnation == 1 &&
           !dt_mesh_rank(lone.mesh, 0)->ended,
       "here too, the first is not the second");
    lone_close(&lone);
}

static bool feed_broadcast(struct lone *lone, uint32_t number, size_t len)
{
    char *data = calloc(1, len);
    struct dt_frame *f = dt_frame_begin(DT_WIRE_NEWS);
    dt_frame_uint(f, 4, 1);
    dt_frame_uint(f, 4, number);
    dt_frame_uint(f, 1, 5);
    if (!data)
        abort();
    dt_frame_bytes(f, data, len);
    f = made(f);
    bool good = feed(lone, 1, f, f->len) == DT_SUCCESS;
    dt_frame_unref(f);
    free(data);
    return good;
}

static void test_limits(void)
{
    static char data[DT_MESH_BROADCAST_MAX + 1];
    struct lone lone;
    struct dt_error err;
    receiver(&lone, 0, true);
    ok(feed_broadcast(&lone, 1, DT_MESH_BROADCAST_MAX) && lone.told == 1,
       "a broadcast as long as may be");
    ok(!feed_broadcast(&lone, 2, DT_MESH_BROADCAST_MAX + 1) && lone.told == 1,
       "one byte more is refused");
    ok(dt_mesh_broadcast(lone.mesh, data, sizeof(data), &err) ==
               DT_ERR_INVALID_ARG &&
           lone.told == 1,
       "and not sent");

    /* who joins gets the events of before, but not all that ever were */
    for (uint32_t i = 2; i < 40; i++)
        feed_broadcast(&lone, i, DT_MESH_BROADCAST_MAX);
    size_t before = lone.n, bytes = 0;
    struct dt_frame *join = made(dt_frame_begin(DT_WIRE_JOIN));
    feed(&lone, 2, join, 5);
    for (size_t i = before; i < lone.n; i++)
        bytes += lone.frame[i]->len;
    ok(bytes > DT_MESH_BROADCAST_MAX && bytes <= 16 * DT_MESH_BROADCAST_MAX,
       "of many events %zu bytes are kept", bytes);
    dt_frame_unref(join);
    lone_close(&lone);
}

static struct dt_map *make_map(void)
{
    struct dt_map_entry *entry = calloc(NODES, sizeof(*entry));
    struct dt_map *made_map;
    struct dt_error err;
    for (size_t i = 0; entry && i < NODES; i++) {
        entry[i].node = (uint32_t)i;
        entry[i].ranks = calloc(1, sizeof(uint32_t));
        entry[i].nranks = 1;
        snprintf(entry[i].name, sizeof(entry[i].name), "n%zu", i);
        if (entry[i].ranks)
            entry[i].ranks[0] = (uint32_t)i;
    }
    if (!entry ||
        dt_map_create(&made_map, entry, NODES, NODES, &err) != DT_SUCCESS)
        abort();
    return made_map;
}

int main(void)
{
    struct sample s[SAMPLES];
    map = make_map();
    make_samples(s);
    test_cut(s);
    test_senders(s);
    test_flipped(s);
    test_twice(s);
    test_lies(s);
    test_result();
    test_out();
    test_incarnations();
    test_limits();
    for (size_t i = 0; i < SAMPLES; i++)
        dt_frame_unref(s[i].frame);
    dt_map_destroy(map);
    return tap_done();
}
