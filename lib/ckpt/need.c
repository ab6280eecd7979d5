/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* need.c - is it time for a checkpoint? What is known of other ranks is used
 * only at steps that all ranks have reached with the same knowledge. */
#include <time.h>

#include "base/deadline.h"
#include "ckpt/save.h"

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

/* When is the next one due, after working for so long since the last? */
static void plan(struct dt_ckpt *ckpt, int64_t step, double worked)
{
    struct dt_need *need = &ckpt->need;
    double interval = need->interval, cost = need->pace.cost_s;
    if (interval == DT_INTERVAL_AUTO)
        interval = dt_interval_young(
            cost > 0 ? cost : COST_GUESS,
            dt_interval_mtbf(dt_restart_count(), ckpt->num_nodes));
    need->due = later(step, dt_interval_steps(interval, &need->pace, worked));
}

/* What does a step take on all ranks? */
static void exchange(struct dt_ckpt *ckpt, int64_t step)
{
    struct dt_need *need = &ckpt->need;
    double left = dt_time_left();
    double most[2] = {dt_need_step(need), left < 0 ? -NO_LIMIT : -left};
    if (dt_allreduce(most, most, 2, DT_DTYPE_F64, DT_OP_MAX, dt_comm_world(),
                     DT_STREAM_NONE) != DT_SUCCESS)
        return; /* the program's next collective says so, too */
    need->pace.step_s = most[0];
    need->pace.left_s = most[1] > -NO_LIMIT ? -most[1] : -1;
    plan(ckpt, step, most[0] * (double)need->calls);
    need->end = later(step, dt_interval_last(&need->pace, COST_GUESS));
}

bool dt_need_ask(struct dt_ckpt *ckpt, int64_t step)
{
    struct dt_need *need = &ckpt->need;
    double now = dt_need_now();
    if (need->calls++ > 0) {
        need->spent += now - need->last;
        need->steps++;
    }
    need->last = now;
    if (need->pace.cost_s <= 0 && (need->calls & (need->calls - 1)) == 0)
        exchange(ckpt, step);
    bool end = step >= need->end && !need->ended;
    need->ended = need->ended || end;
    return dt_should_exit() || end || step >= need->due;
}

void dt_need_begun(struct dt_ckpt *ckpt, int64_t step, double stall)
{
    ckpt->need.last += stall; /* is no part of a step */
    ckpt->need.spent = 0;
    ckpt->need.steps = 0;
    plan(ckpt, step, 0);
}

void dt_need_learn(struct dt_ckpt *ckpt)
{
    const struct dt_saver *saver = ckpt->saver;
    struct dt_need *need = &ckpt->need;
    struct dt_pace pace = saver->pace;
    if (!saver->save.behind)
        pace.cost_s = saver->save_s;
    if (pace.step_s <= 0)
        pace.step_s = need->pace.step_s;
    need->pace = pace;
    need->end = later(saver->save.step, dt_interval_last(&pace, saver->save_s));
    dt_deadline_reserve(saver->save_s); /* for dt_should_exit */
}
