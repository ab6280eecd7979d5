/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* crash-job.h - a training that saves again and again and is cut short: what
 * has not changed is linked from the checkpoint before, into the memory of its
 * nodes, their disks and a shared directory. */
#ifndef CRASH_JOB_H
#define CRASH_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "dt.h"
#include "faulty-calls.h"

#define CRASH_VERSIONS 3 /* are saved; the next run saves one more */
#define CRASH_NODES    4 /* at most, and as many ranks */

struct crash_plan {
    const char *what;
    int size, nodes;
    bool async, no_exchange, no_link;
    const char *redundancy; /* not NULL: directories of the nodes' own */
    int bears;              /* so many lost nodes */
};

struct crash_run {
    const struct crash_plan *plan;
    int first, last; /* versions to save */
    /* what is known at each moment, also after the process is dead */
    volatile int begun, ended;
    int begun_at[CRASH_VERSIONS + 2], ended_at[CRASH_VERSIONS + 2]; /* events */
    dt_result_t rc;           /* of loading, or of the last save */
    int64_t got[CRASH_NODES]; /* version that was loaded, per rank */
    int64_t step;
    char text[512];
};

/* Before all else. What it returns stays, for children, too. */
struct crash_run *crash_setup(void);

/* Empty directories, and their end. */
void crash_begin(const struct crash_plan *plan);
void crash_end(void);

/* disk_begin of them. */
void crash_record(void);

/* Save all versions. */
void crash_save(void);

/* What loads is whole, and from..to. 0 is none. */
bool crash_loads(int from, int to, int *version);

/* The same, or it is said what is missing. */
bool crash_refuses(int from, int to);

/* The next run saves and leaves no other files. */
bool crash_goes_on(void);

/* Moment number at is tried in this run. The models of three nodes and more
 * take minutes: with DT_TEST_TURN=1/3 their runs try every third moment each,
 * from the second one, so that 0/3, 1/3 and 2/3 together try all. Without it, a
 * run tries all. */
bool crash_has_turn(const struct crash_plan *plan, int at);

/* How many nodes have something on disk that is being written. */
int crash_unfinished(void);

/* The nodes' memory is empty; the disks of those in nodes, a bit each, and the
 * directory that all see. */
void crash_forget_memory(void);
void crash_lose(unsigned nodes);

/* So many nodes, in another way for each i up to some. */
unsigned crash_choose(int count, int i);

/* disk_restore, and the nodes' memory is empty. lost: a bit for each node whose
 * disk is empty, and CRASH_SHARED for the directory that all see. */
#define CRASH_SHARED (1u << CRASH_NODES)
void crash_restore(int at, int state, unsigned lost);

/* Is this asked for the first time since crash_begin of disks that hold what
 * they do then? And how often was it. What is loaded depends on nothing else:
 * of the same disks the same would be loaded again. */
bool crash_is_new(int at, int state, unsigned lost, int from, int to,
                  bool last);
int crash_count_new(void);

#endif
