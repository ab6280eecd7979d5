/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nccl_part.h - what the files of gpu_nccl.h have in common. */
#ifndef DT_GPU_COLL_NCCL_PART_H
#define DT_GPU_COLL_NCCL_PART_H

#include <pthread.h>
#include <time.h>

#include "gpu/coll/nccl.h"
#include "gpu/coll/nccl_api.h"

/* In pinned memory. */
struct dt_nccl_words {
    _Alignas(64) uint32_t done;    /* the last ticket that is over */
    _Alignas(64) int32_t added[2]; /* by barriers, and the test: in, out */
};

/* OPEN -> ENDING, by an end or an abort -> ENDED */
enum dt_nccl_state { DT_NCCL_OPEN, DT_NCCL_ENDING, DT_NCCL_ENDED };

struct dt_gpu_nccl {
    struct dt_nccl_api api;
    struct dt_world *world;
    struct dt_gpu *gpu;
    int device;
    size_t rank, size;
    /* NCCL takes one thread at a time for a communicator; not held while the
     * world's is waited for by who already has that */
    pthread_mutex_t lock;
    struct dt_nccl_comm *comm;
    _Atomic int state;
    _Atomic bool aborted;
    struct dt_nccl_words *words;
    uint32_t last;      /* ticket */
    dt_stream_t stream; /* that the last one was put on */
};

/* Hand a valid shape to NCCL; a code of it, maybe DT_NCCL_IN_PROGRESS: then
 * dt_nccl_poll has to be asked until it is not, before anything else is put on
 * the stream. The device has been entered, and the lock is held. */
int dt_nccl_put(struct dt_gpu_nccl *nccl, const struct dt_shape *shape,
                const void *sendbuf, void *recvbuf, dt_stream_t stream);
int dt_nccl_poll(struct dt_gpu_nccl *nccl);

/* The next ticket, when all that is on the stream is over. */
dt_result_t dt_nccl_sign(struct dt_gpu_nccl *nccl, dt_stream_t stream,
                         struct dt_error *err);

/* dt_gpu_nccl_close; false: something has not ended, and all of it stays. */
bool dt_nccl_end(struct dt_gpu_nccl *nccl);

/* Seconds since then, on the monotonic clock; a nap of so many. */
double dt_nccl_since(const struct timespec *then);
void dt_nccl_nap(double seconds);

#endif
