/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ranks.h - what the modes of gpu-ranks share: GPU 0 of the mock driver,
 * whose memory the host can read. */
#ifndef GPU_RANKS_H
#define GPU_RANKS_H

#include "../coll/each.h"

#define MIB ((size_t)1 << 20)

void *gpu_memory(size_t len); /* zeroed; all of it lives until the end */
dt_stream_t gpu_stream(void);
void gpu_sync(dt_stream_t stream);
void gpu_copy(void *dst, const void *src, size_t len, dt_stream_t stream);

/* What comes on the stream after gate_shut waits for gate_open. */
void gate_shut(dt_stream_t stream);
void gate_open(void);

/* count floats of this rank, and what their sum is. */
void put_floats(float *buf, size_t count, int step);
void expect_sum(const float *buf, size_t count, int step, const char *what);

void mode_order(int argc, char **argv);
void mode_two(int argc, char **argv);
void mode_many(int argc, char **argv);
void mode_messages(int argc, char **argv);
void mode_steady(int argc, char **argv);
void mode_end(int argc, char **argv);
void mode_places(int argc, char **argv);
void mode_disagree(int argc, char **argv);
void mode_served(int argc, char **argv);
void mode_direct(int argc, char **argv);
/* these leave the job themselves */
void mode_lost(int argc, char **argv);
void mode_broken(int argc, char **argv);
void mode_fails(int argc, char **argv);
void mode_dead(int argc, char **argv);

#endif
