/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* counts.h - how often a job has been requeued, by cause. The counts are one
 * word of the job's Comment, which survives a requeue to other nodes and a
 * restart of slurmctld, needs no file system, and is shown by squeue. Pure.
 *
 *   dt-requeue:asked=1,preempt=2,bad=n3*2,on=n[0-1]
 *
 * bad: nodes that failed, and how often; on: the nodes of the last run, "?" if
 * they are too many, absent once its script has ended and the job is not
 * requeued. The user's own text stays before the word. */
#ifndef DT_REQUEUE_COUNTS_H
#define DT_REQUEUE_COUNTS_H

#include <stddef.h>

enum cause {
    CAUSE_ASKED, /* the program: exit code 75 */
    CAUSE_PREEMPT,
    CAUSE_NODEFAIL,
    CAUSE_TIMEOUT,
    CAUSE_ERROR,
    CAUSE_HAND, /* by hand: dt-requeue, or scontrol requeue */
    NCAUSES,
};

/* For people: "preemption". */
extern const char *const cause_text[NCAUSES];

enum { MAX_BAD = 16, NODE_NAME = 64, NODE_LIST = 512, COMMENT = 4096 };

struct counts {
    unsigned n[NCAUSES];
    struct {
        char node[NODE_NAME];
        unsigned n;
    } bad[MAX_BAD];
    size_t nbad;
    char on[NODE_LIST]; /* "": not known */
};

/* Parse the word of comment; all counts are 0 if there is none. */
void counts_read(const char *comment, struct counts *counts);

/* comment with the word replaced or appended. */
void counts_write(const struct counts *counts, const char *comment,
                  char text[COMMENT]);

/* The sum over all causes. */
unsigned counts_all(const struct counts *counts);

/* Count one more failure of a node. At most MAX_BAD nodes are kept. */
void counts_failed(struct counts *counts, const char *node);

/* The nodes that failed twice or more, joined by commas. */
void counts_bad_nodes(const struct counts *counts, char *list, size_t size);

#endif
