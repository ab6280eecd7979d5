/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* each.h - one call of each collective, with all that can vary, and
 * whether the right thing comes out. */
#ifndef COLL_EACH_H
#define COLL_EACH_H

#include "ranks.h"

#define ROOM ((size_t)16 << 20) /* bytes of a buffer */

enum memory { PRIVATE, REGISTERED, SHARED, MEMORIES };

/* The memory of all jobs. */
extern char *arena[MEMORIES][2], *want_buf, *copy_buf;
void open_arenas(void);
void close_arenas(void);

/* How far buffers may be from where they would be aligned. */
extern size_t each_shift;

/* The stream of all calls; each_done returns when what a call with that result
 * has put there is done. */
extern dt_stream_t each_stream;
dt_result_t each_done(dt_result_t rc);

/* One call. */
struct job {
    const char *name;
    dt_comm_t comm;
    int rank, size;
    dt_dtype_t dtype;
    dt_op_t op;
    size_t count, elem;
    int root;
    bool in_place, later; /* later: the i-form */
    enum memory memory;
    dt_request_t request;
    size_t shift; /* of the buffers from where they would be aligned */
};

void allreduce(struct job *job);
void allreduce_scaled(struct job *job);
void reduce(struct job *job);
void reduce_scatter(struct job *job);
void reduce_scatterv(struct job *job);
void bcast(struct job *job);
void allgather(struct job *job);
void allgatherv(struct job *job);
void alltoall(struct job *job);
void alltoallv(struct job *job);
void gather(struct job *job);
void scatter(struct job *job);
void barrier(struct job *job);

#endif
