/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* slurm.h - Slurm's own commands, each with a deadline. Where slurmctld does
 * not answer, a command is repeated until then. */
#ifndef DT_REQUEUE_SLURM_H
#define DT_REQUEUE_SLURM_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

enum { OUTPUT = 65536, WHY = 256, START_ITEM = 32 };

/* Seconds of CLOCK_MONOTONIC. */
typedef time_t deadline_t;
deadline_t deadline_in(int seconds);

/* Run argv[0], found in PATH, until deadline; out gets the first OUTPUT - 1
 * bytes of its standard output, and of its standard error if both. Returns its
 * exit status, or -1 with the reason in why if it did not run or was killed. */
int slurm_run(const char *const argv[], deadline_t deadline, bool both,
              char out[OUTPUT], char why[WHY]);

/* Is it a job's number, or an element of an array: 123, 123_4? */
bool slurm_is_job(const char *text);

struct job {
    char id[64];    /* as scontrol takes it: "12", "12_3" */
    char raw[24];   /* its number */
    char state[32]; /* "RUNNING" */
    char why[64];   /* Slurm's reason: "TimeLimit" */
    char comment[4096];
    char nodes[4096], batch_host[256];
    char owner[256];
    char nnodes[16], partition[256];
    unsigned restarts;
    unsigned uid;
    unsigned batch; /* 0: no batch job; rises with Slurm's own requeues */
    bool requeue;
    bool running; /* also while Slurm signals it; false: Slurm has ended it */
    bool preempting; /* Slurm preempts this run */
    bool several;    /* id names several elements of an array */
};

/* false: why has Slurm's error message. */
bool slurm_job(const char *id, deadline_t deadline, struct job *job,
               char why[WHY]);

/* The nodes that it must not get; false: they are not known. */
bool slurm_excluded(const char *id, deadline_t deadline, char *list,
                    size_t size);

/* scontrol update JobId=id ITEMS..., up to 4 of them, NULL at the end. */
bool slurm_update(const char *id, const char *const item[], deadline_t deadline,
                  char why[WHY]);

/* An item for slurm_update: start in delay seconds, and not after the two
 * minutes for which Slurm holds a requeued job. At least 2 seconds: a node
 * refuses a run that starts in the second in which the previous one ended, and
 * Slurm then ends the job for good. */
void slurm_start(unsigned delay, char item[START_ITEM]);

/* scontrol VERB id. true as well if the job is pending already. */
bool slurm_requeue(const char *verb, const char *id, deadline_t deadline,
                   char why[WHY]);

/* Call each for every node of list that is down. */
void slurm_down(const char *list, deadline_t deadline,
                void (*each)(const char *node, void *data), void *data);

/* Does the partition preempt its jobs by requeueing them? */
bool slurm_preempts(const char *partition, deadline_t deadline);

/* Does Slurm requeue this job if it ends within its grace time, and not hold it
 * then, as it does after MaxBatchRequeue such requeues? Supposes a release that
 * does so; false where Slurm's rule is not known, as with preempt/qos. */
bool slurm_grace_requeues(const struct job *job, deadline_t deadline);

/* May a job be requeued unless its user says otherwise? */
bool slurm_requeues(deadline_t deadline);

/* The cluster's name; false: why has the error message. */
bool slurm_cluster(deadline_t deadline, char name[64], char why[WHY]);

/* When the job's time ends, seconds since 1970; 0: unknown, or never. */
long long slurm_end(const char *id, deadline_t deadline);

#endif
