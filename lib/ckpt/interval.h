/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* interval.h - when it is time for a checkpoint: the same step on all ranks,
 * with no collective of its own at most steps.
 *
 * What the ranks need to agree on, how long a step and a checkpoint take, they
 * exchange with the votes of a save, and before the first one at the calls 1,
 * 2, 4, 8 ... of dt_ckpt_need. From that each computes the step at which it is
 * time; in between it only compares numbers. */
#ifndef DT_CKPT_INTERVAL_H
#define DT_CKPT_INTERVAL_H

#include "base/error.h"

#define DT_INTERVAL_AUTO  0.0
#define DT_INTERVAL_NEVER (-1.0)

/* ---- pure ---- */

/* "auto", or a time: 90s, 10m, 2h, 1d, and Slurm's forms: minutes,
 * minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]].
 * Seconds into *seconds. INVALID_ARG names source. */
dt_result_t dt_interval_parse(const char *text, const char *source,
                              double *seconds, struct dt_error *err);

/* Mean time between failures of a job, seconds: of num_nodes nodes, started
 * again restarts times. As a prior, one failure in 264 days of one node (2,048
 * nodes failed 419 times in 54 days: "The Llama 3 Herd of Models", 2024); each
 * restart counts as one failure more in that time. */
double dt_interval_mtbf(int restarts, int num_nodes);

/* How long to work between checkpoints that cost so many seconds each:
 * sqrt(2 * cost * mtbf), J. Young, "A first order approximation to the optimum
 * checkpoint interval", CACM 17 (1974). At least cost. */
double dt_interval_young(double cost, double mtbf);

/* What all ranks know after an exchange. */
struct dt_pace {
    double step_s; /* of the slowest rank, 0 unknown */
    double cost_s; /* what a checkpoint stops the program for, 0 unknown */
    double left_s; /* of the job's time, the least; negative: no limit */
};

/* How many steps until the next checkpoint, at least 1; INT64_MAX: never.
 * worked: seconds since the last one. */
int64_t dt_interval_steps(double interval, const struct dt_pace *pace,
                          double worked);

/* After how many steps the last checkpoint must begin, so that it is written
 * when the job's time ends: it takes save_s seconds, and is given twice that
 * and a minute, at most a tenth of the time. INT64_MAX: no limit. */
int64_t dt_interval_last(const struct dt_pace *pace, double save_s);

/* ---- the state of a handle ---- */

struct dt_need {
    double interval;      /* of the user's, or DT_INTERVAL_* */
    double last;          /* when the last call was; seconds */
    double spent;         /* in steps, since the last checkpoint */
    int64_t calls, steps; /* all calls; steps in spent */
    int64_t due, end;     /* steps at which it is time; INT64_MAX unknown */
    bool ended;           /* end was reached */
    struct dt_pace pace;  /* the last that was exchanged */
};

#endif
