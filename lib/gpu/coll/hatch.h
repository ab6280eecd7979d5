/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* hatch.h - file descriptors that processes of a node hand each other.
 *
 * Each opens a hatch, tells the others its name, puts a descriptor through
 * those of the others, and after all have done so takes what came through its
 * own. Nothing here waits. A hatch is a listening socket of an abstract name,
 * so both sides are of one network namespace, and nothing is left behind by a
 * process that dies; only processes of the same user are let through. */
#ifndef DT_GPU_COLL_HATCH_H
#define DT_GPU_COLL_HATCH_H

#include "base/error.h"

struct dt_gpu_hatch_name {
    unsigned char bytes[16];
};

/* *hatch is to be closed, which closes all that was not taken. */
dt_result_t dt_gpu_hatch_open(int *hatch, struct dt_gpu_hatch_name *name,
                              struct dt_error *err);

/* Put a copy of fd through, as that of number `from`. UNSUPPORTED: the other
 * hatch is not to be reached, or another user's. */
dt_result_t dt_gpu_hatch_put(const struct dt_gpu_hatch_name *name,
                             uint32_t from, int fd, struct dt_error *err);

/* fds[i] is that of number i, to be closed; -1: nothing came. The first one
 * counts. */
void dt_gpu_hatch_take(int hatch, int *fds, size_t n);

#endif
