/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* batch.c - what dt-requeue does when a batch script begins and when it has
 * ended. Its standard error is the job's log. */
#include "requeue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/number.h"
#include "common/streams.h"
#include "decide.h"
#include "jobfile.h"
#include "slurm.h"

/* Seconds. Slurm has just started the script, so that it answers in the end. */
enum { START_LIMIT = 60, END_LIMIT = 300 };

/* A number that the plugin wrote; 0 if it is none. */
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

/* Count each node of the list that is down; returns how many there are. */
static size_t count_lost(const char *nodes, struct counts *counts,
                         deadline_t deadline)
{
    struct lost lost = {counts, 0};
    if (*nodes && *nodes != '?')
        slurm_down(nodes, deadline, on_down, &lost);
    return lost.n;
}

/* ---- the script begins ---- */

/* Slurm itself requeues a job whose node fails. Where the script ran on that
 * node, requeue_ended() did not run, and the requeue is only counted here. */
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

/* Not where the cluster's default is that jobs are not requeued. */
static void report_conflict(const struct job *job, deadline_t deadline)
{
    if (!job->requeue && job->restarts == 0 && slurm_requeues(deadline))
        fprintf(stderr, "dt: note: the job has --no-requeue and --dt-requeue: "
                        "the latter counts, and it may be requeued\n");
}

int requeue_started(char *const argv[])
{
    struct job job;
    struct counts counts;
    struct caps caps;
    unsigned restarts = read_count(argv[1]);
    char why[WHY], text[COMMENT + 16] = "Comment=";
    deadline_t deadline = deadline_in(START_LIMIT);
    if (!decide_parse_caps(argv[2], &caps) ||
        !slurm_job(argv[0], deadline, &job, why))
        return 0;
    counts_read(job.comment, &counts);
    if (counts_all(&counts) < restarts) {
        enum cause cause = *counts.on ? CAUSE_NODEFAIL : CAUSE_HAND;
        counts.n[cause] += restarts - counts_all(&counts);
        /* what is written below needs some time, too */
        count_lost(counts.on, &counts, deadline_in(START_LIMIT / 2));
    }
    size_t length = strlen(job.nodes) + 1;
    snprintf(counts.on, sizeof(counts.on), "?");
    if (length <= sizeof(counts.on))
        memcpy(counts.on, job.nodes, length);
    counts_write(&counts, job.comment, text + strlen(text));
    const char *const items[] = {text, job.requeue ? NULL : "Requeue=1", NULL};
    slurm_update(job.id, items, deadline, why);
    report_conflict(&job, deadline);
    return refuse(&caps, &counts);
}

/* ---- the script has ended ---- */

/* The script has just ended. A job that is not running then was ended by Slurm,
 * for the reason that it names, or by scancel. */
static enum job_state state_of(const struct job *job)
{
    if (!strcmp(job->why, "TimeLimit"))
        return STATE_TIMEOUT;
    if (!strcmp(job->why, "NodeDown"))
        return STATE_NODE_FAIL;
    return job->running ? STATE_RUNNING : STATE_CANCELLED;
}

/* Slurm or scontrol has requeued the job already, and Slurm does not tell
 * which. Where the partition preempts by requeueing, that is the likely cause.
 */
static enum cause foreign_cause(const struct job *job, struct counts *counts,
                                deadline_t deadline)
{
    if (count_lost(counts->on, counts, deadline))
        return CAUSE_NODEFAIL;
    return slurm_preempts(job->partition, deadline) ? CAUSE_PREEMPT
                                                    : CAUSE_HAND;
}

/* Let the next run start soon, and not on nodes that failed twice. */
static void set_start(const struct job *job, const struct counts *counts,
                      unsigned delay, bool hold, deadline_t deadline)
{
    char start[START_ITEM], bad[MAX_BAD * NODE_NAME], others[4096];
    char nodes[8192], why[WHY];
    const char *items[4] = {NULL};
    size_t n = 0;
    slurm_start(delay, start);
    if (!hold)
        items[n++] = start;
    counts_bad_nodes(counts, bad, sizeof(bad));
    if (*bad && slurm_excluded(job->id, deadline, others, sizeof(others))) {
        snprintf(nodes, sizeof(nodes), "ExcNodeList=%s%s%s", others,
                 *others ? "," : "", bad);
        items[n++] = nodes;
    }
    if (n)
        slurm_update(job->id, items, deadline, why);
}

/* Write the counts into the job's comment. */
static void write_counts(const struct job *job, const struct counts *counts,
                         deadline_t deadline)
{
    char text[COMMENT + 16] = "Comment=", why[WHY];
    counts_write(counts, job->comment, text + strlen(text));
    const char *const items[] = {text, job->requeue ? NULL : "Requeue=1", NULL};
    if (!slurm_update(job->id, items, deadline, why))
        print_line(stderr,
                   "dt: note: the cause of this requeue is not counted: %s",
                   why);
}

struct ended {
    struct job job;
    struct counts counts;
    struct caps caps;
    struct record record;
    struct end end;
    unsigned restarts; /* before this run */
    bool appends;
    bool grace; /* Slurm requeues what ends within its grace time */
    deadline_t deadline;
};

/* The job is not to run again. Remove the nodes of this run from the counts, so
 * that a later requeue is one by hand; and forbid Slurm the requeue that it
 * would do in or after a grace time, whatever the exit code. Slurm may send
 * SIGTERM after any look at the job, so that this does not depend on one. Not
 * where Slurm has requeued the job meanwhile, as srun may exit with 0 when a
 * node fails. */
static void close_run(const struct ended *e, const char *id)
{
    struct job job;
    struct counts counts;
    char text[COMMENT + 16] = "Comment=", why[WHY];
    const char *items[3] = {NULL};
    size_t n = 0;
    if (!slurm_job(id, e->deadline, &job, why) || job.restarts > e->restarts ||
        !job.running)
        return;
    counts_read(job.comment, &counts);
    if (*counts.on) {
        counts.on[0] = '\0';
        counts_write(&counts, job.comment, text + strlen(text));
        items[n++] = text;
    }
    if (e->grace && job.requeue)
        items[n++] = "Requeue=0";
    if (n)
        slurm_update(job.id, items, e->deadline, why);
}

/* Does Slurm itself requeue this job when it reports the end of the script?
 * Then scontrol must not: Slurm would still take the next run for one in its
 * grace time, and requeue that when it ends. */
static bool leave_to_slurm(const struct ended *e)
{
    return e->grace && e->job.preempting && !e->record.hold &&
           slurm_grace_requeues(&e->job, e->deadline);
}

/* The counts come first, as Slurm may kill this process after the requeue; but
 * it refuses to change the comment of a job that has ended. */
static bool requeue_now(struct ended *e, enum cause cause)
{
    char why[WHY];
    bool ended = e->end.state != STATE_RUNNING;
    if (!ended)
        write_counts(&e->job, &e->counts, e->deadline);
    if (!ended && leave_to_slurm(e))
        return true;
    if (!slurm_requeue(e->record.hold ? "requeuehold" : "requeue", e->job.id,
                       e->deadline, why)) {
        print_line(stderr, "dt: not requeued, though %s: Slurm says: %s",
                   cause_text[cause], why);
        return false;
    }
    if (ended)
        write_counts(&e->job, &e->counts, e->deadline);
    set_start(&e->job, &e->counts, decide_delay(&e->counts, cause),
              e->record.hold, e->deadline);
    return true;
}

static int requeue(struct ended *e, enum cause cause)
{
    char of[32] = "";
    unsigned cap = 0;
    if (!decide_allows(&e->caps, &e->counts, e->restarts, cause, &cap)) {
        if (cause != CAUSE_ERROR || cap)
            fprintf(stderr,
                    "dt: not requeued: %s, and --dt-requeue allows that %u "
                    "times\n",
                    cause_text[cause], cap);
        close_run(e, e->job.id);
        return 0;
    }
    if (cause == CAUSE_NODEFAIL)
        count_lost(e->counts.on, &e->counts, e->deadline);
    e->counts.n[cause]++;
    if (!requeue_now(e, cause))
        return 1;
    if (cause != CAUSE_HAND)
        snprintf(of, sizeof(of), " (%u of %u)",
                 counts_all(&e->counts) - e->counts.n[CAUSE_HAND], e->caps.max);
    print_line(stderr, "dt: requeued%s%s: %s%s%s", of,
               e->record.hold ? " and held" : "", cause_text[cause],
               cause == CAUSE_HAND && *e->record.reason ? ": " : "",
               cause == CAUSE_HAND ? e->record.reason : "");
    if (e->record.terminated && cause != CAUSE_HAND)
        fprintf(stderr, "dt: note: SIGTERM ended a task: one that handles it "
                        "and looks at $DT_NOTICE can save first\n");
    if (!e->appends)
        fprintf(stderr, "dt: note: the next run begins this log anew: "
                        "--open-mode=append keeps it\n");
    return 0;
}

/* A requeue that somebody else did. It is counted already if the counts are as
 * many as Slurm's restarts. */
static int accept_foreign(struct ended *e)
{
    if (counts_all(&e->counts) > e->restarts)
        return 0;
    enum cause cause = foreign_cause(&e->job, &e->counts, e->deadline);
    struct job now;
    char why[WHY];
    /* the next run may have begun elsewhere meanwhile, and counted it */
    if (!slurm_job(e->job.id, e->deadline, &now, why) ||
        strcmp(now.comment, e->job.comment) != 0)
        return 0;
    e->counts.n[cause]++;
    write_counts(&e->job, &e->counts, e->deadline);
    if (e->end.option && cause != CAUSE_HAND)
        set_start(&e->job, &e->counts, 0, false, e->deadline);
    return 0;
}

int requeue_ended(char *const argv[])
{
    struct ended e = {.deadline = deadline_in(END_LIMIT)};
    char why[WHY];
    enum cause cause;
    jobfile_take_record(argv[4], &e.record);
    e.restarts = read_count(argv[2]);
    e.appends = *argv[5] == '1';
    e.end.status = (int)read_count(argv[1]);
    e.end.option = decide_parse_caps(argv[3], &e.caps);
    if (!e.end.option && e.record.option) {
        e.end.option = true;
        e.caps = e.record.caps;
    }
    e.end.asked = e.record.asked;
    e.end.refused = e.record.refused;
    e.end.by_hand = e.record.by_hand;
    e.grace = *argv[6] == '1';
    if (!decide_cause(&e.end, &cause)) {
        if (e.end.option)
            close_run(&e, argv[0]);
        return 0;
    }
    if (!slurm_job(argv[0], e.deadline, &e.job, why)) {
        print_line(stderr, "dt: not requeued, though %s: Slurm says: %s",
                   cause_text[cause], why);
        return 1;
    }
    counts_read(e.job.comment, &e.counts);
    e.end.state = state_of(&e.job);
    e.end.preempting = e.job.preempting;
    if (e.job.restarts > e.restarts)
        return accept_foreign(&e);
    if (decide_cause(&e.end, &cause))
        return requeue(&e, cause);
    return 0;
}
