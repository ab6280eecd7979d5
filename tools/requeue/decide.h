/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* decide.h - whether a job whose script has ended is to run again. Pure. */
#ifndef DT_REQUEUE_DECIDE_H
#define DT_REQUEUE_DECIDE_H

#include <stdbool.h>

#include "counts.h"

/* What Slurm says of the job. */
enum job_state {
    STATE_RUNNING, /* the script's end decides */
    STATE_TIMEOUT,
    STATE_NODE_FAIL,
    STATE_CANCELLED,
};

struct end {
    enum job_state state;
    bool preempting; /* it has been told to leave */
    int status;      /* of the script, as of wait() */
    bool asked;      /* a task of the last step ended with DT_EXIT_REQUEUE */
    bool refused;    /* one ended with DT_EXIT_NO_RESTART */
    bool by_hand;    /* dt-requeue told it to leave */
    bool option;     /* --dt-requeue was given */
};

/* The cause to requeue it; false: it has ended. */
bool decide_cause(const struct end *end, enum cause *cause);

/* Of --dt-requeue: in all, preempt, nodefail, timeout, error. */
struct caps {
    unsigned max, cause[NCAUSES];
};

/* May it run again for that cause? restarts: Slurm's own count of them, which
 * is right even where the counts were lost. What was done by hand costs
 * nothing. If not, *cap is the one that forbids it. */
bool decide_allows(const struct caps *caps, const struct counts *counts,
                   unsigned restarts, enum cause cause, unsigned *cap);

/* Seconds to wait before the next run. */
unsigned decide_delay(const struct counts *counts, enum cause cause);

#endif
