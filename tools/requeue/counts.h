/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* counts.h - how often a job has been requeued, and why. It is a word of the
 * job's Comment: that survives a requeue to other nodes and a restart of
 * slurmctld, needs no file system, and squeue shows it. Pure.
 *
 *   dt-requeue:asked=1,preempt=2,bad=n3*2,on=n[0-1]
 *
 * bad: nodes that failed, and how often; on: the nodes of the run that began
 * last, ? if they are too many, nothing once its script has ended and is not to
 * run again. The user's own text stays before it. */
#ifndef DT_REQUEUE_COUNTS_H
#define DT_REQUEUE_COUNTS_H

#include <stddef.h>

enum cause {
    CAUSE_ASKED, /* the program: exit code 75 */
    CAUSE_PREEMPT,
    CAUSE_NODEFAIL,
    CAUSE_TIMEOUT,
    CAUSE_ERROR,
    CAUSE_HAND, /* dt-requeue, or scontrol requeue */
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

/* What comment says; all 0 if nothing, or nothing that can be read. */
void counts_read(const char *comment, struct counts *counts);

/* comment with the word replaced or appended. */
void counts_write(const struct counts *counts, const char *comment,
                  char text[COMMENT]);

/* The sum of all. */
unsigned counts_all(const struct counts *counts);

/* One more failure of a node. Beyond MAX_BAD nodes it is forgotten. */
void counts_failed(struct counts *counts, const char *node);

/* Those that failed twice, joined by commas. */
void counts_bad_nodes(const struct counts *counts, char *list, size_t size);

#endif
