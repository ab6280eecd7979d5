/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* decide.c - whether a job is requeued, and when. */
#include "decide.h"

#include <sys/wait.h>

#include "base/exit.h"
#include "base/number.h"

enum { FIRST_DELAY = 10, LONGEST_DELAY = 600 };

bool decide_parse_caps(const char *text, struct caps *caps)
{
    unsigned cap[5];
    for (size_t i = 0; i < 5; i++) {
        uint64_t number;
        if ((i && *text++ != ',') ||
            !dt_number_scan(&text, 10, 999999999, &number))
            return false;
        cap[i] = (unsigned)number;
    }
    if (*text)
        return false;
    *caps = (struct caps){.max = cap[0],
                          .cause = {[CAUSE_ASKED] = cap[0],
                                    [CAUSE_PREEMPT] = cap[1],
                                    [CAUSE_NODEFAIL] = cap[2],
                                    [CAUSE_TIMEOUT] = cap[3],
                                    [CAUSE_ERROR] = cap[4],
                                    [CAUSE_HAND] = cap[0]}};
    return true;
}

/*  state            script or step ended with
 *                   93    75             0       else
 *  cancelled        -     -              -       -
 *  by hand          -     hand           hand    hand
 *  preempted        -     preempt        -       preempt
 *  time-out         -     timeout        -       timeout
 *  node failed      -     nodefail       -       nodefail
 *  running          -     asked          -       error
 */
bool decide_cause(const struct end *end, enum cause *cause)
{
    int code = WIFEXITED(end->status) ? WEXITSTATUS(end->status) : -1;
    bool asked = code == DT_EXIT_REQUEUE || end->asked;
    if (end->state == STATE_CANCELLED || code == DT_EXIT_NO_RESTART ||
        end->refused)
        return false;
    *cause = CAUSE_HAND;
    if (end->by_hand)
        return true;
    if (!end->option || (code == 0 && !asked))
        return false;
    if (end->state == STATE_NODE_FAIL)
        *cause = CAUSE_NODEFAIL;
    else if (end->preempting)
        *cause = CAUSE_PREEMPT;
    else if (end->state == STATE_TIMEOUT)
        *cause = CAUSE_TIMEOUT;
    else
        *cause = asked ? CAUSE_ASKED : CAUSE_ERROR;
    return true;
}

bool decide_allows(const struct caps *caps, const struct counts *counts,
                   unsigned restarts, enum cause cause, unsigned *cap)
{
    unsigned all = counts_all(counts);
    if (cause == CAUSE_HAND)
        return true;
    if (restarts > all)
        all = restarts;
    all -= counts->n[CAUSE_HAND];
    *cap = caps->max;
    if (all >= caps->max)
        return false;
    *cap = caps->cause[cause];
    return counts->n[cause] < *cap;
}

unsigned decide_delay(const struct counts *counts, enum cause cause)
{
    unsigned delay = 0;
    if (cause != CAUSE_ERROR)
        return 0;
    for (unsigned i = 1; i < counts->n[CAUSE_ERROR] && delay < LONGEST_DELAY;
         i++)
        delay = delay ? delay * 2 : FIRST_DELAY;
    return delay < LONGEST_DELAY ? delay : LONGEST_DELAY;
}
