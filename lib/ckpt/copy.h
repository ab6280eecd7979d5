/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* copy.h - between this process's buffers and the program's memory, which may
 * be a GPU's. */
#ifndef DT_CKPT_COPY_H
#define DT_CKPT_COPY_H

#include <stddef.h>

#include "base/error.h"

struct dt_copy;

/* Errors: NO_MEMORY; UNSUPPORTED if there is a GPU that cannot be used. */
dt_result_t dt_copy_open(struct dt_copy **copy, struct dt_error *err);
void dt_copy_close(struct dt_copy *copy); /* NULL is fine */

/* Are these bytes where this process can read and write them itself? */
bool dt_copy_is_host(struct dt_copy *copy, const void *data, size_t len);

/* Begin to copy len bytes, either of them in any memory; those of the host are
 * copied when this returns, all others when finish has. The program's own
 * streams are waited for by finish's caller: what the program put on the GPU's
 * default stream before is in what is copied. Errors: those of base and gpu.h.
 */
dt_result_t dt_copy_begin(struct dt_copy *copy, void *to, const void *from,
                          size_t len, struct dt_error *err);
dt_result_t dt_copy_finish(struct dt_copy *copy, struct dt_error *err);

#endif
