/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* sim.h - a simulator: the transports and boards of all ranks of a job, in one
 * process, one thread, and virtual time.
 *
 * Everything that tl.h and board.h leave open is decided by pseudorandom
 * numbers: messages of different tags overtake each other, a send reads its
 * buffer late, a piece becomes visible to one rank before another, a rank that
 * dies takes with it what it had under way. The same seed gives the same run.
 */
#ifndef DT_SIM_SIM_H
#define DT_SIM_SIM_H

#include "tl/tl.h"

struct dt_sim_config {
    size_t size;
    const size_t *node_of; /* per rank; copied */
    uint64_t seed;
    /* seconds of virtual time */
    double node_latency, node_byte; /* inside a node, per message and byte */
    double net_latency, net_byte;   /* between nodes */
    double jitter; /* each delay is multiplied by a number in 1 .. 1 + jitter */
    double lost;   /* this share of the messages between nodes comes late ... */
    double resend; /* ... by so much */
    uint64_t rounds_room; /* of all boards */
};

struct dt_sim;

/* Error NO_MEMORY. */
dt_result_t dt_sim_open(const struct dt_sim_config *config, struct dt_sim **sim,
                        struct dt_error *err);
void dt_sim_close(struct dt_sim *sim); /* NULL is fine */

/* The transport of a rank, which reaches all others and has boards. Owned by
 * the simulator; its open, address, connect and close are NULL. */
struct dt_tl *dt_sim_tl(struct dt_sim *sim, size_t rank);

/* Advance the time to the next event and return the rank that it happened to,
 * which may make progress then. DT_SIM_OVER: no event is left. */
#define DT_SIM_OVER SIZE_MAX
size_t dt_sim_step(struct dt_sim *sim);

/* Seconds of virtual time since the start. */
double dt_sim_now(const struct dt_sim *sim);

/* A rank computes for so many seconds: what it does next is delayed. */
void dt_sim_compute(struct dt_sim *sim, size_t rank, double seconds);

/* A rank dies: its memory is not read any more. The others notice it by
 * check. */
void dt_sim_kill(struct dt_sim *sim, size_t rank);

/* A pseudorandom number below n, or 0 if n is 0. */
uint64_t dt_sim_random(struct dt_sim *sim, uint64_t n);

/* Bytes that a rank has sent to other nodes. */
uint64_t dt_sim_bytes(const struct dt_sim *sim, size_t rank);

#endif
