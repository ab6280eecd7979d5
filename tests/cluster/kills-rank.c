/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* kills-rank.c - a rank of the step that tests/cluster/kills disturbs:
 *
 *   kills-rank DIRECTORY   STEPS training steps: allreduces whose every element
 *                          is checked, and checkpoints in DIRECTORY by way of
 *                          the node's memory
 *
 * It loads a checkpoint that is there and checks it, too. Its last line says
 * that it has done all steps; one with "wrong" is a fault of libdt. */
#include <dt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { STEPS = 60, EVERY = 10, COUNT = 20000, PAUSE_NS = 10000000, LIMIT = 60 };

static int64_t mine[COUNT], all[COUNT], state[COUNT];
static int64_t rank, size;
static int wrong;

static void must(dt_result_t rc, const char *what)
{
    if (rc == DT_SUCCESS)
        return;
    fprintf(stderr, "kills-rank: rank %d: %s: %s\n", (int)rank, what,
            dt_last_error());
    exit(1);
}

static void compare(int64_t got, int64_t wanted, const char *what)
{
    if (got != wanted && wrong++ == 0)
        printf("rank %d: wrong: %s: %lld instead of %lld\n", (int)rank, what,
               (long long)got, (long long)wanted);
}

/* What the state is after so many steps, on each rank. */
static int64_t state_after(int64_t step, size_t i)
{
    return step * (int64_t)i + rank;
}

static int64_t load(dt_ckpt_t ckpt)
{
    int64_t step = 0;
    dt_result_t rc = dt_ckpt_load(ckpt, &step);
    if (rc == DT_ERR_NOT_FOUND)
        return 0;
    must(rc, "dt_ckpt_load");
    for (size_t i = 0; i < COUNT; i++)
        compare(state[i], state_after(step, i), "a checkpoint");
    return step;
}

static void take(int64_t step)
{
    for (size_t i = 0; i < COUNT; i++)
        mine[i] = (int64_t)i * (rank + 1) + step;
    must(dt_allreduce(mine, all, COUNT, DT_DTYPE_I64, DT_OP_SUM,
                      dt_comm_world(), DT_STREAM_NONE),
         "dt_allreduce");
    for (size_t i = 0; i < COUNT; i++) {
        compare(all[i], (int64_t)i * (size * (size + 1) / 2) + step * size,
                "a sum");
        state[i] = state_after(step, i);
    }
}

int main(int argc, char **argv)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    const int64_t shape = COUNT;
    dt_ckpt_t ckpt;
    alarm(LIMIT);
    if (argc != 2)
        return 64;
    must(dt_init(), "dt_init");
    rank = dt_rank(), size = dt_size();
    must(dt_ckpt_open(argv[1], -1, &ckpt), "dt_ckpt_open");
    must(dt_ckpt_add_tensor(ckpt, "state", state, DT_DTYPE_I64, 1, &shape, 0),
         "dt_ckpt_add_tensor");
    int64_t begin = load(ckpt);
    for (int64_t step = begin + 1; step <= begin + STEPS; step++) {
        take(step);
        if (step % EVERY == 0)
            must(dt_ckpt_save_async(ckpt, step), "dt_ckpt_save_async");
        nanosleep(&pause, NULL);
    }
    must(dt_ckpt_wait(ckpt), "dt_ckpt_wait");
    dt_ckpt_close(ckpt);
    printf("rank %d of %d has done all steps\n", (int)rank, (int)size);
    fflush(stdout);
    must(dt_finalize(), "dt_finalize");
    return wrong ? 3 : 0;
}
