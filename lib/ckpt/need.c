/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* need.c - is it time for a checkpoint? What this rank knows of the others is
 * used only at steps at which all ranks know the same. */
#include "ckpt/need.h"

#include <time.h>

#include "base/deadline.h"

#define COST_GUESS 1.0    /* seconds, as long as there was no checkpoint */
#define NO_LIMIT   (1e18) /* of the job's time */

double dt_need_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

double dt_need_step(const struct dt_need *need)
{
    return need->steps > 0 ? need->spent / (double)need->steps : 0;
}

static int64_t later(int64_t step, int64_t steps)
{
    return steps > INT64_MAX - step ? INT64_MAX : step + steps;
}

/* Compute when the next checkpoint is due, worked seconds after the last one.
 */
static void plan(struct dt_need *need, int64_t step, double worked)
{
    double interval = need->interval, cost = need->pace.cost_s;
    if (interval == DT_INTERVAL_AUTO)
        interval = dt_interval_young(
            cost > 0 ? cost : COST_GUESS,
            dt_interval_mtbf(dt_restart_count(), dt_num_nodes()));
    need->due = later(step, dt_interval_steps(interval, &need->pace, worked));
}

/* How long does a step take on the slowest rank? */
static void exchange(struct dt_need *need, int64_t step)
{
    double left = dt_time_left();
    double most[2] = {dt_need_step(need), left < 0 ? -NO_LIMIT : -left};
    if (dt_allreduce(most, most, 2, DT_DTYPE_F64, DT_OP_MAX, dt_comm_world(),
                     DT_STREAM_NONE) != DT_SUCCESS)
        return; /* the program's next collective fails, too */
    need->pace.step_s = most[0];
    need->pace.left_s = most[1] > -NO_LIMIT ? -most[1] : -1;
    plan(need, step, most[0] * (double)need->calls);
    need->end = later(step, dt_interval_last(&need->pace, COST_GUESS));
}

bool dt_need_ask(struct dt_need *need, int64_t step)
{
    double now = dt_need_now();
    if (need->calls++ > 0) {
        need->spent += now - need->last;
        need->steps++;
    }
    need->last = now;
    if (need->pace.cost_s <= 0 && (need->calls & (need->calls - 1)) == 0)
        exchange(need, step);
    bool end = step >= need->end && !need->ended;
    need->ended = need->ended || end;
    return dt_should_exit() || end || step >= need->due;
}

void dt_need_begun(struct dt_need *need, int64_t step, double stall)
{
    need->last += stall; /* the stall is no part of a step */
    need->spent = 0;
    need->steps = 0;
    plan(need, step, 0);
}

void dt_need_learn(struct dt_need *need, int64_t step,
                   const struct dt_pace *pace, double save_s)
{
    double step_s = pace->step_s > 0 ? pace->step_s : need->pace.step_s;
    need->pace = *pace;
    need->pace.step_s = step_s;
    need->end = later(step, dt_interval_last(&need->pace, save_s));
    dt_deadline_reserve(save_s); /* for dt_should_exit */
}
