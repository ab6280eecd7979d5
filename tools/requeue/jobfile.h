/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* jobfile.h - dt-requeue's side of the files of base/jobfile.h. */
#ifndef DT_REQUEUE_JOBFILE_H
#define DT_REQUEUE_JOBFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "decide.h"

enum { REASON = 256 };

struct record {
    bool option;         /* caps are set */
    struct caps caps;    /* of the last step that had the option */
    bool asked, refused; /* a task of the last step ended with 75, with 93 */
    bool terminated;     /* SIGTERM ended one of them */
    bool by_hand, hold;
    char reason[REASON];
};

/* Read the requeue records of this user that begin with prefix, and remove
 * them. All 0 if there is none. */
void jobfile_take_record(const char *prefix, struct record *record);

/* Write the notice to the file at path. false: it has one already, or it is no
 * notice file of this user. */
bool jobfile_write_notice(const char *path, const char *reason);

/* Write the notice to each step of the job on this node. Returns how many there
 * were. */
size_t jobfile_notify(const char *job, const char *node, const char *cluster,
                      const char *reason);

/* On the node of the batch script: add the "hand" line to the record. */
bool jobfile_record_hand(const char *job, const char *node, const char *cluster,
                         bool hold, const char *reason);

#endif
