/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* slurm.h - Slurm's own commands, each with an end. Where slurmctld does not
 * answer, they are tried again until the time is over. */
#ifndef DT_REQUEUE_SLURM_H
#define DT_REQUEUE_SLURM_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

enum { OUTPUT = 65536, WHY = 256, START_ITEM = 32 };

/* Seconds of the monotonic clock, at which to give up. */
typedef time_t deadline_t;
deadline_t deadline_in(int seconds);

/* Run argv[0], found in PATH, until deadline; out gets the first OUTPUT - 1
 * bytes of its output, and of what it complains of if both. Its exit status, or
 * -1 if it could not be run or was killed: why then says so. */
int slurm_run(const char *const argv[], deadline_t deadline, bool both,
              char out[OUTPUT], char why[WHY]);

struct job {
    char id[64];    /* as to be named to scontrol: "12", "12_3" */
    char raw[24];   /* its number */
    char state[32]; /* "RUNNING" */
    char why[64];   /* Slurm's reason: "TimeLimit" */
    char comment[4096];
    char nodes[4096], excluded[4096], batch_host[256];
    char owner[256];
    char nnodes[16], partition[256];
    unsigned restarts;
    unsigned uid;
    bool batch, requeue;
    bool preempting; /* it has been told to leave */
    bool several;    /* there are more: the elements of an array */
};

/* false: why says it, in Slurm's words. */
bool slurm_job(const char *id, deadline_t deadline, struct job *job,
               char why[WHY]);

/* scontrol update JobId=id ITEMS..., up to 4 of them, NULL at the end. */
bool slurm_update(const char *id, const char *const item[], deadline_t deadline,
                  char why[WHY]);

/* An item for slurm_update: start in delay seconds, without the two minutes for
 * which Slurm holds what is requeued. Never in less than 2: a node refuses a
 * run that is let go in the same second in which the one before was ended, and
 * Slurm then ends the job for good. */
void slurm_start(unsigned delay, char item[START_ITEM]);

/* scontrol VERB id. Where it is waiting already, that is as well. */
bool slurm_requeue(const char *verb, const char *id, deadline_t deadline,
                   char why[WHY]);

/* Call each with the nodes of list that are down. */
void slurm_down(const char *list, deadline_t deadline,
                void (*each)(const char *node, void *data), void *data);

/* Does Slurm requeue jobs of the partition to make way for others? */
bool slurm_preempts(const char *partition, deadline_t deadline);

/* The cluster's name; false: why says it. */
bool slurm_cluster(deadline_t deadline, char name[64], char why[WHY]);

/* When the job's time ends, seconds since 1970; 0: not known, or never. */
long long slurm_end(const char *id, deadline_t deadline);

#endif
