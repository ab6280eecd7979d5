/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* main.c - what is the same for every contender around its measurements */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"

enum { SKIPPED = 77, HUGE_PAGE = 2 << 20 };

/* The launchers' ways to say who is who, before any library is asked. */
static void who_am_i(int *rank, int *size)
{
    static const char *const names[][2] = {
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
        {"PMI_RANK", "PMI_SIZE"},
        {"SLURM_PROCID", "SLURM_NTASKS"},
    };
    const char *text = getenv("DT_FORK");
    if (text && sscanf(text, "%6d %6d", rank, size) == 2)
        return;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (getenv(names[i][0]) && getenv(names[i][1])) {
            *rank = atoi(getenv(names[i][0]));
            *size = atoi(getenv(names[i][1]));
            return;
        }
}

/* Before there are threads, which inherit it. Nodes are pretended, so it is
 * the rank in the job that counts. Returns the number of cores. */
static int pin(int rank)
{
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof(all), &all))
        return 1;
    int cores = CPU_COUNT(&all), nth = rank % cores;
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &all) && nth-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(core, &one);
            sched_setaffinity(0, sizeof(one), &one);
        }
    return cores;
}

void bench_check(struct bench *b, int rc)
{
    if (rc == 0)
        return;
    int code = rc == 1 ? SKIPPED : 1;
    if (b->meeting.board)
        meeting_fail(&b->meeting, code);
    exit(code);
}

void *bench_alloc(struct bench *b, size_t bytes)
{
    void *own = NULL;
    if (b->contender->alloc)
        bench_check(b, b->contender->alloc(bytes, &own));
    if (own)
        return own;
    bytes += HUGE_PAGE;
    char *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mem == MAP_FAILED) {
        perror("bench: mmap");
        bench_check(b, -1);
    }
    madvise(mem, bytes, b->o.huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return mem + (HUGE_PAGE - (size_t)mem % HUGE_PAGE) % HUGE_PAGE;
}

int bench_main(int argc, char **argv, const struct contender *contender)
{
    struct bench *b = calloc(1, sizeof(*b));
    int rank = 0, size = 1;
    if (!b)
        return 1;
    b->contender = contender;
    options_parse(&b->o, argc, argv);
    who_am_i(&rank, &size);
    int cores = pin(rank);
    bench_check(b, contender->start(b->o.variant, &rank, &size));
    meeting_open(&b->meeting, b->o.board, rank, size, size > cores);
    meeting_wait(&b->meeting);
    if (b->o.late_ms)
        bench_idle(b);
    else if (b->o.list)
        bench_list(b);
    else
        bench_sizes(b);
    meeting_wait(&b->meeting);
    contender->stop();
    free(b);
    return 0;
}
