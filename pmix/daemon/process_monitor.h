/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* process_monitor.h - the processes of this node's ranks, which the launcher
 * has started: which of them is stopped, and signals to them. A process id that
 * another process has been given meanwhile is never touched. */
#ifndef DT_PMIX_PROCESS_MONITOR_H
#define DT_PMIX_PROCESS_MONITOR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct dt_monitor;

/* Of count ranks, by index. limit, in ms: how long a process may be stopped. */
dt_result_t dt_monitor_open(struct dt_monitor **monitor, size_t count,
                            int64_t limit, struct dt_error *err);
void dt_monitor_close(struct dt_monitor *monitor); /* monitor may be NULL */

/* The process of a rank; ignored if it has ended already. */
void dt_monitor_started(struct dt_monitor *monitor, size_t index, pid_t pid);
void dt_monitor_ended(struct dt_monitor *monitor, size_t index);

void dt_monitor_signal(struct dt_monitor *monitor, size_t index, int sig);
void dt_monitor_signal_all(struct dt_monitor *monitor, int sig);

/* Check the processes if that is due, now in ms; *next is the next time.
 * Returns a rank that was stopped for longer than the limit, once for each, or
 * -1: call it until then. Time in which this process itself was stopped, as
 * when the whole step is suspended, does not count; nor does a process that a
 * debugger holds. */
long dt_monitor_progress(struct dt_monitor *monitor, int64_t now,
                         int64_t *next);

/* The state letter in a line of /proc/PID/stat; '\0' if it is none. */
char dt_monitor_state(const char *stat);

#endif
