/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* memory.h - where the tensors of the tests are: in the memory of the host, in
 * the program `ranks`, or in that of the test driver's GPU, in `gpu-ranks`. The
 * host can read and write both. */
#ifndef GRAD_TESTS_MEMORY_H
#define GRAD_TESTS_MEMORY_H

#include "dt.h"

/* Zeroed memory; len may be 0. memory_put takes NULL. */
void *memory_get(size_t len);
void memory_put(void *memory);

/* The stream on which it is written: DT_STREAM_NONE on the host. */
dt_stream_t memory_stream(void);

#endif
