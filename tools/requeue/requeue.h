/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* requeue.h - the commands of dt-requeue. Each returns the exit status. */
#ifndef DT_REQUEUE_H
#define DT_REQUEUE_H

#include <stdbool.h>

/* hand.c: dt-requeue [--now] [--hold] [--reason R] [job] */
struct by_hand {
    const char *job, *reason;
    bool now, hold;
};
int requeue_by_hand(const struct by_hand *hand);

/* batch.c, for the plugin, on the node of the batch script. Caps are those of
 * decide_parse_caps(). */

/* The script begins: argv is job, restarts, caps. DT_EXIT_NO_RESTART: it must
 * not run. */
int requeue_started(char *const argv[]);
/* The script has ended: argv is job, status as of wait(), restarts, caps or
 * "-", what the name of the requeue record begins with, whether the log is
 * appended to (1, 0), whether Slurm itself requeues each job that ends within
 * its grace time (1, 0). Requeues the job if it is to run again; else it never
 * does. */
int requeue_ended(char *const argv[]);

/* In a step of its own, on each node: argv is hold (1, 0), the node of the
 * script, the reason, the cluster. Prints how many steps it notified there. */
int requeue_notify(char *const argv[]);

/* watch.c, for a step, on each node, until its standard input and the leaders
 * of the tasks have ended. The former is a socket by which the plugin passes
 * the pidfds of the latter. When the step is to leave, the notice is written,
 * and each leader gets the signal whose number is argv[0]; 0: none. */
int requeue_watch(char *const argv[]);

/* For srun: print when the time of the job argv[0] ends, in seconds since 1970;
 * 0 if Slurm does not tell. */
int requeue_end(char *const argv[]);

#endif
