/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* copy.h - between this process's buffers and the program's memory, which may
 * be a GPU's. */
#ifndef DT_CKPT_COPY_H
#define DT_CKPT_COPY_H

#include <stddef.h>

#include "base/error.h"

struct dt_copy;

/* Errors: NO_MEMORY. A GPU that cannot be used is an error only where memory
 * is that is not the host's. */
dt_result_t dt_copy_open(struct dt_copy **copy, struct dt_error *err);
void dt_copy_close(struct dt_copy *copy); /* NULL is fine */

/* A save or a load begins: GPUs may have got work since the last one. Whatever
 * the program has put on a GPU, on any of its streams, is waited for when
 * memory of that is first looked at. */
void dt_copy_start(struct dt_copy *copy);

/* Are these bytes where this process can read and write them itself? False also
 * of memory that begin refuses. */
bool dt_copy_is_host(struct dt_copy *copy, const void *data, size_t len);

/* Begin to copy len bytes, either of them in any memory; those of the host are
 * copied when this returns, all others when finish has. Errors: those of
 * gpu.h, of which INVALID_ARG is memory that is nobody's. */
dt_result_t dt_copy_begin(struct dt_copy *copy, void *to, const void *from,
                          size_t len, struct dt_error *err);
dt_result_t dt_copy_finish(struct dt_copy *copy, struct dt_error *err);

/* Has memory of a GPU been looked at since start? Only then, pin memory of the
 * host, whole pages, for copies; unpin it before its pages go. Errors: those of
 * gpu.h. */
bool dt_copy_has_gpus(const struct dt_copy *copy);
dt_result_t dt_copy_pin(struct dt_copy *copy, void *memory, size_t len,
                        struct dt_error *err);
void dt_copy_unpin(struct dt_copy *copy, void *memory);

#endif
