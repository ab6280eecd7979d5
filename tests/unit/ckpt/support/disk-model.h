/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* disk-model.h - what a disk could hold after a power cut. It records what a
 * program does to some directories, and can then bring back each state that
 * the disk could have been in at each moment:
 *
 * - what was written and not synced is gone, or there, or there in half, or
 *   zeros of that length;
 * - of the entries made, renamed or removed in directories that were not synced
 *   none is there, or all, or only the first, or only the last of them. */
#ifndef DISK_MODEL_H
#define DISK_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/* Record from now on what happens below these n directories; all that is
 * there is on disk. From any thread until disk_end, which returns how many
 * events there were. */
void disk_begin(const char *const *root, int n);
int disk_end(void);

/* How many there have been so far. */
int disk_now(void);

/* Number of states the disk could be in before event number at (0 .. events).
 * The last of them is that without a power cut: all that was done. */
int disk_states(int at);

/* Bring the directories into that state, those with their bit in lost empty. */
void disk_restore(int at, int state, unsigned lost);

/* The same for all states in which the same is in the directories, as far as
 * they are not lost. */
uint64_t disk_sum(int at, int state, unsigned lost);

/* The state in words, valid until the next call. */
const char *disk_describe(int at, int state);

/* ---- what happened: called after it did ---- */

void disk_made(int dirfd, const char *name); /* a file or directory, if new */
void disk_removed(int dirfd, const char *name);
void disk_renamed(int from, const char *a, int to, const char *b,
                  bool exchanged);
void disk_written(int fd); /* or its length changed */
void disk_synced(int fd);

#endif
