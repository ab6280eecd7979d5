/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* drain.h - bringing bytes to a disk behind the program: a thread that does
 * one thing at a time, and a writer that does not go through the page cache. */
#ifndef DT_CKPT_DRAIN_H
#define DT_CKPT_DRAIN_H

#include "base/error.h"

/* ---- the thread ---- */

struct dt_drain;

/* Start it: it takes no signals. Errors: NO_MEMORY, SYSTEM. */
dt_result_t dt_drain_start(struct dt_drain **drain, struct dt_error *err);

/* Have it call fn(arg), when nothing is under way. */
void dt_drain_run(struct dt_drain *drain, void (*fn)(void *arg), void *arg);

/* Wait until nothing is under way: as long as fn takes. */
void dt_drain_wait(struct dt_drain *drain);

/* Wait, then end the thread. NULL is fine. */
void dt_drain_stop(struct dt_drain *drain);

/* Is somebody waiting? For fn, which may then hurry. */
bool dt_drain_awaited(struct dt_drain *drain);

/* ---- the writer ---- */

struct dt_piece {
    const void *data;
    size_t len;
};

/* Write n pieces, one behind the other, to the empty file fd, not through the
 * page cache where the file system can do without; no faster than rate bytes/s
 * (0: no limit) while nobody waits for drain (which may be NULL). -1 and errno
 * on failure. */
int dt_drain_write(int fd, const struct dt_piece *piece, size_t n, double rate,
                   struct dt_drain *drain);

#endif
