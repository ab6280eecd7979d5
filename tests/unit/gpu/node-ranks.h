/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* node-ranks.h - what the files of gpu-node-ranks share. */
#ifndef GPU_NODE_RANKS_H
#define GPU_NODE_RANKS_H

#include "gpu/coll/node.h"

/* This rank, its GPU, and two areas of GPU_ROOM bytes there. */
struct bench {
    struct dt_comm *comm;
    struct dt_gpu *gpu;
    int device;
    struct dt_gpu_node *node;
    char reason[512];
    dt_stream_t stream;
    char *area[2];
    int descriptors; /* so many are open before the node is */
};
#define GPU_ROOM ((size_t)32 << 20)

/* A fact of this rank; the first few that do not hold are told on standard
 * error. */
__attribute__((format(printf, 2, 3))) void expect(bool cond, const char *fmt,
                                                  ...);

/* Between memory of the host and of the GPU; over when it returns. */
void move(struct bench *b, void *dst, const void *src, size_t len);

/* ---- gpu-node-each.c ---- */

/* All collectives, with what can vary. */
void each(struct bench *b);
/* Some that need several rounds of the boards. */
void large(struct bench *b);

#endif
