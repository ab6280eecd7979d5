/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* split.c - the public life of communicators.
 *
 * A split is two allgathers on the old communicator:
 *
 *   1. what I want, and which ids are free here --> every rank finds its
 *      group, and an id and a serial for it
 *   2. could I open it so? --> yes, all could: done
 *                          --> a split in another thread was faster on some
 *                              rank: close again, and try other numbers
 *                          --> else somebody's error, which all of its group
 *                              report */
#include <stdlib.h>
#include <string.h>

#include "base/api.h"
#include "coll/api/call.h"
#include "coll/api/check.h"
#include "coll/engine/device.h"

/* Other threads would have to be very unlucky for very long. */
#define TRIES 1000

#define MASK (DT_COMMS / 64)

/* 1 and 2 of a rank. */
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

static dt_result_t no_memory(struct dt_error *err)
{
    return dt_error_set(err, DT_ERR_NO_MEMORY,
                        "dt_comm_split: no memory for a communicator");
}

/* The same bytes of each rank of comm to all. */
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
        if (!world->comms[id])
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

/* Those of my color, in order. */
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

/* An id that is free on all members, and a serial above all. Splits of two
 * communicators at once most likely choose differently, and again so in each
 * try. False: there is no such id. */
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

/* The worst of those that concern me: any rank's TAKEN makes all try again. */
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
                            "dt_comm_split: no communicator id is free on all "
                            "ranks: destroy some first");
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
                            "dt_comm_split: rank %zu could not open its part "
                            "of the new communicator",
                            who);
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
        rc = no_memory(err);
    for (unsigned try = 0; rc == DT_IN_PROGRESS && try < TRIES; try++)
        rc = attempt(split, try, newcomm, err);
    if (rc == DT_IN_PROGRESS)
        rc = dt_error_set(err, DT_ERR_NO_MEMORY,
                          "dt_comm_split: other threads took the communicator "
                          "ids %d times: destroy some first",
                          TRIES);
    free(split->wishes);
    free(split->outcomes);
    free(split->members);
    free(split->ranks);
    return rc;
}

dt_result_t dt_comm_twin(struct dt_comm *comm, struct dt_comm **twin,
                         struct dt_error *err)
{
    struct split split = {.comm = comm, .key = (int)comm->rank};
    return run(&split, twin, err);
}

/* What both have in common with collectives. */
static dt_result_t check(enum dt_call_kind kind, dt_comm_t comm,
                         struct dt_error *err)
{
    const struct dt_call call = {.kind = kind, .comm = comm};
    if (!comm)
        return dt_error_set(err, DT_ERR_NOT_INITIALIZED,
                            "%s: no communicator: call it between dt_init and "
                            "dt_finalize",
                            dt_call_name(kind));
    dt_result_t rc = dt_call_no_group(kind, err);
    if (rc == DT_SUCCESS && comm->world->check)
        rc = dt_check(&call, err);
    return rc;
}

dt_result_t dt_comm_split(dt_comm_t comm, int color, int key,
                          dt_comm_t *newcomm)
{
    struct dt_error err = {""};
    struct split split = {.comm = comm, .color = color, .key = key};
    struct dt_comm *made = NULL;
    dt_result_t rc = DT_SUCCESS;
    if (color < 0 && color != DT_COLOR_NONE)
        rc = dt_error_set(&err, DT_ERR_INVALID_ARG,
                          "dt_comm_split: color %d: expected 0 or more, or "
                          "DT_COLOR_NONE",
                          color);
    else if (!newcomm)
        rc = dt_error_set(&err, DT_ERR_INVALID_ARG,
                          "dt_comm_split: newcomm is NULL");
    if (rc == DT_SUCCESS)
        rc = check(DT_CALL_SPLIT, comm, &err);
    if (rc == DT_SUCCESS)
        rc = run(&split, &made, &err);
    if (rc == DT_SUCCESS)
        *newcomm = made;
    return dt_api_return(rc, &err);
}

dt_result_t dt_comm_destroy(dt_comm_t comm)
{
    struct dt_error err = {""}, late;
    if (!comm)
        return DT_SUCCESS;
    if (comm->id == DT_COMM_WORLD)
        return dt_api_return(
            dt_error_set(&err, DT_ERR_INVALID_ARG,
                         "dt_comm_destroy: the world goes with dt_finalize"),
            &err);
    dt_result_t rc = check(DT_CALL_DESTROY, comm, &err);
    if (rc != DT_SUCCESS && dt_comm_failure(comm, NULL) == DT_SUCCESS)
        return dt_api_return(rc, &err); /* it works on */
    while (comm->active) {
        dt_result_t ended = dt_comm_wait(comm, comm->active, &late);
        if (rc == DT_SUCCESS && ended != DT_SUCCESS) {
            rc = ended;
            err = late;
        }
    }
    if (rc == DT_SUCCESS)
        rc = dt_device_leave(comm, &err);
    if (rc == DT_SUCCESS)
        rc = dt_call_leave(comm, &err);
    dt_device_close_comm(comm);
    dt_comm_close(comm);
    return dt_api_return(rc, &err);
}

int dt_comm_rank(dt_comm_t comm)
{
    return comm ? (int)comm->rank : DT_ERR_NOT_INITIALIZED;
}

int dt_comm_size(dt_comm_t comm)
{
    return comm ? (int)comm->size : DT_ERR_NOT_INITIALIZED;
}
