/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* copy.h - copies between this process's buffers and the program's memory,
 * which may be a GPU's. */
#ifndef DT_CKPT_COPY_H
#define DT_CKPT_COPY_H

#include <stddef.h>

#include "base/error.h"

struct dt_copy;

/* Error: NO_MEMORY. A GPU that cannot be used is an error only later, when
 * memory is not the host's. */
dt_result_t dt_copy_open(struct dt_copy **copy, struct dt_error *err);
void dt_copy_close(struct dt_copy *copy); /* NULL is allowed */

/* Begin a save or a load: the program may have started work on GPUs since the
 * last one. When memory of a GPU is first seen after this, all work that the
 * program has started on that GPU, on any stream, is waited for. */
void dt_copy_start(struct dt_copy *copy);

/* Can this process read and write these bytes itself? False also for memory
 * that dt_copy_begin refuses. */
bool dt_copy_is_host(struct dt_copy *copy, const void *data, size_t len);

/* Begin to copy len bytes between any two kinds of memory. Copies within host
 * memory are complete on return, all others when dt_copy_finish returns.
 * Errors: those of gpu.h; INVALID_ARG is memory that neither the host nor a GPU
 * knows. */
dt_result_t dt_copy_begin(struct dt_copy *copy, void *to, const void *from,
                          size_t len, struct dt_error *err);
dt_result_t dt_copy_finish(struct dt_copy *copy, struct dt_error *err);

/* Has memory of a GPU been seen since dt_copy_start? Only then may host memory,
 * in whole pages, be pinned for copies; it must be unpinned before its pages
 * are freed. Errors: those of gpu.h. */
bool dt_copy_has_gpus(const struct dt_copy *copy);
dt_result_t dt_copy_pin(struct dt_copy *copy, void *memory, size_t len,
                        struct dt_error *err);
void dt_copy_unpin(struct dt_copy *copy, void *memory);

#endif
