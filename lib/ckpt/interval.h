/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* interval.h - how long to work between two checkpoints. Pure. */
#ifndef DT_CKPT_INTERVAL_H
#define DT_CKPT_INTERVAL_H

#include "base/error.h"

#define DT_INTERVAL_AUTO  0.0
#define DT_INTERVAL_NEVER (-1.0)

/* Parse "auto", or a time: 90s, 10m, 2h, 1d, or Slurm's forms: minutes,
 * minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]].
 * *seconds is the time, or DT_INTERVAL_AUTO. INVALID_ARG names source. */
dt_result_t dt_interval_parse(const char *text, const char *source,
                              double *seconds, struct dt_error *err);

/* The mean time between failures, in seconds, of a job on num_nodes nodes that
 * was restarted so many times. The prior is one failure in 264 days of one node
 * (2,048 nodes failed 419 times in 54 days: "The Llama 3 Herd of Models",
 * 2024); each restart counts as one more failure in that time. */
double dt_interval_mtbf(int restarts, int num_nodes);

/* The seconds of work between checkpoints that cost so many seconds each:
 * sqrt(2 * cost * mtbf), J. Young, "A first order approximation to the optimum
 * checkpoint interval", CACM 17 (1974). At least cost. */
double dt_interval_young(double cost, double mtbf);

/* What all ranks know after an exchange, in seconds. */
struct dt_pace {
    double step_s; /* of the slowest rank, 0 unknown */
    double cost_s; /* for which a checkpoint stops the program, 0 unknown */
    double
        left_s; /* least of the job's time that is left; negative: no limit */
};

/* The steps until the next checkpoint, at least 1; INT64_MAX: never. worked:
 * seconds since the last one. */
int64_t dt_interval_steps(double interval, const struct dt_pace *pace,
                          double worked);

/* The steps after which the last checkpoint must begin, so that it is complete
 * when the job's time ends: twice the save_s seconds that it takes before, and
 * a minute or, if that is less, a tenth of the time. INT64_MAX: no limit. */
int64_t dt_interval_last(const struct dt_pace *pace, double save_s);

#endif
