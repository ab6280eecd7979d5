/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* node_part.h - what the files of gpu_node.h have in common. */
#ifndef DT_GPU_COLL_NODE_PART_H
#define DT_GPU_COLL_NODE_PART_H

#include "gpu/coll/node.h"

/* A board has two slots of this. With 8 MiB a round takes 20 us at the 400 GB/s
 * of NVLink 4, a few times what its flags cost, and larger ones would gain
 * little more; 16 MiB per communicator can be spared on any GPU that trains. */
#define DT_GPU_NODE_SLOT ((size_t)8 << 20)

/* A kernel looks at the abort word all the time: seconds until a GPU is taken
 * for lost. */
#define DT_GPU_NODE_ABORTED 10

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

/* What is not of a way: among whom, and for which call. */
struct dt_gpu_exchange dt_gpu_node_exchange(const struct dt_gpu_node *node,
                                            const struct dt_shape *shape,
                                            const void *sendbuf, void *recvbuf);

/* dt_gpu_node_start of this one; its done word is set here. */
dt_result_t dt_gpu_node_put(struct dt_gpu_node *node, struct dt_gpu_exchange *x,
                            dt_stream_t stream, uint32_t *ticket,
                            struct dt_error *err);

/* Wait for a ticket; false: not within so many seconds. */
bool dt_gpu_node_wait(const struct dt_gpu_node *node, uint32_t ticket,
                      long seconds);

#endif
