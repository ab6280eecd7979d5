/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* faulty-calls.h - the system calls that change a file system, counted, and
 * one of them made to fail or to be the last. For programs linked with
 * -Wl,--wrap of mkdirat, openat, write, fsync, renameat, renameat2, unlinkat
 * and pread. */
#ifndef FAULTY_CALLS_H
#define FAULTY_CALLS_H

#include <stdbool.h>

struct faults {
    int at;           /* the number of the call, from 1; 0: none */
    int error;        /* it fails so; 0: the power goes before it */
    bool persist;     /* all calls after it fail so, too */
    bool no_exchange; /* renameat2 answers EINVAL */
    bool tiny;        /* reads and writes do 7 bytes, or EINTR */
};

/* Count from 0 and do as faults says, from now on. */
void faults_begin(const struct faults *faults);

/* Stop. Returns how many calls were counted. */
int faults_end(void);

/* The power goes: what was written and not synced is gone, what was renamed
 * in a directory that was not synced has its old name. Ends the process. */
_Noreturn void faults_cut_power(int exit_code);

/* Its exit code when it was a call that did not come. */
#define FAULTS_POWER_CUT 86

#endif
