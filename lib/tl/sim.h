/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* sim.h - a transport in virtual time: all ranks of a job in one process, one
 * thread, and a seed that decides everything.
 *
 * It is as nasty as tl.h allows: messages of different tags overtake each
 * other, a send reads its buffer late, pieces become visible to one rank before
 * another, dead ranks take with them what was under way. The same seed gives
 * the same run. */
#ifndef DT_TL_SIM_H
#define DT_TL_SIM_H

#include "tl/tl.h"

struct dt_sim_config {
    size_t size;
    const size_t *node_of; /* per rank; copied */
    uint64_t seed;
    /* virtual seconds */
    double node_latency, node_byte; /* inside a node, per message and byte */
    double net_latency, net_byte;
    double jitter; /* each delay is multiplied by 1 .. 1 + jitter */
    double lost;   /* share of messages that come only after ... */
    double again;  /* ... this long */
    uint64_t rounds_room;
};

struct dt_sim;

/* Error NO_MEMORY. */
dt_result_t dt_sim_open(const struct dt_sim_config *config, struct dt_sim **sim,
                        struct dt_error *err);
void dt_sim_close(struct dt_sim *sim); /* NULL is fine */

/* The transport of a rank, to all others; it belongs to the simulator. */
struct dt_tl *dt_sim_tl(struct dt_sim *sim, size_t rank);

/* Let time go on to the next event; the rank that it is for, which may progress
 * then, or DT_SIM_OVER: nothing will happen any more by itself. */
#define DT_SIM_OVER SIZE_MAX
size_t dt_sim_step(struct dt_sim *sim);

double dt_sim_now(const struct dt_sim *sim);

/* What a rank spends computing delays what it does next. */
void dt_sim_compute(struct dt_sim *sim, size_t rank, double seconds);

/* The end of a rank: its memory is not looked at again. Others find out by
 * check. */
void dt_sim_kill(struct dt_sim *sim, size_t rank);

/* A number below n, from the seed. */
uint64_t dt_sim_random(struct dt_sim *sim, uint64_t n);

/* Bytes that have left a rank for another node. */
uint64_t dt_sim_bytes(const struct dt_sim *sim, size_t rank);

extern const struct dt_tl_ops dt_tl_sim; /* made by dt_sim_open only */

#endif
