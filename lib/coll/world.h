/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* world.h - this process as a rank of its job: who and where all ranks are,
 * and the transports that reach them. */
#ifndef DT_COLL_WORLD_H
#define DT_COLL_WORLD_H

#include "boot/boot.h"
#include "boot/card.h"
#include "tl/tl.h"

/* A subgroup: ranks of the world in rising order. index is this rank's place,
 * or DT_NOT_A_MEMBER. */
struct dt_group {
    size_t size, index;
    size_t *ranks;
};
#define DT_NOT_A_MEMBER SIZE_MAX

struct dt_world {
    size_t rank, size;
    long timeout; /* seconds without progress */
    struct dt_boot *boot;
    struct dt_tl *tl[DT_CARD_TLS]; /* shm, ucx; NULL where not needed */

    /* Nodes are numbered by their lowest rank. */
    size_t nnodes, node;     /* how many, and which is mine */
    size_t *node_of;         /* per rank */
    struct dt_group *nodes;  /* NODE: the ranks of each */
    struct dt_group leaders; /* NODE_LEADERS: the first rank of each */
    struct dt_group rail;    /* RAIL: the ranks of my local rank, if every
                              * node has one, else no member */
    size_t nrails;           /* the smallest local size */

    bool over;           /* set when the last barrier is: all went well */
    dt_result_t failure; /* DT_SUCCESS, or why everything now fails */
    struct dt_error failure_text;
};

/* Join the job: boot, exchange cards, connect. Collective. */
dt_result_t dt_world_open(struct dt_world **world, struct dt_error *err);

/* Leave it. Collective when over is set, which takes a barrier; immediate
 * otherwise. NULL is fine. */
void dt_world_close(struct dt_world *world);

/* The transport that reaches another rank. */
struct dt_tl *dt_world_route(const struct dt_world *world, size_t peer);

/* Everything fails from now on; peers are told. Only the first call counts.
 * Returns why it failed. */
dt_result_t dt_world_fail(struct dt_world *world, dt_result_t why,
                          const struct dt_error *err);

/* Hear of lost ranks from the launcher, and fail then; patience as in boot.h's
 * news. */
void dt_world_listen(struct dt_world *world, int patience);

#endif
