/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* random-program.h - a program of collectives that a seed decides, the same on
 * all ranks: random-ranks.c runs it on libdt, tests/peers/random-mpi.c on MPI,
 * and both print the same.
 *
 * Everything is a function of the seed, so any rank knows what any other does.
 */
#ifndef RANDOM_PROGRAM_H
#define RANDOM_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define RANDOM_RANKS 64
#define RANDOM_COMMS 4    /* the world, and three made of it */
#define RANDOM_ROOM  6000 /* elements of a block, at most */

/* What both know. */
enum random_coll {
    RANDOM_ALLREDUCE,
    RANDOM_REDUCE,
    RANDOM_BCAST,
    RANDOM_ALLGATHER,
    RANDOM_ALLGATHERV,
    RANDOM_REDUCE_SCATTER,
    RANDOM_REDUCE_SCATTERV,
    RANDOM_ALLTOALL,
    RANDOM_ALLTOALLV,
    RANDOM_GATHER,
    RANDOM_SCATTER,
    RANDOM_BARRIER,
    RANDOM_SHIFT, /* to the rank `root` further on, from the one before */
    RANDOM_COLLS
};
enum random_type {
    RANDOM_I8,
    RANDOM_U8,
    RANDOM_I32,
    RANDOM_I64,
    RANDOM_F32,
    RANDOM_F64,
    RANDOM_TYPES
};
enum random_op { RANDOM_SUM, RANDOM_MIN, RANDOM_MAX, RANDOM_PROD, RANDOM_OPS };
enum random_form { RANDOM_BLOCKING, RANDOM_LATER, RANDOM_GROUP, RANDOM_FORMS };

struct random_state {
    uint64_t state;
};

static inline uint64_t random_mix(uint64_t x)
{
    x ^= x >> 30, x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27, x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* 0 to n - 1 */
static inline size_t random_below(struct random_state *random, size_t n)
{
    return random_mix(random->state += 0x9e3779b97f4a7c15u) % n;
}

/* A communicator: the ranks of the world that are in it, in order. A rank is
 * in one of several of equal number, by its color. */
struct random_comm {
    int color, key; /* of this rank */
    int rank, size;
    int members[RANDOM_RANKS];
};

static inline int random_color(uint64_t seed, int comm, int rank)
{
    uint64_t mixed = random_mix(seed * 31 + (uint64_t)comm * 1009 + 7);
    int colors = comm == 0 ? 1 : 1 + (int)(mixed % 3);
    return (int)(random_mix(mixed + (uint64_t)rank) % (uint64_t)colors);
}

static inline int random_key(uint64_t seed, int comm, int rank)
{
    if (comm == 0)
        return rank;
    return (int)(random_mix(seed + (uint64_t)(comm * 64 + rank)) % 5);
}

static inline void random_comm(uint64_t seed, int number, int rank, int size,
                               struct random_comm *comm)
{
    comm->color = random_color(seed, number, rank);
    comm->key = random_key(seed, number, rank);
    comm->size = 0;
    for (int key = 0; key < size + 5; key++)
        for (int r = 0; r < size; r++)
            if (random_color(seed, number, r) == comm->color &&
                random_key(seed, number, r) == key) {
                if (r == rank)
                    comm->rank = comm->size;
                comm->members[comm->size++] = r;
            }
}

/* One call. */
struct random_call {
    uint64_t seed; /* of its numbers */
    enum random_coll coll;
    enum random_type type;
    enum random_op op;
    int comm;
    size_t count;
    int root; /* SHIFT: how far */
    bool in_place;
};

/* Some calls that are under way together. */
#define RANDOM_TOGETHER 6
struct random_step {
    enum random_form form;
    size_t n;
    struct random_call calls[RANDOM_TOGETHER];
    size_t order[RANDOM_TOGETHER]; /* in which they are waited for */
};

static inline size_t random_count(struct random_state *random)
{
    static const size_t most[] = {2, 20, 300, 1500, RANDOM_ROOM};
    return random_below(random, most[random_below(random, 5)]);
}

static inline void random_step(struct random_state *random,
                               const struct random_comm *comms,
                               struct random_step *step)
{
    step->form = (enum random_form)random_below(random, RANDOM_FORMS);
    step->n = 1 + random_below(random, RANDOM_TOGETHER);
    for (size_t k = 0; k < step->n; k++) {
        struct random_call *call = &step->calls[k];
        call->seed = random_mix(random->state);
        call->coll = (enum random_coll)random_below(random, RANDOM_COLLS);
        call->type = (enum random_type)random_below(random, RANDOM_TYPES);
        call->op = (enum random_op)random_below(random, RANDOM_OPS);
        call->comm = (int)random_below(random, RANDOM_COMMS);
        call->count = random_count(random);
        /* the same number is drawn on all ranks, whatever their part's size */
        call->root = (int)(random_below(random, 1 << 20) %
                           (size_t)comms[call->comm].size);
        call->in_place = random_below(random, 2);
        step->order[k] = k;
    }
    for (size_t k = step->n; k > 1; k--) {
        size_t other = random_below(random, k), keep = step->order[k - 1];
        step->order[k - 1] = step->order[other];
        step->order[other] = keep;
    }
}

static inline size_t random_size(enum random_type type)
{
    static const size_t sizes[RANDOM_TYPES] = {1, 1, 4, 8, 4, 8};
    return sizes[type];
}

static inline bool random_reduces(enum random_coll coll)
{
    return coll == RANDOM_ALLREDUCE || coll == RANDOM_REDUCE ||
           coll == RANDOM_REDUCE_SCATTER || coll == RANDOM_REDUCE_SCATTERV;
}

/* Elements that go from one rank to another, of the even forms and the uneven
 * ones; from is -1 where all give as many. */
static inline size_t random_between(const struct random_call *call, int from,
                                    int to)
{
    bool uneven = call->coll == RANDOM_ALLGATHERV ||
                  call->coll == RANDOM_REDUCE_SCATTERV ||
                  call->coll == RANDOM_ALLTOALLV;
    if (!uneven)
        return call->count;
    return random_mix(call->seed + (uint64_t)(from + 1) * 67 + (uint64_t)to) %
           (call->count + 1);
}

/* Element i that a rank of the communicator gives: a small whole number, so
 * that every sum and product is exact. */
static inline int random_value(const struct random_call *call, int rank,
                               size_t i)
{
    uint64_t mixed = random_mix(call->seed + i * 131 + (uint64_t)rank * 7919);
    if (call->op == RANDOM_PROD && random_reduces(call->coll))
        return mixed % 16 == 0 ? 2 : 1;
    int value = (int)(mixed % 7);
    return call->type == RANDOM_U8 ? value : value - 3;
}

static inline void random_put(void *buf, size_t i, enum random_type type,
                              int64_t value)
{
    float single = (float)value;
    double twice = (double)value;
    const void *from = type == RANDOM_F32   ? (const void *)&single
                       : type == RANDOM_F64 ? (const void *)&twice
                                            : (const void *)&value;
    memcpy((char *)buf + i * random_size(type), from, random_size(type));
}

/* What buffers hold, in elements, and where this rank's block lies in the
 * larger one (in place). */
struct random_extent {
    size_t send, recv, mine;
};

static inline struct random_extent random_extent(const struct random_call *call,
                                                 const struct random_comm *comm)
{
    size_t n = (size_t)comm->size, me = (size_t)comm->rank;
    struct random_extent extent = {call->count, call->count, 0};
    switch (call->coll) {
    case RANDOM_ALLGATHER:
    case RANDOM_GATHER:
        extent.recv = n * call->count;
        extent.mine = me * call->count;
        break;
    case RANDOM_REDUCE_SCATTER:
    case RANDOM_SCATTER:
        extent.send = n * call->count;
        extent.mine = me * call->count;
        break;
    case RANDOM_ALLTOALL:
        extent.send = extent.recv = n * call->count;
        break;
    case RANDOM_ALLGATHERV:
        extent.recv = 0;
        for (int r = 0; r < comm->size; r++) {
            if (r == comm->rank)
                extent.mine = extent.recv;
            extent.recv += random_between(call, r, -1);
        }
        extent.send = random_between(call, comm->rank, -1);
        break;
    case RANDOM_REDUCE_SCATTERV:
        extent.send = 0;
        for (int r = 0; r < comm->size; r++) {
            if (r == comm->rank)
                extent.mine = extent.send;
            extent.send += random_between(call, -1, r);
        }
        extent.recv = random_between(call, -1, comm->rank);
        break;
    case RANDOM_ALLTOALLV:
        extent.send = extent.recv = 0;
        for (int r = 0; r < comm->size; r++) {
            extent.send += random_between(call, comm->rank, r);
            extent.recv += random_between(call, r, comm->rank);
        }
        break;
    case RANDOM_BARRIER:
        extent.send = extent.recv = 0;
        break;
    default:
        break;
    }
    return extent;
}

/* Does this rank have a result? */
static inline bool random_receives(const struct random_call *call,
                                   const struct random_comm *comm)
{
    if (call->coll == RANDOM_REDUCE || call->coll == RANDOM_GATHER)
        return call->root == comm->rank;
    return call->coll != RANDOM_BARRIER;
}

static inline uint64_t random_digest(uint64_t digest, const void *buf,
                                     size_t len)
{
    const unsigned char *bytes = buf;
    for (size_t i = 0; i < len; i++)
        digest = (digest ^ bytes[i]) * 1099511628211u;
    return digest;
}
#define RANDOM_DIGEST 14695981039346656037u

#endif
