/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* decide.h - whether a job whose batch script has ended is requeued. Pure. */
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
    bool preempting; /* Slurm preempts it */
    int status;      /* of the script, as of wait() */
    bool asked;      /* a task of the last step ended with DT_EXIT_REQUEUE */
    bool refused;    /* one ended with DT_EXIT_NO_RESTART */
    bool by_hand;    /* dt-requeue requested it to leave */
    bool option;     /* --dt-requeue was given */
};

/* The cause of the requeue; false: the job is not requeued. */
bool decide_cause(const struct end *end, enum cause *cause);

/* How often --dt-requeue allows a requeue, in all and by cause. */
struct caps {
    unsigned max, cause[NCAUSES];
};

/* "max,preempt,nodefail,timeout,error", as the plugin writes it. false: it is
 * anything else, and caps is as before. */
bool decide_parse_caps(const char *text, struct caps *caps);

/* Do the caps allow a requeue for that cause? restarts is Slurm's own count,
 * which is right even where the counts were lost. Requeues by hand do not
 * count. If not, *cap is the one that was reached. */
bool decide_allows(const struct caps *caps, const struct counts *counts,
                   unsigned restarts, enum cause cause, unsigned *cap);

/* Seconds before the next run may start: 10, doubled with each error. */
unsigned decide_delay(const struct counts *counts, enum cause cause);

#endif
