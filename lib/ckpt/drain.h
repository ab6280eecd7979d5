/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* drain.h - writing in the background: a thread that runs one function at a
 * time, and a writer that bypasses the page cache. */
#ifndef DT_CKPT_DRAIN_H
#define DT_CKPT_DRAIN_H

#include "base/error.h"

/* ---- the thread ---- */

struct dt_drain;

/* Start a thread, with all signals blocked. Errors: NO_MEMORY, SYSTEM. */
dt_result_t dt_drain_start(struct dt_drain **drain, struct dt_error *err);

/* Have the thread call fn(arg). The caller must know that it is idle. */
void dt_drain_run(struct dt_drain *drain, void (*fn)(void *arg), void *arg);

/* Block until the thread is idle. */
void dt_drain_wait(struct dt_drain *drain);

/* Wait, and end the thread. NULL is allowed. */
void dt_drain_stop(struct dt_drain *drain);

/* Does another thread wait for it? fn asks, and may then work faster. */
bool dt_drain_awaited(struct dt_drain *drain);

/* ---- the writer ---- */

struct dt_piece {
    const void *data;
    size_t len;
};

/* Write n pieces, one after the other, to the empty file fd, with O_DIRECT
 * where the file system can. rate limits bytes/s (0: no limit) as long as
 * nobody waits for drain, which may be NULL. Returns 0, or -1 with errno. */
int dt_drain_write(int fd, const struct dt_piece *piece, size_t n, double rate,
                   struct dt_drain *drain);

#endif
