/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* library.c - PMIx's own thread.
 *
 * When the last rank of this node has come to a fence, or PMIx has seen that a
 * rank will never come, PMIx calls our module. Whether the fence fails depends
 * on the losses that PMIx has seen by then; but it reports a loss by a timer of
 * its event loop, which may run after that call. So before a collective
 * operation is judged, PMIx's thread has to be idle once: asleep in epoll_wait,
 * with no timer due. PMIx has no function that reports this. The kernel does:
 * /proc has the system call that the thread is in.
 *
 * Without /proc, as in a container that hides it, the thread is passed through
 * DT_LIBRARY_ROUNDS times. That takes longer, and on a machine where the thread
 * waits for a core it may be too early: then a fence succeeds without a rank
 * that was lost. */
#include "server/library.h"

#include <ctype.h>
#include <fcntl.h>
#include <pmix.h>
#include <pmix_server.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Rounds through a library that never sleeps, because other events keep it
 * awake. Its timers have run between them. */
#define BUSY_ROUNDS 10000

enum activity { ASLEEP, BUSY, UNKNOWN };

void dt_pmix_in_library(pmix_op_cbfunc_t fn, void *arg)
{
    /* the cheapest function that calls back from PMIx's thread and has no
     * effect: no client is registered in this namespace */
    pmix_proc_t nobody;
    PMIX_LOAD_PROCID(&nobody, "nobody", 0);
    PMIx_server_deregister_client(&nobody, fn, arg);
}

/* In dt-pmixd, which leaves no core file, its files in /proc are root's. They
 * are not while one is opened; to read it, the process itself always may. */
static int open_syscall(pid_t thread)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)thread);
    bool hidden = prctl(PR_GET_DUMPABLE) == 0;
    if (hidden)
        prctl(PR_SET_DUMPABLE, 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (hidden)
        prctl(PR_SET_DUMPABLE, 0);
    return fd;
}

static enum activity activity_of(pid_t thread)
{
    static pid_t opened; /* there is one such thread */
    static int fd = -1;
    char text[16] = "";
    if (opened != thread) {
        if (fd >= 0)
            close(fd);
        fd = open_syscall(thread);
        opened = thread;
    }
    ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
    if (n <= 0) {
        opened = 0;
        return UNKNOWN;
    }
    if (!isdigit((unsigned char)*text)) /* "running" */
        return BUSY;
    long number = strtol(text, NULL, 10);
#ifdef SYS_epoll_wait
    if (number == SYS_epoll_wait)
        return ASLEEP;
#endif
    return number == SYS_epoll_pwait ? ASLEEP : BUSY;
}

/* In PMIx's thread. */
static void post_delayed(pmix_status_t status, void *arg)
{
    struct dt_pmix_delayed *delayed = arg;
    (void)status;
    delayed->thread = gettid();
    dt_pmix_post(&delayed->call);
}

static void run_delayed(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct dt_pmix_delayed *delayed = (struct dt_pmix_delayed *)call;
    (void)pmix;
    sched_yield(); /* on a busy machine PMIx's thread may wait for our core */
    enum activity activity = activity_of(delayed->thread);
    unsigned enough = activity == BUSY ? BUSY_ROUNDS : DT_LIBRARY_ROUNDS;
    if (activity != ASLEEP && ++delayed->rounds < enough) {
        dt_pmix_in_library(post_delayed, delayed);
        return;
    }
    call->run = delayed->run;
    dt_pmix_post(call); /* behind what PMIx has reported by now */
}

void dt_pmix_after_losses(struct dt_pmix_delayed *delayed)
{
    delayed->run = delayed->call.run;
    delayed->rounds = 0;
    delayed->call.run = run_delayed;
    dt_pmix_in_library(post_delayed, delayed);
}
