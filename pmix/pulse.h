/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pulse.h - the processes of this node's ranks, that others have started: does
 * one stand still, and signals to them. A process id that was given to another
 * process meanwhile is never touched. */
#ifndef DT_PMIX_PULSE_H
#define DT_PMIX_PULSE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct dt_pulse;

/* Of count ranks, by index. A process that is stopped for limit ms stands
 * still. */
dt_result_t dt_pulse_open(struct dt_pulse **pulse, size_t count, int64_t limit,
                          struct dt_error *err);
void dt_pulse_close(struct dt_pulse *pulse); /* pulse may be NULL */

/* The process of a rank. One that has ended already is as good as none. */
void dt_pulse_started(struct dt_pulse *pulse, size_t index, pid_t pid);
void dt_pulse_ended(struct dt_pulse *pulse, size_t index);

void dt_pulse_signal(struct dt_pulse *pulse, size_t index, int sig);
void dt_pulse_signal_all(struct dt_pulse *pulse, int sig);

/* Look at all of them if it is time to, now in ms; next says when to come again
 * at the latest. Returns a rank that stands still, once for each, or -1: call
 * it until then. Time in which this process itself stood still, as where the
 * whole step was suspended, does not count; nor does a process that a debugger
 * holds. */
long dt_pulse_turn(struct dt_pulse *pulse, int64_t now, int64_t *next);

/* The state letter in a line of /proc/PID/stat; '\0' if it is none. */
char dt_pulse_state(const char *stat);

#endif
