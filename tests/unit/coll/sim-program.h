/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* sim-program.h - a random program: what a seed decides, and what every rank
 * must have in the end. */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H

#include "sim-job.h"

#define MAX_RANKS 64
#define MAX_STEPS 5
#define MAX_OPS   (2 * MAX_STEPS) /* of a rank: a step may be two */

/* One collective, or a message from each rank of a communicator to the next. */
struct sim_step {
    struct dt_shape shape; /* root: modulo the size of the communicator */
    size_t comm;
    bool uneven, message;
};

/* A communicator as one rank has it. */
struct sim_part {
    size_t size, rank;
    const size_t *members;
};

struct program {
    uint64_t seed, state;
    size_t size, nsteps, depth;
    size_t node_of[MAX_RANKS];
    size_t ncomms;
    size_t members[SIM_COMMS][MAX_RANKS]; /* of one color after the other */
    struct sim_part parts[SIM_COMMS][MAX_RANKS];
    struct sim_step steps[MAX_STEPS];
    size_t kill_at, stop_at, victim;
};

/* A number below n. */
size_t program_pick(struct program *p, size_t n);

void program_make(struct program *p, uint64_t seed);

/* How many elements of a step rank reads, and has in the end. */
size_t program_sends(const struct program *p, size_t step, size_t rank);
size_t program_receives(const struct program *p, size_t step, size_t rank);

/* Elements that one rank of part gives to another, in an uneven step. */
size_t program_count(const struct program *p, size_t step, size_t from,
                     size_t to);

/* What rank reads at element i, and what must be in its receive buffer. */
double program_value(const struct program *p, size_t step, size_t rank,
                     size_t i);
double program_expects(const struct program *p, size_t step, size_t rank,
                       size_t i);

/* buf[i] = value, rounded to nearest even. */
void program_put(void *buf, dt_dtype_t dtype, size_t i, double value);

#endif
