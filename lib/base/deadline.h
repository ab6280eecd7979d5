/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* deadline.h - when Slurm ends this job, and how long before that it has to
 * leave. One per process, since the job is; any thread may ask. */
#ifndef DT_BASE_DEADLINE_H
#define DT_BASE_DEADLINE_H

#include <stdbool.h>

/* Seconds until the job's end, as DT_JOB_END or else Slurm's own
 * SLURM_JOB_END_TIME tells it at the first call; 0 when it has passed, negative
 * if neither is a time. A clock that is set later changes nothing. */
double dt_deadline_left(void);

/* From now on this many seconds are needed to save: what a checkpoint costs,
 * from its beginning until it is on disk. */
void dt_deadline_reserve(double seconds);

/* The program is between two steps. */
void dt_deadline_step(void);

/* Is it time to leave? So it is when less is left than a step, which may just
 * begin, what is reserved, and a margin: a minute, or a tenth of the time there
 * was at first, whichever is less. Never if the job has no end.
 * Async-signal-safe after dt_deadline_left. */
bool dt_deadline_near(void);

#endif
