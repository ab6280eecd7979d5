/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ucx.h - UCX as if it were built with CUDA, over the mock driver: a program
 * that has ucx.c in it calls UCX through it.
 *
 * With DT_MOCK_UCX=1 in the environment UCX says that it takes memory of GPUs,
 * and takes it, as it is the host's. It is watched, then: whether it is told of
 * all such memory and of no other, and whether the GPU's context is current
 * when it is called. What is wrong is told on standard error. */
#ifndef DT_MOCK_UCX_H
#define DT_MOCK_UCX_H

/* Messages in memory of GPUs that were started so far, at both ends; of these,
 * in managed memory; and how much was wrong. */
int mock_ucx_messages(void);
int mock_ucx_managed(void);
int mock_ucx_wrong(void);

#endif
