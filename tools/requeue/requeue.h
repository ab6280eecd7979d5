/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* requeue.h - what dt-requeue does. Each returns its exit status. */
#ifndef DT_REQUEUE_H
#define DT_REQUEUE_H

#include <stdbool.h>

/* hand.c: dt-requeue [--now] [--hold] [--reason R] [job] */
struct by_hand {
    const char *job, *reason;
    bool now, hold;
};
int requeue_by_hand(const struct by_hand *hand);

/* For the plugin, on the node of the batch script: */

/* batch.c. The script begins: argv is job, restarts, caps. 93: it is not to
 * run. */
int requeue_started(char *const argv[]);
/* The script has ended: argv is job, status, restarts, caps or "-", note,
 * whether the log is appended to (1, 0). */
int requeue_ended(char *const argv[]);

/* In a step of its own, on each node: argv is hold, the node of the script,
 * why, cluster. Prints how many steps were told there. */
int requeue_notify(char *const argv[]);

/* For a step, on each node, until its input ends: argv is the number of the
 * signal that the leaders which come by that input get, once they are to leave.
 */
int requeue_watch(char *const argv[]);

/* For srun: print when the time of the job argv[0] ends. */
int requeue_end(char *const argv[]);

#endif
