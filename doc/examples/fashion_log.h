/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fashion_log.h - the output of rank 0: progress on standard output, numbers in
 * a CSV file to which every start of the job appends.
 *
 *     time,restart,event,epoch,step,value,note
 *
 * time is Unix time in seconds; restart counts the starts of this job before
 * this one. Events: start (value: ranks), rank (value: which one, note: its
 * node), loss (mean of the last steps), accuracy (percent), checkpoint,
 * preempted (value: the exit code), finished (value: accuracy). Steps after
 * that of a start event replace those of the starts before it. */
#ifndef FASHION_LOG_H
#define FASHION_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct log {
    bool active, quiet, terminal;
    bool line_open; /* the terminal's cursor is on a progress line */
    int restart;
    FILE *csv;      /* NULL: none, or no longer */
    double loss;    /* sum over samples, since the last CSV line */
    size_t samples; /* the same */
    size_t shown;   /* samples since shown_at, for images/s */
    double shown_at;
};

/* Only an active log prints; only rank 0's should be active. path may be
 * NULL. Returns 0, or -1 with errno. */
int log_open(struct log *log, const char *path, bool active, bool quiet,
             int restart);
void log_close(struct log *log);

/* One step is complete, loss is the sum over its samples. Prints it now and
 * then, at the same steps in every run. */
void log_step(struct log *log, int64_t epoch, int64_t step, double loss,
              size_t samples);

/* A line of the CSV file; note may be "". */
void log_event(struct log *log, const char *event, int64_t epoch, int64_t step,
               double value, const char *note);

/* A line on standard output: progress unless quiet, a result always. */
void log_progress(struct log *log, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void log_result(struct log *log, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* "fashion: warning: ..." on standard error. */
void log_warn(struct log *log, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
