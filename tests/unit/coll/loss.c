/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* loss.c - a rank dies or is stopped: the others are told, in bounded
 * time. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "ranks.h"

/* The last rank goes away by a signal between two collectives. Where the
 * first is not over on all ranks by then, it may fail already. */
static void lose(int signo, dt_result_t want)
{
    static float big[200000];
    dt_result_t rc = DT_SUCCESS;
    for (int i = 0; i < 4 && rc == DT_SUCCESS; i++) {
        if (i == 1 && dt_rank() == dt_size() - 1)
            raise(signo);
        rc = dt_allreduce(big, big, 200000, DT_DTYPE_F32, DT_OP_SUM, WORLD);
    }
    /* on a busy machine the patience of all may end before that */
    if (signo == SIGSTOP && dt_rank() == dt_size() - 1)
        raise(signo);
    fprintf(stderr, "rank %d: %s: %s\n", dt_rank(), dt_strerror(rc),
            dt_last_error());
    expect(rc == want || rc == DT_ERR_PROC_FAILED, "result %d", rc);
    expect(dt_barrier(WORLD) == rc, "for ever");
    expect(dt_finalize() == DT_SUCCESS, "finalize after");
}

void mode_die(int argc, char **argv)
{
    (void)argc, (void)argv;
    lose(SIGKILL, DT_ERR_PROC_FAILED);
}

void mode_stop(int argc, char **argv)
{
    (void)argc, (void)argv;
    lose(SIGSTOP, DT_ERR_TIMED_OUT);
}

/* The last rank dies when a lot is under way, so that the others stand in the
 * middle of a message to it. */
void mode_amid(int argc, char **argv)
{
    enum { N = 3, COUNT = 2000000 };
    static float big[N][COUNT];
    dt_request_t request[N] = {NULL};
    dt_result_t rc = DT_SUCCESS;
    (void)argc, (void)argv;
    for (int k = 0; k < N && rc == DT_SUCCESS; k++)
        rc = dt_iallreduce(big[k], big[k], COUNT, DT_DTYPE_F32, DT_OP_SUM,
                           WORLD, &request[k]);
    if (dt_rank() == dt_size() - 1)
        raise(SIGKILL);
    for (int k = 0; k < N; k++) {
        dt_result_t ended = dt_wait(&request[k]);
        rc = rc == DT_SUCCESS ? ended : rc;
    }
    expect(rc == DT_ERR_PROC_FAILED, "result %d", rc);
    expect(dt_allreduce(NULL, NULL, 0, DT_DTYPE_F32, DT_OP_SUM, WORLD) == rc,
           "for ever, even of nothing");
    expect(dt_finalize() == DT_SUCCESS, "finalize after");
}

/* The last rank dies; the others learn of it in dt_finalize at the latest. */
void mode_lose_open(int argc, char **argv)
{
    static float big[2000000];
    dt_request_t request = NULL;
    (void)argc, (void)argv;
    dt_iallreduce(big, big, 2000000, DT_DTYPE_F32, DT_OP_SUM, WORLD, &request);
    if (dt_rank() == dt_size() - 1)
        raise(SIGKILL);
    expect(dt_finalize() == DT_ERR_PROC_FAILED, "finalize");
}

/* ---- while another thread of the survivors is busy ---- */

static void *work(void *arg)
{
    enum { N = 4, COUNT = 3000 };
    static float buf[N][COUNT];
    dt_comm_t comm = arg;
    dt_request_t request[N] = {NULL};
    dt_result_t rc = DT_SUCCESS;
    while (rc == DT_SUCCESS)
        for (int k = 0; k < N; k++) {
            dt_result_t ended = dt_wait(&request[k]);
            rc = rc == DT_SUCCESS ? ended : rc;
            if (rc == DT_SUCCESS)
                rc =
                    dt_iallreduce(buf[k], buf[k], COUNT, DT_DTYPE_F32,
                                  DT_OP_MAX, comm, DT_STREAM_NONE, &request[k]);
        }
    for (int k = 0; k < N; k++)
        dt_wait(&request[k]);
    expect(rc == DT_ERR_PROC_FAILED, "the busy thread: result %d", rc);
    return NULL;
}

/* The last rank dies, and a thread of each of the others waits for it; they
 * notice although their other threads have something to move all the time. */
void mode_lose_busy(int argc, char **argv)
{
    bool last = dt_rank() == dt_size() - 1;
    dt_comm_t rest;
    pthread_t thread;
    (void)argc, (void)argv;
    expect(dt_comm_split(dt_comm_world(), last, 0, &rest) == DT_SUCCESS,
           "split");
    if (last)
        raise(SIGKILL);
    if (pthread_create(&thread, NULL, work, rest))
        abort();
    expect(dt_barrier(WORLD) == DT_ERR_PROC_FAILED, "the waiting thread");
    pthread_join(thread, NULL);
    expect(dt_finalize() == DT_SUCCESS, "finalize after");
}
