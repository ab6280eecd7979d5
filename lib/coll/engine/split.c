/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* split.c - splitting a communicator, by two allgathers on the old one.
 *
 *   1. Each rank gives its color and key, and the ids that are free on it.
 *      Every rank then knows the members of its new communicator, and derives
 *      an id and a serial number for it.
 *   2. Each rank tells whether it could open its new communicator.
 *        All could: done.
 *        On some rank another thread took the id first: all ranks close what
 *        they opened, and try other numbers.
 *        Else a rank failed, and all members report its error. */
#include "coll/engine/split.h"

#include <stdlib.h>
#include <string.h>

#include "coll/engine/comm.h"

/* More than splits of other threads can spoil unless all goes wrong. */
#define TRIES 1000

#define MASK (DT_COMMS / 64)

/* What a rank contributes in the first allgather, and in the second. */
struct wish {
    int64_t color, key;
    uint64_t serial; /* the highest one known here */
    uint64_t free[MASK];
};
enum { OPENED, TAKEN, REFUSED };

/* A member of the new communicator. */
struct member {
    int64_t key;
    size_t rank; /* in the old one */
};

struct split {
    const char *name; /* of the public call */
    struct dt_comm *comm;
    int color, key;
    struct wish *wishes;
    int32_t *outcomes;
    struct member *members;
    size_t nmembers;
    size_t *ranks; /* of the members in the world */
    uint32_t id;
    uint64_t serial;
};

static dt_result_t no_memory(const struct split *split, struct dt_error *err)
{
    return dt_error_set(err, DT_ERR_NO_MEMORY,
                        "%s: no memory for a communicator", split->name);
}

/* An allgather of some bytes of each rank. */
static dt_result_t gather(struct dt_comm *comm, const void *mine, void *all,
                          size_t bytes, struct dt_error *err)
{
    const struct dt_shape shape = {.coll = DT_COLL_ALLGATHER,
                                   .dtype = DT_DTYPE_U8,
                                   .count = bytes,
                                   .prescale = 1,
                                   .postscale = 1};
    return dt_comm_run(comm, &shape, mine, all, err);
}

static dt_result_t gather_wishes(struct split *split, struct dt_error *err)
{
    struct dt_world *world = split->comm->world;
    struct wish mine = {.color = split->color, .key = split->key};
    dt_world_lock(world);
    mine.serial = world->serial;
    for (size_t id = 0; id < DT_COMMS; id++)
        if (!world->comms[id] && id != DT_COMM_CREATE)
            mine.free[id / 64] |= (uint64_t)1 << id % 64;
    dt_world_unlock(world);
    return gather(split->comm, &mine, split->wishes, sizeof(mine), err);
}

static int by_key(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->rank < y->rank ? -1 : 1;
}

/* The ranks of the same color, by key and rank. */
static void find_members(struct split *split)
{
    split->nmembers = 0;
    for (size_t r = 0; r < split->comm->size; r++)
        if (split->wishes[r].color == split->color)
            split->members[split->nmembers++] =
                (struct member){split->wishes[r].key, r};
    qsort(split->members, split->nmembers, sizeof(*split->members), by_key);
    for (size_t i = 0; i < split->nmembers; i++)
        split->ranks[i] = split->comm->members[split->members[i].rank];
}

/* An id that is free on all members, and a serial number above all of theirs.
 * Splits of two communicators at the same time most likely choose different
 * ids, and different ones in each try. False: there is no such id. */
static bool choose(struct split *split, unsigned try)
{
    uint64_t common[MASK];
    uint32_t ids[DT_COMMS];
    size_t n = 0;
    memset(common, 0xff, sizeof(common));
    for (size_t i = 0; i < split->nmembers; i++)
        for (size_t m = 0; m < MASK; m++)
            common[m] &= split->wishes[split->members[i].rank].free[m];
    for (uint32_t id = 0; id < DT_COMMS; id++)
        if (common[id / 64] >> id % 64 & 1)
            ids[n++] = id;
    if (!n)
        return false;
    uint32_t old = split->comm->id;
    split->id = ids[(old + (size_t)try * (old + 1)) % n];
    split->serial = 0;
    for (size_t r = 0; r < split->comm->size; r++)
        if (split->wishes[r].serial > split->serial)
            split->serial = split->wishes[r].serial;
    split->serial += 1 + old;
    return true;
}

/* The worst outcome that concerns this rank: TAKEN on any rank makes all try
 * again, REFUSED counts among the members. */
static int32_t judge(const struct split *split, size_t *who)
{
    for (size_t r = 0; r < split->comm->size; r++)
        if (split->outcomes[r] == TAKEN)
            return TAKEN;
    for (size_t i = 0; i < split->nmembers; i++) {
        *who = split->members[i].rank;
        if (split->outcomes[*who] == REFUSED)
            return REFUSED;
    }
    return OPENED;
}

static int32_t open_one(struct split *split, unsigned try,
                        struct dt_comm **newcomm, dt_result_t *why,
                        struct dt_error *err)
{
    *why = DT_SUCCESS;
    if (split->color == DT_COLOR_NONE)
        return OPENED;
    find_members(split);
    if (choose(split, try))
        *why = dt_comm_open(split->comm->world, split->ranks, split->nmembers,
                            split->id, split->serial, newcomm, err);
    else
        *why = dt_error_set(err, DT_ERR_NO_MEMORY,
                            "%s: no communicator id is free on all ranks: "
                            "destroy some first",
                            split->name);
    return *why == DT_SUCCESS       ? OPENED
           : *why == DT_IN_PROGRESS ? TAKEN
                                    : REFUSED;
}

/* One try; DT_IN_PROGRESS: another one is needed. */
static dt_result_t attempt(struct split *split, unsigned try,
                           struct dt_comm **newcomm, struct dt_error *err)
{
    struct dt_comm *opened = NULL;
    struct dt_error refusal;
    size_t who = 0;
    dt_result_t rc = gather_wishes(split, err), why;
    if (rc != DT_SUCCESS)
        return rc;
    int32_t mine = open_one(split, try, &opened, &why, &refusal);
    rc = gather(split->comm, &mine, split->outcomes, sizeof(mine), err);
    int32_t verdict = rc == DT_SUCCESS ? judge(split, &who) : REFUSED;
    if (verdict == OPENED) {
        *newcomm = opened;
        return DT_SUCCESS;
    }
    dt_comm_close(opened);
    if (rc != DT_SUCCESS)
        return rc;
    if (verdict == TAKEN)
        return DT_IN_PROGRESS;
    if (why == DT_SUCCESS)
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "%s: rank %zu could not open its part of the new "
                            "communicator",
                            split->name, split->comm->members[who]);
    *err = refusal;
    return why;
}

static dt_result_t run(struct split *split, struct dt_comm **newcomm,
                       struct dt_error *err)
{
    size_t n = split->comm->size;
    dt_result_t rc = DT_IN_PROGRESS;
    split->wishes = calloc(n, sizeof(*split->wishes));
    split->outcomes = calloc(n, sizeof(*split->outcomes));
    split->members = calloc(n, sizeof(*split->members));
    split->ranks = calloc(n, sizeof(*split->ranks));
    if (!split->wishes || !split->outcomes || !split->members || !split->ranks)
        rc = no_memory(split, err);
    for (unsigned try = 0; rc == DT_IN_PROGRESS && try < TRIES; try++)
        rc = attempt(split, try, newcomm, err);
    if (rc == DT_IN_PROGRESS)
        rc = dt_error_set(err, DT_ERR_NO_MEMORY,
                          "%s: other threads took the communicator ids %d "
                          "times: destroy some first",
                          split->name, TRIES);
    free(split->wishes);
    free(split->outcomes);
    free(split->members);
    free(split->ranks);
    return rc;
}

dt_result_t dt_split(struct dt_comm *comm, int color, int key,
                     struct dt_comm **newcomm, struct dt_error *err)
{
    struct split split = {
        .name = "dt_comm_split", .comm = comm, .color = color, .key = key};
    *newcomm = NULL;
    return run(&split, newcomm, err);
}

dt_result_t dt_create(struct dt_comm *plain, int key, struct dt_comm **newcomm,
                      struct dt_error *err)
{
    struct split split = {.name = "dt_comm_create", .comm = plain, .key = key};
    *newcomm = NULL;
    return run(&split, newcomm, err);
}

dt_result_t dt_comm_twin(struct dt_comm *comm, struct dt_comm **twin,
                         struct dt_error *err)
{
    return dt_split(comm, 0, (int)comm->rank, twin, err);
}
