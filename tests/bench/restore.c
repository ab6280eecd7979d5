/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* restore.c - how long a job is away when one of its ranks is killed:
 *
 *   restore [DIR [MiB [RANKS]]]   in DIR (.), of so many MiB (1024) in all, on
 *                                 so many ranks (2)
 *
 * It starts the ranks of one node itself, as tests/dt-fork does, under one run
 * id. When all have saved it takes the checkpoint off the disk, so that only
 * the node's memory has it, kills the last rank with SIGKILL, waits for it,
 * kills and waits for the others, and starts all again, in the same run. The
 * times are those of the slowest rank, one after the other:
 *
 *   noticed:   from the SIGKILL until waitpid tells
 *   cleared:   until the other ranks are gone, too
 *   started:   until dt_init has returned
 *   allocated: until the program has memory for its tensors, all pages there
 *   opened:    dt_ckpt_open, and what is named
 *   loaded:    dt_ckpt_load
 *   memcpy:    of as many bytes by all ranks at once, in the same processes,
 *              from and to memory whose pages are there
 *
 * Medians are printed, the load beside memcpy, and all but "allocated", which
 * is the program's own, beside 50 ms and memcpy. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "../fork/fork.h"
#include "job.h"

enum { TENSORS = 32, RANKS_MAX = 64 };
#define PATIENCE 300 /* seconds for a job */

enum {
    NOTICED,
    CLEARED,
    STARTED,
    ALLOCATED,
    OPENED,
    LOADED,
    PHASES,
    COPIED = PHASES,
    KINDS
};

static const char *const names[] = {
    [NOTICED] = "noticed",     [CLEARED] = "cleared", [STARTED] = "started",
    [ALLOCATED] = "allocated", [OPENED] = "opened",   [LOADED] = "loaded",
};

/* What the ranks tell the launcher, in memory that they share. */
struct board {
    _Atomic int ready;           /* ranks that have saved */
    double at[RANKS_MAX][KINDS]; /* when; of COPIED how long it took */
};

struct bench {
    char *dir, mib[32], self[4096];
    int ranks, board_fd;
    struct board *board;
    pid_t pid[RANKS_MAX];
};

static void *map(size_t size, int flags, int fd)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
    need(at != MAP_FAILED, "mmap");
    return at;
}

/* ---- a rank ---- */

static void fill(char *const *tensor, size_t bytes, int64_t step)
{
    for (int i = 0; i < TENSORS; i++)
        memset(tensor[i], (int)step + i, bytes);
}

static bool holds(char *const *tensor, size_t bytes, int64_t step)
{
    for (int i = 0; i < TENSORS; i++)
        for (size_t at = 0; at < bytes; at += 512)
            if (tensor[i][at] != (char)(step + i))
                return false;
    return true;
}

static double time_copy(char *const *tensor, size_t bytes)
{
    char *from = map(bytes * TENSORS, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    memset(from, 1, bytes * TENSORS);
    meet();
    double begun = now();
    for (int i = 0; i < TENSORS; i++)
        memcpy(tensor[i], from + (size_t)i * bytes, bytes);
    double took = now() - begun;
    munmap(from, bytes * TENSORS);
    return took;
}

/* rank DIR MiB STEP LAST FD: load STEP if there is one, save the next one, and
 * wait to be killed; of the LAST job the end is good, so that nothing stays in
 * the node's memory. */
static int run_rank(char **argv)
{
    char *dir = argv[2], *tensor[TENSORS];
    int64_t step = atoll(argv[4]);
    bool last = atoi(argv[5]);
    struct board *board = map(sizeof(*board), MAP_SHARED, atoi(argv[6]));
    need(dt_init() == DT_SUCCESS, "dt_init");
    double *at = board->at[dt_rank()];
    at[STARTED] = now();
    size_t bytes =
        (strtoul(argv[3], NULL, 10) << 20) / TENSORS / (size_t)dt_size();
    bytes = bytes / 4 * 4;
    for (int i = 0; i < TENSORS; i++)
        tensor[i] = map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    fill(tensor, bytes, 100);
    at[ALLOCATED] = now();
    dt_ckpt_t ckpt = open_all(dir, tensor, TENSORS, bytes);
    at[OPENED] = now();
    if (step > 0) {
        load_all(ckpt, step);
        at[LOADED] = now();
        need(holds(tensor, bytes, step), "what was loaded is wrong");
        at[COPIED] = time_copy(tensor, bytes);
    }
    fill(tensor, bytes, step + 1);
    save_all(ckpt, step + 1);
    board->ready++;
    while (!last)
        pause();
    dt_ckpt_close(ckpt);
    return dt_finalize() == DT_SUCCESS ? 0 : 1;
}

/* ---- the launcher ---- */

static void start(struct bench *b, int64_t step, bool last)
{
    char number[32], fd[16];
    size_t size = fork_area_size((size_t)b->ranks);
    int area = memfd_create("restore", 0);
    need(area >= 0 && ftruncate(area, (off_t)size) == 0, "memfd");
    snprintf(number, sizeof(number), "%lld", (long long)step);
    snprintf(fd, sizeof(fd), "%d", b->board_fd);
    memset(b->board, 0, sizeof(*b->board));
    for (int r = 0; r < b->ranks; r++) {
        b->pid[r] = fork();
        need(b->pid[r] >= 0, "fork");
        if (b->pid[r] > 0)
            continue;
        const struct fork_place place = {.rank = (size_t)r,
                                         .size = (size_t)b->ranks,
                                         .nodes = 1,
                                         .fd = area};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fork_become(&place, FORK_LIBRARY);
        execl(b->self, b->self, "rank", b->dir, b->mib, number,
              last ? "1" : "0", fd, (char *)NULL);
        _exit(127);
    }
    close(area);
}

static void wait_for(struct bench *b, int rank, int status)
{
    int how;
    need(waitpid(b->pid[rank], &how, 0) == b->pid[rank] && how == status,
         "a rank failed");
    b->pid[rank] = 0;
}

static void end_all(struct bench *b)
{
    for (int r = 0; r < b->ranks; r++)
        if (b->pid[r] > 0)
            kill(b->pid[r], SIGKILL);
    for (int r = 0; r < b->ranks; r++)
        if (b->pid[r] > 0)
            wait_for(b, r, SIGKILL);
}

static void wait_ready(const struct bench *b)
{
    double begun = now();
    while (b->board->ready < b->ranks) {
        need(waitpid(-1, NULL, WNOHANG) == 0 && now() - begun < PATIENCE,
             "the ranks do not get ready");
        usleep(1000);
    }
}

/* From the SIGKILL until all ranks have loaded step. */
static void measure(struct bench *b, int64_t step, bool last, double *took)
{
    double at[PHASES], begun;
    clear(b->dir); /* whose own number is a part of the memory's name */
    begun = now();
    kill(b->pid[b->ranks - 1], SIGKILL);
    wait_for(b, b->ranks - 1, SIGKILL);
    at[NOTICED] = now();
    end_all(b);
    at[CLEARED] = now();
    start(b, step, last);
    if (last)
        for (int r = 0; r < b->ranks; r++)
            wait_for(b, r, 0);
    else
        wait_ready(b);
    took[COPIED] = 0;
    for (int r = 0; r < b->ranks; r++) {
        for (int k = STARTED; k < PHASES; k++)
            if (r == 0 || b->board->at[r][k] > at[k])
                at[k] = b->board->at[r][k];
        if (b->board->at[r][COPIED] > took[COPIED])
            took[COPIED] = b->board->at[r][COPIED];
    }
    for (int k = 0; k < PHASES; k++)
        took[k] = at[k] - (k > 0 ? at[k - 1] : begun);
}

static void print(const struct bench *b, double took[KINDS][ROUNDS])
{
    double load[ROUNDS], all[ROUNDS], limit[ROUNDS], ratio[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        all[i] = 0;
        for (int k = 0; k < PHASES; k++)
            all[i] += k == ALLOCATED ? 0 : took[k][i];
        limit[i] = 0.05 + took[COPIED][i];
        load[i] = took[LOADED][i] / took[COPIED][i];
        ratio[i] = all[i] / limit[i];
    }
    printf("%s MiB from the memory of a node, %d ranks, one killed\n", b->mib,
           b->ranks);
    for (int k = 0; k < PHASES; k++)
        printf("%-10s %8.1f ms\n", names[k], 1e3 * median(took[k]));
    printf("%-10s %8.1f ms   memcpy %8.1f ms            x memcpy %.3f\n",
           "load", 1e3 * median(took[LOADED]), 1e3 * median(took[COPIED]),
           median(load));
    printf("%-10s %8.1f ms   50 ms + memcpy %8.1f ms   x the goal %.3f\n",
           "away", 1e3 * median(all), 1e3 * median(limit), median(ratio));
}

static void prepare(struct bench *b, int argc, char **argv)
{
    const char *top = argc > 1 ? argv[1] : ".";
    char run_id[64];
    snprintf(b->mib, sizeof(b->mib), "%s", argc > 2 ? argv[2] : "1024");
    b->ranks = argc > 3 ? atoi(argv[3]) : 2;
    need(b->ranks > 0 && b->ranks <= RANKS_MAX, "RANKS");
    need(asprintf(&b->dir, "%s/bench-restore.%d", top, (int)getpid()) > 0,
         "asprintf");
    ssize_t n = readlink("/proc/self/exe", b->self, sizeof(b->self) - 1);
    need(n > 0, "/proc/self/exe");
    snprintf(run_id, sizeof(run_id), "bench-restore-%d", (int)getpid());
    setenv("DT_RUN_ID", run_id, 1);
    b->board_fd = memfd_create("board", 0);
    need(b->board_fd >= 0 && ftruncate(b->board_fd, sizeof(*b->board)) == 0,
         "memfd");
    b->board = map(sizeof(*b->board), MAP_SHARED, b->board_fd);
}

int main(int argc, char **argv)
{
    struct bench b = {0};
    double took[KINDS][ROUNDS], once[KINDS];
    if (argc == 7 && strcmp(argv[1], "rank") == 0)
        return run_rank(argv);
    prepare(&b, argc, argv);
    start(&b, 0, false);
    wait_ready(&b);
    for (int i = -1; i < ROUNDS; i++) {
        measure(&b, i + 2, i == ROUNDS - 1, once);
        for (int k = 0; k < KINDS && i >= 0; k++)
            took[k][i] = once[k];
    }
    print(&b, took);
    clear(b.dir);
    rmdir(b.dir);
    free(b.dir);
    return 0;
}
