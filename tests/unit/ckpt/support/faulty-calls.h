/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* faulty-calls.h - the system calls that change a file system, counted, and
 * one of them made to fail or to be the last; disk-model.h is notified of them.
 * For programs linked with -Wl,--wrap of all that faulty-calls.c wraps. */
#ifndef FAULTY_CALLS_H
#define FAULTY_CALLS_H

#include <stdbool.h>

enum {
    FAULTS_WRITE = 1, /* data, and making room for it */
    FAULTS_SYNC = 2,
    FAULTS_NAME = 4, /* made, linked, renamed, removed */
    FAULTS_ANY = 7,
};

struct faults {
    unsigned kinds;   /* which calls count; 0: none */
    int at;           /* the number of the call, from 1; 0: none */
    int error;        /* it fails so; 0: the process is killed before it */
    bool persist;     /* all calls after it fail so, too */
    bool no_exchange; /* renameat2 answers EINVAL */
    bool no_link;     /* linkat answers EPERM */
    bool tiny;        /* reads and writes do 7 bytes, or EINTR */
    /* if not NULL called before the call instead of failing it */
    void (*meanwhile)(void *arg);
    void *arg;
};

/* Count from 0 and do as faults says, from now on. */
void faults_begin(const struct faults *faults);

/* Stop. Returns how many calls were counted. */
int faults_end(void);

#endif
