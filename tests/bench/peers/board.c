/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* board.c - waiting for each other, and the clock */
#include "board.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

enum { WAIT_SECONDS = 60 };

static uint64_t nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#if defined(__x86_64__)
/* a quarter of what clock_gettime takes, where 0.2 us are to be measured */
uint64_t ticks(void)
{
    unsigned core;
    return __rdtscp(&core);
}

static void relax(void)
{
    _mm_pause();
}

static double measure_ticks_per_us(void)
{
    uint64_t t0 = nanoseconds(), c0 = ticks(), t1;
    do
        t1 = nanoseconds();
    while (t1 - t0 < 20000000);
    return (double)(ticks() - c0) * 1e3 / (double)(t1 - t0);
}
#else
uint64_t ticks(void)
{
    return nanoseconds();
}

static void relax(void)
{
}

static double measure_ticks_per_us(void)
{
    return 1e3;
}
#endif

void meeting_open(struct meeting *m, const char *path, int rank, int size,
                  bool crowded)
{
    *m = (struct meeting){.rank = rank, .size = size, .crowded = crowded};
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (size > BOARD_RANKS || fd < 0 || ftruncate(fd, sizeof(*m->board))) {
        fprintf(stderr, "bench: -B %s: not a file for at most %d ranks\n", path,
                BOARD_RANKS);
        exit(1);
    }
    m->board = mmap(NULL, sizeof(*m->board), PROT_READ | PROT_WRITE, MAP_SHARED,
                    fd, 0);
    close(fd);
    if (m->board == MAP_FAILED) {
        perror("bench: mmap");
        exit(1);
    }
    gethostname(m->board->rank[rank].host, sizeof(m->board->rank->host) - 1);
    if (rank == 0)
        m->board->ticks_per_us = measure_ticks_per_us();
}

static void futex(_Atomic uint32_t *word, int op, uint32_t value)
{
    const struct timespec second = {.tv_sec = 1};
    syscall(SYS_futex, word, op, value, &second, NULL, 0);
}

void meeting_fail(struct meeting *m, int code)
{
    atomic_store(&m->board->failed, (uint32_t)code);
    atomic_fetch_add(&m->board->round, 1);
    futex(&m->board->round, FUTEX_WAKE, BOARD_RANKS);
}

static void wait_for_round(struct meeting *m, uint32_t old, bool yield)
{
    struct board *b = m->board;
    uint64_t end = nanoseconds() + WAIT_SECONDS * UINT64_C(1000000000);
    for (unsigned spins = 1; atomic_load(&b->round) == old; spins++) {
        if (m->crowded)
            futex(&b->round, FUTEX_WAIT, old);
        else if (yield && spins % 64 == 0)
            sched_yield();
        else
            relax();
        if ((m->crowded || spins % 4096 == 0) && nanoseconds() > end) {
            fprintf(stderr, "bench: rank %d waited %d s for others\n", m->rank,
                    WAIT_SECONDS);
            exit(1);
        }
    }
}

static void pass(struct meeting *m, bool yield)
{
    struct board *b = m->board;
    uint32_t old = atomic_load(&b->round);
    if (atomic_fetch_add(&b->arrived, 1) + 1 == (uint32_t)m->size) {
        atomic_store(&b->arrived, 0);
        b->start = ticks() + (uint64_t)b->ticks_per_us;
        atomic_fetch_add(&b->round, 1);
        if (m->crowded)
            futex(&b->round, FUTEX_WAKE, BOARD_RANKS);
    } else {
        wait_for_round(m, old, yield);
    }
    if (atomic_load(&b->failed))
        exit((int)b->failed);
}

/* First in a way that lets a library's own threads on this core end what they
 * do for the others; then, when all are through with it, without. */
uint64_t meeting_wait(struct meeting *m)
{
    pass(m, true);
    if (m->crowded)
        return ticks();
    pass(m, false);
    uint64_t start = m->board->start;
    while (ticks() < start)
        ;
    return start;
}
