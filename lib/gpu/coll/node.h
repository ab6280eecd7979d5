/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* node.h - collectives by kernels over CUDA IPC (DT_GPU_WAY=ipc), for a
 * communicator whose ranks are all on one node.
 *
 * Each rank shares a board with the others and puts exchanges (gpu/gpu.h) on
 * the caller's stream. The host does not wait. */
#ifndef DT_GPU_COLL_NODE_H
#define DT_GPU_COLL_NODE_H

#include "coll/engine/engine.h"
#include "gpu/gpu.h"

/* The longest row that is posted. A rank posts len bytes as 2 * len to each of
 * the others. At 200 GB/s, the longest row to 15 others takes about the latency
 * that posting saves, 1.2 us. */
#define DT_GPU_NODE_POST DT_GPU_POST_MAX

/* The self-test: so many exchanges, alternately posted and read, so that both
 * slots of each are used more than once; and the numbers that each two ranks
 * exchange in one. */
#define DT_GPU_NODE_ROUNDS  6
#define DT_GPU_NODE_NUMBERS 60
typedef uint32_t dt_gpu_numbers[DT_GPU_PEERS][DT_GPU_NODE_NUMBERS];

/* In pinned memory. Each word that the kernels use has a cache line of its
 * own. */
struct dt_gpu_words {
    _Alignas(64) uint32_t abort;
    _Alignas(64) uint32_t done;     /* the last ticket that is complete */
    _Alignas(64) uint32_t replayed; /* written by captured exchanges */
    _Alignas(64) dt_gpu_numbers shown[DT_GPU_NODE_ROUNDS];
    _Alignas(64) dt_gpu_numbers seen[DT_GPU_NODE_ROUNDS];
};

struct dt_gpu_node {
    struct dt_gpu *gpu;
    int device;
    size_t rank, size;
    bool shares;               /* two ranks have the same GPU */
    long timeout;              /* seconds */
    size_t post;               /* bytes of the longest row that is posted */
    void *board[DT_GPU_PEERS]; /* of each rank; this rank owns its own */
    struct dt_gpu_words *words;
    uint32_t last;      /* ticket */
    dt_stream_t stream; /* of the last exchange */
    bool left;          /* the boards of the others are released */
    bool stuck;         /* the GPU does not complete: nothing can be freed */
};

/* Share boards between all ranks of comm, and test that every rank can read and
 * write the boards of the others. device is this rank's. Collective over comm,
 * whose host collectives it uses; blocks. Where a rank cannot, *node is NULL on
 * all ranks, and reason (512 bytes) says which rank and why: more than
 * DT_GPU_PEERS ranks, more than one node, no peer-to-peer, CUDA IPC refused, a
 * failed self-test. Errors: those of the collectives, NO_MEMORY. */
dt_result_t dt_gpu_node_open(struct dt_comm *comm, struct dt_gpu *gpu,
                             int device, struct dt_gpu_node **node,
                             char reason[512], struct dt_error *err);

/* Wait for the exchanges of this rank, then release the boards of the others.
 * Nothing can be started afterwards. Not collective. Without a failure, call it
 * before the last barrier of comm, and close after the barrier, so that no rank
 * frees a board that another still uses. NULL is allowed. */
void dt_gpu_node_leave(struct dt_gpu_node *node);

/* Close after a failure, or when all ranks have left, which the caller ensures.
 * Waits for the exchanges of this rank, which end at once after
 * dt_gpu_node_abort. Not collective. NULL is allowed. */
void dt_gpu_node_close(struct dt_gpu_node *node);

/* Can this shape be an exchange, with the bits of the host's result? Equal on
 * all ranks for equal shapes. True for all even forms but SEND and RECV, for
 * types and ops that the kernels have. */
bool dt_gpu_node_serves(const struct dt_shape *shape);

/* Put an exchange on the stream. It runs after all exchanges that were started
 * before, on any stream. *ticket is for dt_gpu_node_done. A barrier is an
 * ALLREDUCE with both buffers NULL. On a stream that is being captured the
 * exchange is only recorded: *ticket is the last one before, and the caller
 * orders replays against other exchanges. Never blocks. Errors: of the driver;
 * INVALID_ARG where it is captured while an earlier exchange is under way on
 * another stream. */
dt_result_t dt_gpu_node_start(struct dt_gpu_node *node,
                              const struct dt_shape *shape, const void *sendbuf,
                              void *recvbuf, dt_stream_t stream,
                              uint32_t *ticket, struct dt_error *err);

/* Are all exchanges up to this ticket complete? dt_gpu_node_last gives the last
 * ticket that was issued. */
bool dt_gpu_node_done(const struct dt_gpu_node *node, uint32_t ticket);
uint32_t dt_gpu_node_last(const struct dt_gpu_node *node);

/* All exchanges, under way and later ones, end at once with undefined contents.
 * Any thread. */
void dt_gpu_node_abort(struct dt_gpu_node *node);

#endif
