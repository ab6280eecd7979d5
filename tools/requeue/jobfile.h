/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* jobfile.h - the files in a node's /dev/shm by which the plugin, dt-requeue
 * and the tasks of a job communicate. The plugin makes them
 * (spank/requeue/jobfile.h). They belong to the job's user and have mode 0600;
 * a file that differs in this is treated as absent.
 *
 * The notice file of a step, dt-notice.<cluster>.<job>.<step>.<node>.<random>,
 * is what DT_NOTICE names. Its first byte is not 0 once the tasks are to leave;
 * the reason follows, up to a 0 byte.
 *
 * The requeue record of a job, dt-requeue.<cluster>.<job>.<node>, is on the
 * node of the batch script and has lines:
 *   option 9,9,9,9,0  the --dt-requeue of a step, as decide_parse_caps() reads
 *                     it
 *   begin             a step begins
 *   75, 93            a task of that step ended with this exit code
 *   hand 1 reason     dt-requeue requested the job to leave; 1: hold it */
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
    bool by_hand, hold;
    char reason[REASON];
};

/* Read the requeue record at path and remove it. All 0 if it is absent. */
void jobfile_take_record(const char *path, struct record *record);

/* Below, job is "<cluster>.<job>". */

/* Write the notice to each step of the job on this node. Returns how many there
 * were. */
size_t jobfile_notify(const char *job, const char *node, const char *reason);

/* On the node of the batch script: add the "hand" line to the record. */
bool jobfile_record_hand(const char *job, const char *node, bool hold,
                         const char *reason);

#endif
