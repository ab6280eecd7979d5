/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gpu.h - the tensors of ckpt-gpu: in every sort of memory, and what is in
 * them at every step. Failures end the process, with a line. */
#ifndef CKPT_GPU_H
#define CKPT_GPU_H

#include "dt.h"
#include "mock.h"

enum { TENSORS = 9 };

/* The program's stream, which does not wait for the default one. */
extern dt_stream_t user_stream;

void need(bool good, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Allocate them; own: also the one that is each rank's own; only: just this
 * one, unless NULL. */
void model_open(bool own, const char *only);
void model_name(dt_ckpt_t ckpt);

/* Give them the values of a step: now; or put that on user_stream. */
void model_fill(int64_t step);
void model_put(int64_t step);

/* Have they those values? */
bool model_holds(int64_t step);

/* Free the memory of one, which is on a GPU and written by each rank. */
void model_free_one(void);

#endif
