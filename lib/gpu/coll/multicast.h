/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* multicast.h - reductions by the switch between the GPUs of a node (NVLink
 * SHARP), where there is one and the user asks for it.
 *
 * The bits of a sum of floats are the switch's: the same on all ranks, but not
 * those of the host. */
#ifndef DT_GPU_COLL_MULTICAST_H
#define DT_GPU_COLL_MULTICAST_H

#include "gpu/coll/node.h"

/* Bind memory of all GPUs of the node to one window, and reduce some numbers
 * through it. Collective over comm, that of the node; blocks. Where that is not
 * to be had *yes is false, on all ranks, and reason (512 bytes) says who cannot
 * and why: no such driver, GPU or switch, two ranks with one GPU, a call of the
 * driver that is refused, wrong numbers. The node has been aborted then, and
 * left. Errors: those of the collectives. */
dt_result_t dt_gpu_multicast_open(struct dt_comm *comm,
                                  struct dt_gpu_node *node, bool *yes,
                                  char reason[512], struct dt_error *err);

/* Of what dt_gpu_node_serves: does it go so? Equal on all ranks for equal
 * shapes: ALLREDUCE and REDUCE_SCATTER, of types and ops that switches have,
 * without factors, too long to be posted. */
bool dt_gpu_multicast_serves(const struct dt_gpu_node *node,
                             const struct dt_shape *shape);

/* As dt_gpu_node_start, whose tickets these are. */
dt_result_t dt_gpu_multicast_start(struct dt_gpu_node *node,
                                   const struct dt_shape *shape,
                                   const void *sendbuf, void *recvbuf,
                                   dt_stream_t stream, uint32_t *ticket,
                                   struct dt_error *err);

#endif
