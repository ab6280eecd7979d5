/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* streams.h - the mock driver's streams, as what is put on them sees them. */
#ifndef DT_MOCK_STREAMS_H
#define DT_MOCK_STREAMS_H

#include "kernels.h"
#include "mock.h"

/* One thing on a stream; run is on the stream's thread, when it is its turn. */
struct mock_op {
    struct mock_op *next;
    void (*run)(struct mock_op *op);
    unsigned delay; /* microseconds, before it */
    void *bytes;    /* NULL, or what the op owns, nbytes */
    size_t nbytes;
    struct mock_point *point;
    /* copies, and writes of a value */
    char *dst;
    const char *src; /* NULL: bytes */
    size_t width, rows, dst_pitch, src_pitch;
    /* values */
    uint32_t *flag;
    uint32_t value;
    unsigned how;
    /* functions of the host */
    void (*fn)(void *arg);
    void *arg;
    /* kernels */
    const struct dt_mock_kernel *kernel;
    unsigned grid, threads;
};

struct mock_op *mock_op(void (*run)(struct mock_op *op), enum mock_call call);

/* Put it there, or give it back. own_context: only on a stream of the current
 * context. */
int mock_put(dt_stream_t stream, struct mock_op *op, bool own_context);

/* Wait until all is done that is on the stream now. */
int mock_finish(dt_stream_t stream);

#endif
