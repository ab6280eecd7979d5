/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* requests.c - requests: many at once, left open, and moved by nobody but
 * libdt's own thread. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "ranks.h"

/* Many at once, of one shape and of several, waited for in any order. */
void mode_requests(int argc, char **argv)
{
    enum { N = 12, MOST = 5000 };
    static float in[N][MOST], out[N][MOST];
    dt_request_t request[N] = {NULL}, barrier = NULL;
    (void)argc, (void)argv;
    for (int k = 0; k < N; k++) {
        for (size_t i = 0; i < MOST; i++)
            in[k][i] =
                (float)(value_of(DT_DTYPE_F32, DT_OP_SUM, dt_rank(), i) + k);
        expect(dt_iallreduce(in[k], out[k], k % 3 ? MOST : 17, DT_DTYPE_F32,
                             DT_OP_SUM, WORLD, &request[k]) == DT_SUCCESS,
               "iallreduce %d", k);
    }
    expect(dt_ibarrier(WORLD, &barrier) == DT_SUCCESS, "ibarrier");
    while (dt_test(&barrier) == DT_IN_PROGRESS)
        ;
    expect(!barrier, "a completed request is NULL");
    for (int j = 0; j < N; j++) {
        int k = (j * 7 + 5) % N;
        expect(dt_wait(&request[k]) == DT_SUCCESS && !request[k], "wait %d", k);
        bool same = true;
        for (size_t i = 0; i < (k % 3 ? MOST : 17); i++)
            same &= out[k][i] ==
                    value_reduced(DT_DTYPE_F32, DT_OP_SUM, dt_size(), i, 1) +
                        k * dt_size();
        expect(same, "outstanding iallreduce %d", k);
    }
    expect(dt_wait(&barrier) == DT_SUCCESS && dt_wait(NULL) == DT_SUCCESS &&
               dt_test(&barrier) == DT_SUCCESS,
           "no request is complete");
}

/* More operations while one is outstanding than a tag can count. */
void mode_wrap(int argc, char **argv)
{
    static int32_t sum[2];
    dt_request_t request;
    int32_t mine = dt_rank() + 1;
    (void)argc, (void)argv;
    expect(dt_iallreduce(&mine, &sum[0], 1, DT_DTYPE_I32, DT_OP_SUM, WORLD,
                         &request) == DT_SUCCESS,
           "iallreduce");
    for (int32_t i = 0; i < 4200; i++) {
        int32_t got = dt_rank() == 0 ? i : -1;
        dt_bcast(&got, 1, DT_DTYPE_I32, 0, WORLD);
        expect(got == i, "bcast number %d gives %d", i, got);
    }
    expect(dt_wait(&request) == DT_SUCCESS &&
               sum[0] == dt_size() * (dt_size() + 1) / 2,
           "the sum begun before: %d", sum[0]);
}

/* Requests that nobody waited for do not hold anybody up at the end; neither
 * do communicators and memory. */
void mode_open_end(int argc, char **argv)
{
    static float buf[5000], more[5000];
    dt_request_t request;
    dt_comm_t comm;
    void *ptr;
    (void)argc, (void)argv;
    expect(dt_comm_split(dt_comm_world(), 0, 0, &comm) == DT_SUCCESS, "split");
    expect(dt_mem_alloc(100000, &ptr) == DT_SUCCESS, "alloc");
    expect(dt_mem_register(more, sizeof(more)) == DT_SUCCESS, "register");
    expect(dt_iallreduce(buf, buf, 5000, DT_DTYPE_F32, DT_OP_SUM, WORLD,
                         &request) == DT_SUCCESS,
           "iallreduce");
    expect(dt_iallreduce(more, more, 5000, DT_DTYPE_F32, DT_OP_SUM, comm,
                         DT_STREAM_NONE, &request) == DT_SUCCESS,
           "iallreduce");
}

/* One rank gets its notice in step 5; all must see it in the same step. */
void mode_notice(int argc, char **argv)
{
    int32_t x = 0, seen = -1, lowest, highest;
    (void)argc, (void)argv;
    expect(!dt_should_exit(), "too early");
    for (int32_t step = 0; step < 10; step++) {
        if (step == 5 && dt_rank() == dt_size() - 1)
            raise(SIGTERM);
        dt_allreduce(&x, &x, 1, DT_DTYPE_I32, DT_OP_SUM, WORLD);
        if (seen < 0 && dt_should_exit())
            seen = step;
    }
    dt_allreduce(&seen, &lowest, 1, DT_DTYPE_I32, DT_OP_MIN, WORLD);
    dt_allreduce(&seen, &highest, 1, DT_DTYPE_I32, DT_OP_MAX, WORLD);
    expect(lowest == 5 && highest == 5, "seen in step %d, %d to %d", seen,
           lowest, highest);
}

/* DT_PROGRESS=thread: rank 0 starts its part of a long collective and calls
 * libdt no more until the others, who cannot end without it, have said so in
 * files PATH.RANK. */
void mode_progress(int argc, char **argv)
{
    enum { COUNT = 3000000 };
    static int32_t buf[COUNT];
    char path[4096];
    dt_request_t request;
    bool told = true;
    for (size_t i = 0; i < COUNT; i++)
        buf[i] = (int32_t)i;
    expect(argc == 1, "usage: progress PATH");
    expect(dt_iallreduce(buf, buf, COUNT, DT_DTYPE_I32, DT_OP_SUM, WORLD,
                         &request) == DT_SUCCESS,
           "iallreduce");
    for (int r = 1; dt_rank() == 0 && r < dt_size(); r++) {
        const struct timespec nap = {.tv_nsec = 10000000};
        snprintf(path, sizeof(path), "%s.%d", argv[0], r);
        for (int i = 0; i < 12000 && access(path, F_OK); i++)
            nanosleep(&nap, NULL);
        told &= !access(path, F_OK);
    }
    expect(told, "the others ended while rank 0 did not call libdt");
    expect(dt_wait(&request) == DT_SUCCESS, "wait");
    for (size_t i = 0; i < COUNT; i++)
        told &= buf[i] == (int32_t)((uint32_t)i * (uint32_t)dt_size());
    expect(told, "sum");
    if (dt_rank() > 0) {
        snprintf(path, sizeof(path), "%s.%d", argv[0], dt_rank());
        FILE *file = fopen(path, "w");
        expect(file, "cannot write %s", path);
        if (file)
            fclose(file);
    }
}
