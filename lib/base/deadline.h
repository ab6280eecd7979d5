/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* deadline.h - when Slurm ends this job, and whether the program should leave
 * now to have time for a checkpoint. One state per process; any thread may
 * call. */
#ifndef DT_BASE_DEADLINE_H
#define DT_BASE_DEADLINE_H

#include <stdbool.h>

/* Seconds until the end of the job; 0 when it has passed, negative if it is
 * unknown. The first call reads DT_JOB_END, or else Slurm's SLURM_JOB_END_TIME;
 * from then on only CLOCK_MONOTONIC counts. */
double dt_deadline_left(void);

/* Set the time that a checkpoint takes, from its beginning until it is on disk.
 */
void dt_deadline_reserve(double seconds);

/* The program is between two training steps: their length is measured by this.
 */
void dt_deadline_step(void);

/* Is less time left than one training step, the reserved time and a margin take
 * together? The margin is a minute, or a tenth of the time at the first call,
 * whichever is less. Always false if the end is unknown. Async-signal-safe once
 * dt_deadline_left() has returned. */
bool dt_deadline_near(void);

#endif
