/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pingpong.c - latency between nodes and between cores. */
#include "measure/pingpong.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BATCH = 20, BATCHES = 40, LONG_US = 20000 };

/* ---- messages ---- */

enum { STOP, GO };

static dt_result_t exchange(const struct job *job, int peer, bool first,
                            int64_t *word)
{
    dt_result_t rc;
    if (first) {
        rc = dt_send(word, 1, DT_DTYPE_I64, peer, job->comm, DT_STREAM_NONE);
        if (rc == DT_SUCCESS)
            rc =
                dt_recv(word, 1, DT_DTYPE_I64, peer, job->comm, DT_STREAM_NONE);
        return rc;
    }
    rc = dt_recv(word, 1, DT_DTYPE_I64, peer, job->comm, DT_STREAM_NONE);
    if (rc == DT_SUCCESS)
        rc = dt_send(word, 1, DT_DTYPE_I64, peer, job->comm, DT_STREAM_NONE);
    return rc;
}

static dt_result_t serve(const struct job *job, int peer)
{
    int64_t word = GO;
    dt_result_t rc = DT_SUCCESS;
    while (rc == DT_SUCCESS && word == GO)
        rc = exchange(job, peer, false, &word);
    return rc;
}

/* The shortest batch counts; the first one warms up. */
static dt_result_t play(const struct job *job, int peer, double *us)
{
    double begin = now_us(), best = 0;
    dt_result_t rc = DT_SUCCESS;
    int64_t word = GO;
    for (int batch = 0; rc == DT_SUCCESS && batch < BATCHES; batch++) {
        double start = now_us();
        for (int i = 0; rc == DT_SUCCESS && i < BATCH; i++)
            rc = exchange(job, peer, true, &word);
        double time = (now_us() - start) / BATCH / 2;
        if (batch < 2 || time < best)
            best = time;
        if (batch && now_us() - begin > LONG_US)
            break;
    }
    word = STOP;
    if (rc == DT_SUCCESS)
        rc = exchange(job, peer, true, &word);
    if (rc == DT_SUCCESS)
        *us = best;
    return rc;
}

dt_result_t pingpong(const struct job *job, int peer, bool first, double *us,
                     struct dt_error *err)
{
    dt_result_t rc = first ? play(job, peer, us) : serve(job, peer);
    return rc == DT_SUCCESS ? rc : fail_in_libdt(err, rc);
}

dt_result_t pingpong_nodes(const struct job *job, double *us,
                           struct dt_error *err)
{
    int other = job->node ^ 1;
    dt_result_t rc = job_barrier(job, err);
    *us = 0;
    if (rc == DT_SUCCESS && job->local_rank == 0 && other < job->nodes)
        rc = pingpong(job, job->first[other], job->node < other, us, err);
    return rc == DT_SUCCESS ? job_max(job, us, 1, err) : rc;
}

/* ---- memory ---- */

/* A cache line for each side. */
struct court {
    _Alignas(128) _Atomic int ping;
    _Alignas(128) _Atomic int pong;
};

static struct court *open_court(const struct job *job, bool make)
{
    char name[64];
    void *map = MAP_FAILED;
    int first = job->first[job->node];
    snprintf(name, sizeof(name), "/dt-bench.%d", job->place[first].pid);
    int fd = shm_open(name, O_RDWR | (make ? O_CREAT | O_EXCL : 0), 0600);
    if (fd < 0)
        return NULL;
    if (!make)
        shm_unlink(name); /* both ranks have it open */
    if (!make || !posix_fallocate(fd, 0, sizeof(struct court)))
        map = mmap(NULL, sizeof(struct court), PROT_READ | PROT_WRITE,
                   MAP_SHARED, fd, 0);
    close(fd);
    if (make && map == MAP_FAILED)
        shm_unlink(name);
    return map == MAP_FAILED ? NULL : map;
}

static void close_court(struct court *court)
{
    if (court)
        munmap(court, sizeof(*court));
}

/* Wait until flag changes from value; OVER when that takes seconds. */
enum { OVER = -1, PATIENCE_US = 5000000 };

static int await(_Atomic int *flag, int value)
{
    double end = 0;
    for (unsigned i = 1;; i++) {
        int now = atomic_load_explicit(flag, memory_order_acquire);
        if (now != value)
            return now;
        if (i % 1024)
            continue;
        if (end > 0 && now_us() > end)
            return OVER;
        if (!(end > 0))
            end = now_us() + PATIENCE_US;
        sched_yield();
    }
}

static void hit(_Atomic int *flag, int ball)
{
    atomic_store_explicit(flag, ball, memory_order_release);
}

static void hit_back(struct court *court)
{
    for (int ball = 0; ball != OVER;) {
        ball = await(&court->ping, ball);
        hit(&court->pong, ball);
    }
}

/* The shortest of as many batches as there is time for; 0: no answer came. */
static double rally(struct court *court)
{
    double begin = now_us(), best = 0, start;
    int ball = 0;
    for (int batch = 0; batch < 10 * BATCHES; batch++) {
        start = now_us();
        for (int i = 0; i < BATCH; i++) {
            hit(&court->ping, ball + 1);
            if (await(&court->pong, ball) == OVER)
                return 0;
            ball++;
        }
        double time = (now_us() - start) / BATCH / 2;
        if (batch < 2 || time < best)
            best = time;
        if (batch && now_us() - begin > LONG_US)
            break;
    }
    hit(&court->ping, OVER);
    return best;
}

dt_result_t pingpong_cores(const struct job *job, double *us,
                           struct dt_error *err)
{
    bool plays = job->local_size > 1 && job->local_rank < 2;
    bool first = job->local_rank == 0;
    struct court *court = NULL;
    double absent;
    if (plays && first)
        court = open_court(job, true);
    dt_result_t rc = job_barrier(job, err);
    if (rc == DT_SUCCESS && plays && !first)
        court = open_court(job, false);
    absent = plays && !court;
    *us = 0;
    if (rc == DT_SUCCESS)
        rc = job_max(job, &absent, 1, err);
    if (rc == DT_SUCCESS && court && absent == 0) {
        if (first)
            *us = rally(court);
        else
            hit_back(court);
    }
    close_court(court);
    return rc == DT_SUCCESS ? job_max(job, us, 1, err) : rc;
}
