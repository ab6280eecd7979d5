/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* local.c - how long an allreduce between two ranks of one node takes, in
 * private and in registered memory, beside what the machine allows: the bounds
 * are what the flag exchange and the copies measured in the same run cost. The
 * last columns are an average beside a sum. */
#include "coll/node/local.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "exec/exec.h"
#include "tl/board.h"

enum { RANKS = 2, RUNS = 100, TIME_US = 1500000 };
#define LARGEST ((size_t)64 << 20)

/* What both processes see besides the transport. */
struct shared_page {
    alignas(128) _Atomic uint64_t entered[RANKS][16];
    char addr[RANKS][64];
    double us[RANKS];
    _Atomic bool over;
};

struct rank {
    struct shared_page *page;
    size_t me;
    uint64_t barriers, round;
    struct dt_tl *tl;
    struct dt_board *board;
    char *plain, *shared;
};

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void need(bool fine, const char *what)
{
    if (!fine) {
        fprintf(stderr, "tests/bench/local: %s failed\n", what);
        _exit(1);
    }
}

static void barrier(struct rank *r)
{
    uint64_t wanted = ++r->barriers;
    unsigned spins = 0;
    atomic_store_explicit(&r->page->entered[r->me][0], wanted,
                          memory_order_release);
    while (atomic_load_explicit(&r->page->entered[1 - r->me][0],
                                memory_order_acquire) < wanted)
        if (++spins % 16384 == 0)
            sched_yield();
}

static void join(struct rank *r)
{
    struct dt_error err;
    const struct dt_tl_config config = {.size = RANKS};
    const void *addr;
    size_t len;
    need(dt_tl_shm.open(&config, &r->tl, &err) == DT_SUCCESS, "open");
    dt_tl_shm.address(r->tl, &addr, &len);
    memcpy(r->page->addr[r->me], addr, len);
    barrier(r);
    struct dt_tl_peer peers[RANKS] = {0};
    peers[1 - r->me] = (struct dt_tl_peer){r->page->addr[1 - r->me], len};
    const struct dt_tl_world world = {r->me, RANKS, peers};
    need(dt_tl_shm.connect(r->tl, &world, &err) == DT_SUCCESS, "connect");
    static const size_t ranks[RANKS] = {0, 1};
    const struct dt_board_config board = {
        .serial = 1, .ranks = ranks, .size = RANKS, .index = r->me};
    need(r->tl->boards->open(r->tl, &board, &r->board, &err) == DT_SUCCESS,
         "board");
    void *shared;
    need(r->tl->boards->mem_alloc(r->tl, 2 * LARGEST, &shared, &err) ==
             DT_SUCCESS,
         "memory");
    r->shared = shared;
    r->plain = mmap(NULL, 2 * LARGEST, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(r->plain != MAP_FAILED, "memory");
    memset(r->shared, 0, 2 * LARGEST);
    memset(r->plain, 0, 2 * LARGEST);
}

/* ---- what is timed ---- */

/* Samples short enough that some of them are not disturbed by what else runs
 * on this machine. */
static size_t times_of(size_t len)
{
    return len <= 1024     ? 1000
           : len <= 16384  ? 200
           : len <= 65536  ? 40
           : len < 1 << 20 ? 8
                           : 1;
}

static void allreduce(struct rank *r, const struct dt_shape *shape,
                      const char *send, char *recv)
{
    struct dt_local local;
    dt_local_begin(&local, r->board, shape, send, recv, r->round, false);
    uint64_t passed = 0;
    unsigned idle = 0;
    while (!local.done) {
        if (!dt_local_progress(&local) && ++idle % 4096 == 0)
            sched_yield();
        if (local.released > passed)
            r->board->ops->release(r->board,
                                   r->round + (passed = local.released));
    }
    r->round += dt_local_rounds(r->board, shape);
}

/* Write the buffer anew, as a training step would. */
static void dirty(char *buf, size_t len)
{
    float *f = (float *)(void *)buf;
    for (size_t i = 0; i < len / sizeof(*f); i++)
        f[i] = (float)(i & 15);
}

/* Mean of a run of operations on this rank, dirtying not included. */
static double run(struct rank *r, size_t len, char *base, dt_op_t op)
{
    const struct dt_shape shape = {.coll = DT_COLL_ALLREDUCE,
                                   .dtype = DT_DTYPE_F32,
                                   .op = op,
                                   .count = len / 4,
                                   .prescale = 1,
                                   .postscale = 1};
    size_t times = times_of(len);
    double spent = 0;
    if (len <= 4096) { /* the clock costs as much as the operation */
        dirty(base, len);
        barrier(r);
        double start = now_us();
        for (size_t i = 0; i < times; i++) {
            *(volatile float *)(void *)base = (float)(i & 15);
            allreduce(r, &shape, base, base + LARGEST);
        }
        return (now_us() - start) / (double)times;
    }
    for (size_t i = 0; i < times; i++) {
        dirty(base, len);
        barrier(r);
        double start = now_us();
        allreduce(r, &shape, base, base + LARGEST);
        spent += now_us() - start;
    }
    return spent / (double)times;
}

static double flag_exchange(struct rank *r)
{
    barrier(r);
    double start = now_us();
    for (int i = 0; i < 500; i++)
        barrier(r);
    return (now_us() - start) / 500;
}

/* Half of it added and written twice, by both at the same time. */
static double fold_bound(struct rank *r, size_t len)
{
    size_t half = (len / 2) & ~(size_t)63;
    char *a = r->plain + r->me * half, *b = r->plain + LARGEST;
    const void *in[2] = {a, b};
    size_t times = times_of(len);
    barrier(r);
    double start = now_us();
    for (size_t i = 0; i < times; i++)
        for (size_t at = 0; at < half; at += 16384) {
            size_t bite = half - at < 16384 ? half - at : 16384;
            in[0] = a + at;
            in[1] = b + at;
            dt_exec_reduce_n(a + at, in, 2, bite / 4, DT_DTYPE_F32, DT_OP_SUM,
                             1);
            memcpy(b + at, a + at, bite);
        }
    return (now_us() - start) / (double)times;
}

static double copy_bound(struct rank *r, size_t len)
{
    size_t times = times_of(len);
    barrier(r);
    double start = now_us();
    for (size_t i = 0; i < times; i++)
        memcpy(r->plain + LARGEST, r->plain, len);
    return (now_us() - start) / (double)times;
}

/* ---- tables ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The slower rank counts. */
static double slower(struct rank *r, double us)
{
    r->page->us[r->me] = us;
    barrier(r);
    double other = r->page->us[1 - r->me];
    barrier(r);
    return us > other ? us : other;
}

enum {
    PRIVATE,
    REGISTERED,
    PRIVATE_AVG,
    REGISTERED_AVG,
    FLAG,
    FOLD,
    COPY,
    COLUMNS
};

static void measure(struct rank *r, size_t len)
{
    double us[COLUMNS][RUNS], best[COLUMNS], calm[COLUMNS];
    const double start = now_us();
    int runs = 0;
    for (; runs < RUNS; runs++) {
        /* rank 0 tells when there has been enough of it */
        if (r->me == 0)
            r->page->over = runs > 4 && now_us() - start > TIME_US;
        barrier(r);
        if (r->page->over)
            break;
        us[PRIVATE][runs] = slower(r, run(r, len, r->plain, DT_OP_SUM));
        us[REGISTERED][runs] = slower(r, run(r, len, r->shared, DT_OP_SUM));
        us[PRIVATE_AVG][runs] = slower(r, run(r, len, r->plain, DT_OP_AVG));
        us[REGISTERED_AVG][runs] = slower(r, run(r, len, r->shared, DT_OP_AVG));
        us[FLAG][runs] = slower(r, flag_exchange(r));
        us[FOLD][runs] = slower(r, fold_bound(r, len));
        us[COPY][runs] = slower(r, copy_bound(r, len));
    }
    for (int c = 0; c < COLUMNS; c++) {
        qsort(us[c], (size_t)runs, sizeof(us[c][0]), by_value);
        best[c] = us[c][0];
        calm[c] = us[c][runs / 4];
    }
    double bound = 2 * best[FLAG] + best[FOLD];
    if (r->me == 0)
        printf("%9zu %9.3f %9.3f %9.3f %9.3f %7.3f %9.3f %9.3f %7.2f %7.2f "
               "%6.2f %6.2f\n",
               len, calm[PRIVATE], best[PRIVATE], calm[REGISTERED],
               best[REGISTERED], best[FLAG], best[COPY], bound,
               best[PRIVATE] / bound, best[REGISTERED] / bound,
               best[PRIVATE_AVG] / best[PRIVATE],
               best[REGISTERED_AVG] / best[REGISTERED]);
    fflush(stdout);
}

static void run_rank(struct shared_page *page, size_t me, size_t smallest,
                     size_t largest)
{
    struct rank r = {.page = page, .me = me};
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET(me, &cpu);
    sched_setaffinity(0, sizeof(cpu), &cpu);
    join(&r);
    if (me == 0)
        printf("%9s %10s %10s %10s %10s %8s %10s %10s %6s %6s %6s %6s\n",
               "bytes", "private", "best", "registered", "best", "flag", "copy",
               "bound", "p/copy", "r/bound", "p avg", "r avg");
    for (size_t len = smallest; len <= largest; len *= 4)
        measure(&r, len);
    barrier(&r);
    r.board->ops->close(r.board);
    dt_tl_shm.close(r.tl);
}

int main(int argc, char **argv)
{
    size_t smallest = argc > 1 ? strtoul(argv[1], NULL, 0) : 4;
    size_t largest = argc > 2 ? strtoul(argv[2], NULL, 0) : LARGEST;
    struct shared_page *page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    need(page != MAP_FAILED && sysconf(_SC_NPROCESSORS_ONLN) >= RANKS,
         "two cores");
    for (size_t i = 0; i < RANKS; i++)
        if (fork() == 0) {
            run_rank(page, i, smallest, largest);
            exit(0);
        }
    int status, bad = 0;
    while (wait(&status) > 0)
        bad |= status;
    return bad != 0;
}
