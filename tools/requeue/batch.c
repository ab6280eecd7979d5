/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* batch.c - the batch script of a job begins, or has ended. What is printed
 * goes to the job's log. */
#include "requeue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/number.h"
#include "decide.h"
#include "note.h"
#include "slurm.h"

enum { START_LIMIT = 10, END_LIMIT = 300, LOST_LIMIT = 10 };

static void set_caps(const unsigned cap[5], struct caps *caps)
{
    caps->max = caps->cause[CAUSE_ASKED] = caps->cause[CAUSE_HAND] = cap[0];
    caps->cause[CAUSE_PREEMPT] = cap[1];
    caps->cause[CAUSE_NODEFAIL] = cap[2];
    caps->cause[CAUSE_TIMEOUT] = cap[3];
    caps->cause[CAUSE_ERROR] = cap[4];
}

/* What the plugin has printed; 0 if it is no number. */
static unsigned read_count(const char *text)
{
    int64_t number = 0;
    dt_number_parse(text, 0, INT32_MAX, &number);
    return (unsigned)number;
}

struct lost {
    struct counts *counts;
    size_t n;
};

static void on_down(const char *node, void *data)
{
    struct lost *lost = data;
    counts_failed(lost->counts, node);
    lost->n++;
}

/* How many of the nodes are down; each is counted. */
static size_t count_lost(const char *nodes, struct counts *counts)
{
    struct lost lost = {counts, 0};
    if (*nodes && *nodes != '?')
        slurm_down(nodes, deadline_in(LOST_LIMIT), on_down, &lost);
    return lost.n;
}

/* ---- the beginning ---- */

/* Slurm itself requeues a job whose node fails. Where that node was the
 * script's own, nobody was left to count it. */
static int refuse(const struct caps *caps, const struct counts *counts)
{
    unsigned all = counts_all(counts) - counts->n[CAUSE_HAND];
    bool total = all > caps->max;
    if (!total && counts->n[CAUSE_NODEFAIL] <= caps->cause[CAUSE_NODEFAIL] &&
        counts->n[CAUSE_PREEMPT] <= caps->cause[CAUSE_PREEMPT])
        return 0;
    fprintf(stderr,
            "dt: not run again: Slurm has requeued the job once more than "
            "--dt-requeue allows: a higher %s allows more\n",
            total ? "number" : "nodefail= or preempt=");
    return DT_EXIT_NO_RESTART;
}

int requeue_started(char *const argv[])
{
    struct job job;
    struct counts counts;
    struct caps caps;
    unsigned cap[5], restarts = read_count(argv[1]);
    char why[WHY], text[COMMENT + 16] = "Comment=";
    deadline_t deadline = deadline_in(START_LIMIT);
    if (!note_caps(argv[2], cap) || !slurm_job(argv[0], deadline, &job, why))
        return 0;
    set_caps(cap, &caps);
    counts_read(job.comment, &counts);
    if (counts_all(&counts) < restarts) {
        enum cause cause = *counts.on ? CAUSE_NODEFAIL : CAUSE_HAND;
        counts.n[cause] += restarts - counts_all(&counts);
        count_lost(counts.on, &counts);
    }
    size_t length = strlen(job.nodes) + 1;
    snprintf(counts.on, sizeof(counts.on), "?");
    if (length <= sizeof(counts.on))
        memcpy(counts.on, job.nodes, length);
    counts_write(&counts, job.comment, text + strlen(text));
    const char *const items[] = {text, job.requeue ? NULL : "Requeue=1", NULL};
    slurm_update(job.id, items, deadline, why);
    return refuse(&caps, &counts);
}

/* ---- the end ---- */

/* Its script has only just ended: a job that is completing, and not on its way
 * back into the queue, was ended by Slurm, for that reason, or by scancel. */
static enum job_state state_of(const struct job *job)
{
    if (!strcmp(job->why, "TimeLimit"))
        return STATE_TIMEOUT;
    if (!strcmp(job->why, "NodeDown"))
        return STATE_NODE_FAIL;
    return strcmp(job->state, "RUNNING") != 0 ? STATE_CANCELLED : STATE_RUNNING;
}

/* It is back in the queue already: by Slurm, or by scontrol. Slurm has
 * forgotten which; where it preempts, that is the likely one. */
static enum cause foreign_cause(const struct job *job, struct counts *counts)
{
    if (count_lost(counts->on, counts))
        return CAUSE_NODEFAIL;
    return slurm_preempts(job->partition, deadline_in(LOST_LIMIT))
               ? CAUSE_PREEMPT
               : CAUSE_HAND;
}

/* Soon, and not on nodes that failed twice. */
static void improve(const struct job *job, const struct counts *counts,
                    unsigned delay, bool hold, deadline_t deadline)
{
    char start[START_ITEM], bad[MAX_BAD * NODE_NAME], nodes[8192], why[WHY];
    const char *items[4] = {NULL};
    size_t n = 0;
    slurm_start(delay, start);
    if (!hold)
        items[n++] = start;
    counts_bad_nodes(counts, bad, sizeof(bad));
    if (*bad) {
        bool others = *job->excluded && strcmp(job->excluded, "(null)") != 0;
        snprintf(nodes, sizeof(nodes), "ExcNodeList=%s%s%s",
                 others ? job->excluded : "", others ? "," : "", bad);
        items[n++] = nodes;
    }
    if (n)
        slurm_update(job->id, items, deadline, why);
}

static void count(const struct job *job, const struct counts *counts,
                  deadline_t deadline)
{
    char text[COMMENT + 16] = "Comment=", why[WHY];
    counts_write(counts, job->comment, text + strlen(text));
    const char *const items[] = {text, job->requeue ? NULL : "Requeue=1", NULL};
    if (!slurm_update(job->id, items, deadline, why))
        fprintf(stderr, "dt: note: this requeue is not counted by cause: %s\n",
                why);
}

/* The run is over, unless Slurm has taken the job back by now (srun may end
 * well when a node fails): if somebody requeues it later, that is by hand. */
static void close_run(const char *id, unsigned restarts)
{
    struct job job;
    struct counts counts;
    char text[COMMENT + 16] = "Comment=", why[WHY];
    deadline_t deadline = deadline_in(START_LIMIT);
    if (!slurm_job(id, deadline, &job, why) || job.restarts > restarts ||
        strcmp(job.state, "RUNNING") != 0)
        return;
    counts_read(job.comment, &counts);
    if (!*counts.on)
        return;
    counts.on[0] = '\0';
    counts_write(&counts, job.comment, text + strlen(text));
    const char *const items[] = {text, NULL};
    slurm_update(job.id, items, deadline, why);
}

struct ended {
    struct job job;
    struct counts counts;
    struct caps caps;
    struct note note;
    struct end end;
    unsigned restarts; /* before this run */
    bool appends;
    deadline_t deadline;
};

static int requeue(struct ended *e, enum cause cause)
{
    char why[WHY], of[32] = "";
    unsigned cap = 0;
    if (!decide_allows(&e->caps, &e->counts, e->restarts, cause, &cap)) {
        if (cause != CAUSE_ERROR || cap)
            fprintf(stderr,
                    "dt: not requeued: %s, and --dt-requeue allows that %u "
                    "times\n",
                    cause_text[cause], cap);
        close_run(e->job.id, e->restarts);
        return 0;
    }
    if (cause == CAUSE_NODEFAIL)
        count_lost(e->counts.on, &e->counts);
    e->counts.n[cause]++;
    /* first, as we may be killed; but Slurm takes no comment on a job that has
     * ended */
    bool ended = e->end.state != STATE_RUNNING;
    if (!ended)
        count(&e->job, &e->counts, e->deadline);
    if (!slurm_requeue(e->note.hold ? "requeuehold" : "requeue", e->job.id,
                       e->deadline, why)) {
        fprintf(stderr, "dt: not requeued, though %s: Slurm says: %s\n",
                cause_text[cause], why);
        return 1;
    }
    if (ended)
        count(&e->job, &e->counts, e->deadline);
    unsigned delay = decide_delay(&e->counts, cause);
    improve(&e->job, &e->counts, delay, e->note.hold, e->deadline);
    if (cause != CAUSE_HAND)
        snprintf(of, sizeof(of), " (%u of %u)",
                 counts_all(&e->counts) - e->counts.n[CAUSE_HAND], e->caps.max);
    fprintf(stderr, "dt: requeued%s%s: %s%s%s\n", of,
            e->note.hold ? " and held" : "", cause_text[cause],
            cause == CAUSE_HAND && *e->note.reason ? ": " : "",
            cause == CAUSE_HAND ? e->note.reason : "");
    if (!e->appends)
        fprintf(stderr, "dt: note: the next run begins this log anew: "
                        "--open-mode=append keeps it\n");
    return 0;
}

/* Its own count says whether somebody has counted this one. */
static int accept_foreign(struct ended *e)
{
    if (counts_all(&e->counts) > e->restarts)
        return 0;
    enum cause cause = foreign_cause(&e->job, &e->counts);
    e->counts.n[cause]++;
    count(&e->job, &e->counts, e->deadline);
    if (e->end.option && cause != CAUSE_HAND)
        improve(&e->job, &e->counts, 0, false, e->deadline);
    return 0;
}

int requeue_ended(char *const argv[])
{
    struct ended e = {.deadline = deadline_in(END_LIMIT)};
    unsigned cap[5] = {0};
    char why[WHY];
    enum cause cause;
    note_take(argv[4], &e.note);
    e.restarts = read_count(argv[2]);
    e.appends = *argv[5] == '1';
    e.end.status = (int)read_count(argv[1]);
    e.end.option = note_caps(argv[3], cap);
    if (!e.end.option && e.note.option) {
        e.end.option = true;
        memcpy(cap, e.note.cap, sizeof(cap));
    }
    e.end.asked = e.note.asked;
    e.end.refused = e.note.refused;
    e.end.by_hand = e.note.by_hand;
    if (!decide_cause(&e.end, &cause)) {
        if (*argv[3] != '-')
            close_run(argv[0], e.restarts);
        return 0;
    }
    if (!slurm_job(argv[0], e.deadline, &e.job, why)) {
        fprintf(stderr, "dt: not requeued, though %s: Slurm says: %s\n",
                cause_text[cause], why);
        return 1;
    }
    set_caps(cap, &e.caps);
    counts_read(e.job.comment, &e.counts);
    e.end.state = state_of(&e.job);
    e.end.preempting = e.job.preempting;
    if (e.job.restarts > e.restarts)
        return accept_foreign(&e);
    if (decide_cause(&e.end, &cause))
        return requeue(&e, cause);
    return 0;
}
