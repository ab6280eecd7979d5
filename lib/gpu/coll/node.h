/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* node.h - collectives among GPUs that read each other's memory: the ranks
 * of a communicator that is all on one node.
 *
 * Each rank shares a board with the others and puts exchanges (gpu/gpu.h) on
 * the caller's stream. No host waits for anything. */
#ifndef DT_GPU_COLL_NODE_H
#define DT_GPU_COLL_NODE_H

#include "coll/engine/engine.h"
#include "gpu/gpu.h"

/* A rank posts len bytes as 2 * len to each of the others. At 200 GB/s that of
 * the longest that can be, to 15 others, is over in the time of the trip that
 * it saves, some 1.2 us. */
#define DT_GPU_NODE_POST DT_GPU_POST_MAX

/* The test: exchanges, posted ones in turn with others, so that both slots of
 * each are used, and used again, and the numbers that each two ranks exchange
 * in one. */
#define DT_GPU_NODE_ROUNDS  6
#define DT_GPU_NODE_NUMBERS 60
typedef uint32_t dt_gpu_numbers[DT_GPU_PEERS][DT_GPU_NODE_NUMBERS];

/* In pinned memory, each of the kernels' words in a line of its own. */
struct dt_gpu_words {
    _Alignas(64) uint32_t abort;
    _Alignas(64) uint32_t done;     /* the last ticket that is over */
    _Alignas(64) uint32_t replayed; /* what captured ones write to */
    _Alignas(64) dt_gpu_numbers shown[DT_GPU_NODE_ROUNDS];
    _Alignas(64) dt_gpu_numbers seen[DT_GPU_NODE_ROUNDS];
};

struct dt_gpu_node {
    struct dt_gpu *gpu;
    int device;
    enum dt_gpu_sharing sharing; /* of the boards */
    size_t rank, size;
    long timeout;              /* seconds */
    size_t post;               /* bytes of the longest row that is posted */
    void *board[DT_GPU_PEERS]; /* of each rank; mine is my own to free */
    struct dt_gpu_words *words;
    uint32_t last;      /* ticket */
    dt_stream_t stream; /* that the last one was put on */
    bool left;          /* the others' boards are given back */
    bool stuck;         /* the GPU does not come back: nothing can be freed */
};

/* Share boards between all ranks of comm, device being mine, and see whether
 * every rank really reads and writes the others'. Collective over comm, whose
 * host collectives it uses; blocks. The first kind of dt_gpu_sharing that no
 * rank is refused is taken. *node is NULL, on all ranks, where it is not to be
 * had, and reason (512 bytes) says who cannot and why: more than DT_GPU_PEERS
 * ranks, or more than one node, no peer-to-peer, refused handles of each
 * kind, a self-test that failed. Errors: those of the collectives, NO_MEMORY.
 */
dt_result_t dt_gpu_node_open(struct dt_comm *comm, struct dt_gpu *gpu,
                             int device, struct dt_gpu_node **node,
                             char reason[512], struct dt_error *err);

/* Wait for what is under way here, then let go of the others' boards: nothing
 * can be started after it. Not collective; when all is well it comes before the
 * last barrier of comm, and close after it, so that nobody frees what another
 * still has. NULL is fine. */
void dt_gpu_node_leave(struct dt_gpu_node *node);

/* Not collective; after a failure, or when all ranks are through (the caller
 * sees to it). Waits for what is under way here, which after dt_gpu_node_abort
 * is at once. NULL is fine. */
void dt_gpu_node_close(struct dt_gpu_node *node);

/* Can it be done so, with the bits of the host's? Equal on all ranks for equal
 * shapes: any even form but SEND and RECV, for types and ops that the kernels
 * have. */
bool dt_gpu_node_serves(const struct dt_shape *shape);

/* Put it on the stream, behind all that was started before on any stream.
 * *ticket tells dt_gpu_node_done when it is over. A barrier is an ALLREDUCE
 * with both buffers NULL. On a stream that is being captured it is only
 * recorded: *ticket is that of the last one before, and what is started, or
 * replayed, around a replay is the caller's to order. Never blocks. Errors: of
 * the driver; INVALID_ARG, when it is captured while an earlier one is under
 * way on another stream. */
dt_result_t dt_gpu_node_start(struct dt_gpu_node *node,
                              const struct dt_shape *shape, const void *sendbuf,
                              void *recvbuf, dt_stream_t stream,
                              uint32_t *ticket, struct dt_error *err);

/* Is everything up to this ticket over? The last one given out is in *last. */
bool dt_gpu_node_done(const struct dt_gpu_node *node, uint32_t ticket);
uint32_t dt_gpu_node_last(const struct dt_gpu_node *node);

/* All that is under way, and all that comes, ends at once with undefined
 * contents. Any thread. */
void dt_gpu_node_abort(struct dt_gpu_node *node);

#endif
