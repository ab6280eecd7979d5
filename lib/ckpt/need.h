/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* need.h - is it time for a checkpoint? The same answer at the same step on all
 * ranks, and no collective of its own at most steps.
 *
 * The ranks exchange how long a training step and a checkpoint take with the
 * votes of a save, and before the first save at the calls 1, 2, 4, 8 ... of
 * dt_ckpt_need. From that each rank computes the step at which the next
 * checkpoint is due; in between it only compares numbers. */
#ifndef DT_CKPT_NEED_H
#define DT_CKPT_NEED_H

#include "ckpt/interval.h"

struct dt_need {
    double interval;      /* the user's, or DT_INTERVAL_* */
    double last;          /* seconds: when dt_need_ask was called last */
    double spent;         /* seconds in steps since the last checkpoint */
    int64_t calls, steps; /* all calls; steps in spent */
    int64_t due, end;     /* steps at which it is time; INT64_MAX unknown */
    bool ended;           /* end was reached */
    struct dt_pace pace;  /* from the last exchange */
};

/* Seconds of a clock that nobody sets. */
double dt_need_now(void);

/* dt_ckpt_need: is it time for a checkpoint at this step? Collective over the
 * world at some steps. */
bool dt_need_ask(struct dt_need *need, int64_t step);

/* Seconds of a training step on this rank, 0 unknown. */
double dt_need_step(const struct dt_need *need);

/* A save of that step has begun; it stopped the program for stall seconds. */
void dt_need_begun(struct dt_need *need, int64_t step, double stall);

/* It has ended, save_s seconds after it began; the votes said pace. */
void dt_need_learn(struct dt_need *need, int64_t step,
                   const struct dt_pace *pace, double save_s);

#endif
