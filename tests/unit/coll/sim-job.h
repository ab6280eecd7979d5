/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* sim-job.h - a job in the simulator: the real engine and schedules, with all
 * ranks in this thread. */
#ifndef SIM_JOB_H
#define SIM_JOB_H

#include "coll/engine/comm.h"
#include "sim/sim.h"

/* Communicators of a rank; the first is that of all ranks. */
#define SIM_COMMS 3

/* One collective, on one rank. */
struct sim_op {
    struct dt_shape shape;
    size_t comm; /* which */
    void *send, *recv;
    struct dt_request *request; /* NULL: not begun, or over */
    dt_result_t result;         /* valid once it is over */
    bool over;
};

struct sim_job {
    struct dt_sim *sim;
    size_t size;
    struct dt_world *worlds;             /* per rank */
    struct dt_comm *(*comms)[SIM_COMMS]; /* per rank; NULL: it has none */
    bool *dead;
    size_t *nops;        /* per rank */
    struct sim_op **ops; /* of each rank */
    size_t *begun;       /* per rank: how many */
    size_t depth;        /* how many may be pending at once */
};

/* Room for so many collectives per rank, to be filled in, with their number in
 * nops, before sim_job_run. false: no memory. */
bool sim_job_open(struct sim_job *job, const struct dt_sim_config *config,
                  size_t room, size_t depth);

/* Give a rank another communicator: these n ranks, in this order. false: no
 * memory. */
bool sim_job_comm(struct sim_job *job, size_t rank, size_t comm,
                  const size_t *members, size_t n);
void sim_job_close(struct sim_job *job);

/* Begin and progress all operations of all ranks, until all are over. kill_at:
 * after so many events, rank victim dies; SIZE_MAX: never. stop_at: the same,
 * but the rank only stops, and the first rank that waits for it times out when
 * no event is left. false: an operation never ended. */
bool sim_job_run(struct sim_job *job, size_t kill_at, size_t stop_at,
                 size_t victim);

#endif
