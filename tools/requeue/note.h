/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* note.h - files in a node's /dev/shm by which the parts of a job tell each
 * other; spank/note.h makes them. They are of the job's user, mode 0600; any
 * other is as if it were not there.
 *
 * dt-notice.<cluster>.<job>.<step>.<node>.<chance> is what DT_NOTICE names: its
 * first byte is not 0 if the tasks are to leave, then comes why, up to a 0.
 *
 * dt-requeue.<cluster>.<job>.<node>, on the node of the batch script, has
 * lines: option 9,9,9,9,0  a step's --dt-requeue: in all, preempt, nodefail,
 *                     timeout, error
 *   begin             a step begins
 *   75, 93            a task of it ended with that
 *   hand 1 why        dt-requeue told the job to leave; 1: to be held */
#ifndef DT_REQUEUE_NOTE_H
#define DT_REQUEUE_NOTE_H

#include <stdbool.h>
#include <stddef.h>

enum { REASON = 256 };

struct note {
    bool option, asked, refused, by_hand, hold;
    unsigned cap[5];
    char reason[REASON];
};

/* max,preempt,nodefail,timeout,error; false: it is none. */
bool note_caps(const char *text, unsigned cap[5]);

/* Read the file and remove it. All 0 if it is not there. */
void note_take(const char *path, struct note *note);

/* Below, job is "<cluster>.<job>". */

/* On this node: tell the steps of the job to leave. How many there were. */
size_t note_tell(const char *job, const char *node, const char *reason);

/* On the node of the batch script: it is told by hand. */
bool note_by_hand(const char *job, const char *node, bool hold,
                  const char *reason);

#endif
