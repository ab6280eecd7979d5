/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* changes.c - what has not changed is linked, what several ranks have is
 * written once, and when it is time for a checkpoint. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/deadline.h"
#include "../support/job.h"
#include "../../tap.h"

#define BIG (1 << 20)

void __wrap_dt_deadline_reserve(double seconds);

static _Atomic double reserved; /* what a checkpoint is said to cost */

void __wrap_dt_deadline_reserve(double seconds)
{
    reserved = seconds;
}

struct series {
    const char *dir;
    int rc;
    bool right;
};

/* ---- what has not changed ---- */

static void incremental_rank(void *arg)
{
    struct series *s = arg;
    int64_t shape[] = {BIG};
    int rank = dt_rank();
    dt_ckpt_t ckpt = NULL;
    char *data[3];
    bool right = dt_ckpt_open(s->dir, 0, &ckpt) == DT_SUCCESS;
    for (int i = 0; i < 3; i++) {
        char name[] = {(char)('a' + i), 0};
        data[i] = malloc(BIG);
        memset(data[i], i, BIG);
        dt_ckpt_add_tensor(ckpt, name, data[i], DT_DTYPE_U8, 1, shape, 0);
    }
    right = right && dt_ckpt_save(ckpt, 1) == DT_SUCCESS;
    data[0][7] = 77; /* b and c are linked */
    right = right && dt_ckpt_save_async(ckpt, 2) == DT_SUCCESS;
    data[0][8] = 78; /* again, from the first */
    right = right && dt_ckpt_save(ckpt, 3) == DT_SUCCESS;
    data[1][9] = 79; /* less than half of step 1's file is in use */
    right = right && dt_ckpt_save(ckpt, 4) == DT_SUCCESS;
    right = right && dt_ckpt_save(ckpt, 5) == DT_SUCCESS; /* all of it */
    memset(data[0], 50, BIG);
    dt_ckpt_close(ckpt);
    for (int i = 0; i < 3; i++)
        free(data[i]);
    if (rank == 0)
        s->right = right;
}

static void check_incremental_rank(void *arg)
{
    struct series *s = arg;
    int64_t step = 0, shape[] = {BIG};
    dt_ckpt_t ckpt = NULL;
    char *data[3];
    dt_ckpt_open(s->dir, 0, &ckpt);
    for (int i = 0; i < 3; i++) {
        char name[] = {(char)('a' + i), 0};
        data[i] = malloc(BIG);
        dt_ckpt_add_tensor(ckpt, name, data[i], DT_DTYPE_U8, 1, shape, 0);
    }
    bool right = dt_ckpt_load(ckpt, &step) == DT_SUCCESS && step == s->rc &&
                 data[0][7] == (step >= 2 ? 77 : 0) &&
                 data[0][8] == (step >= 3 ? 78 : 0) &&
                 data[1][9] == (step >= 4 ? 79 : 1) && data[2][9] == 2;
    dt_ckpt_close(ckpt);
    for (int i = 0; i < 3; i++)
        free(data[i]);
    if (dt_rank() == 0)
        s->right = right;
}

static void test_incremental(void)
{
    static const char *const want[] = {
        NULL,
        "manifest.json rank-00000-of-00002.safetensors "
        "rank-00001-of-00002.safetensors ",
        "manifest.json rank-00000-of-00002.safetensors "
        "rank-00000-of-00002.step-000000000001.safetensors "
        "rank-00001-of-00002.safetensors "
        "rank-00001-of-00002.step-000000000001.safetensors ",
    };
    char *dir = ckpt_temp_dir();
    struct series s = {.dir = dir};
    fake_world_run(2, incremental_rank, &s);
    ok(s.right, "five saves, of which little changes");
    ok(reserved > 0, "what they cost is kept free before the job's end");
    for (int step = 1; step <= 5; step++) {
        static const int like[] = {0, 1, 2, 2, 1, 0};
        char *path = NULL;
        if (asprintf(&path, "%s/step-%012d", dir, step) < 0)
            abort();
        const char *list = ckpt_list(path);
        ok(like[step] == 0 || strcmp(list, want[like[step]]) == 0,
           "step %d: %s", step, list);
        free(path);
    }
    for (int step = 5; step >= 1; step--) {
        char *path = NULL;
        s.rc = step;
        fake_world_run(2, check_incremental_rank, &s);
        ok(s.right, "step %d loads", step);
        /* what is linked is whole without the others */
        if (asprintf(&path, "%s/step-%012d", dir, step) < 0)
            abort();
        ckpt_remove_tree(path);
    }
    ckpt_remove_tree(dir);
}

/* ---- much ---- */

#define MUCH (24 << 20) /* a file of this size has a thread of its own */

static void much_rank(void *arg)
{
    struct series *s = arg;
    int64_t shape[] = {MUCH}, small[] = {8}, step = 0;
    char *data = malloc(MUCH), *want = malloc(MUCH), tail[8] = "tail";
    dt_ckpt_t ckpt = NULL;
    for (size_t i = 0; i < MUCH; i++)
        data[i] = (char)(i * 7 + i / 4099 + (size_t)dt_rank());
    memcpy(want, data, MUCH);
    bool right = dt_ckpt_open(s->dir, 0, &ckpt) == DT_SUCCESS &&
                 dt_ckpt_add_tensor(ckpt, "much", data, DT_DTYPE_U8, 1, shape,
                                    0) == DT_SUCCESS &&
                 dt_ckpt_add_tensor(ckpt, "tail", tail, DT_DTYPE_U8, 1, small,
                                    0) == DT_SUCCESS &&
                 dt_ckpt_save_async(ckpt, 1) == DT_SUCCESS;
    memset(data, 1, MUCH);
    right = right && dt_ckpt_wait(ckpt) == DT_SUCCESS;
    right = right && dt_ckpt_load(ckpt, &step) == DT_SUCCESS && step == 1 &&
            memcmp(data, want, MUCH) == 0;
    tail[0] = 'T'; /* much is linked: what was begun is dropped */
    right = right && dt_ckpt_save_async(ckpt, 2) == DT_SUCCESS;
    memset(data, 2, MUCH);
    right = right && dt_ckpt_wait(ckpt) == DT_SUCCESS;
    right = right && dt_ckpt_load(ckpt, &step) == DT_SUCCESS && step == 2 &&
            tail[0] == 'T' && memcmp(data, want, MUCH) == 0;
    want[MUCH - 1]++; /* in the last block only: much is not linked */
    memcpy(data, want, MUCH);
    right = right && dt_ckpt_save_async(ckpt, 3) == DT_SUCCESS;
    dt_ckpt_close(ckpt);
    right = right && dt_ckpt_open(s->dir, 0, &ckpt) == DT_SUCCESS &&
            dt_ckpt_add_tensor(ckpt, "much", data, DT_DTYPE_U8, 1, shape, 0) ==
                DT_SUCCESS &&
            dt_ckpt_add_tensor(ckpt, "tail", tail, DT_DTYPE_U8, 1, small, 0) ==
                DT_SUCCESS;
    memset(data, 3, MUCH); /* memory has it no more, disk has */
    right = right && dt_ckpt_load(ckpt, &step) == DT_SUCCESS && step == 3 &&
            memcmp(data, want, MUCH) == 0;
    dt_ckpt_close(ckpt);
    free(data);
    free(want);
    if (!right)
        s->right = false;
}

static void test_much(void)
{
    char *dir = ckpt_temp_dir();
    struct series s = {.dir = dir, .right = true};
    fake_world_run(2, much_rank, &s);
    ok(s.right, "24 MiB of each rank, saved in the background and loaded");
    char *path = NULL;
    if (asprintf(&path, "%s/step-%012d", dir, 2) < 0)
        abort();
    const char *list = ckpt_list(path);
    ok(strstr(list, "rank-00000-of-00002.step-000000000001") &&
           strstr(list, "rank-00001-of-00002.step-000000000001"),
       "what has not changed is linked: %s", list);
    free(path);
    ckpt_remove_tree(dir);
}

/* ---- parts of tensors ---- */

static void slices_rank(void *arg)
{
    struct series *s = arg;
    int64_t shape[] = {8, 4}, none[] = {0, 0}, step = 0;
    int rank = dt_rank(), size = dt_size();
    float data[32] = {0};
    dt_ckpt_t ckpt = NULL;
    bool save = s->rc == 0, right = true;
    /* saving: ranks 0 and 1 have the upper half, 2 and 3 the lower one, 4
     * nothing; loading: any number of ranks, columns */
    int64_t at[] = {save ? rank / 2 * 4 : 0, save ? 0 : rank};
    int64_t extent[] = {save ? 4 : 8, save ? 4 : 1};
    if (save && rank == 4)
        at[0] = 0;
    for (int i = 0; i < 16 && save; i++)
        data[i] = (float)(at[0] * 4 + i);
    right = dt_ckpt_open(s->dir, 1, &ckpt) == DT_SUCCESS &&
            dt_ckpt_add_slice(ckpt, "w", data, DT_DTYPE_F32, 2, shape,
                              save && rank == 4 ? none : at,
                              save && rank == 4 ? none : extent) == DT_SUCCESS;
    if (save)
        right = right && dt_ckpt_save_async(ckpt, 3) == DT_SUCCESS &&
                dt_ckpt_wait(ckpt) == DT_SUCCESS;
    else
        right = right && dt_ckpt_load(ckpt, &step) == DT_SUCCESS && step == 3;
    for (int i = 0; i < 8 && !save; i++)
        right = right && data[i] == (float)(i * 4 + rank);
    if (!right)
        diag("rank %d of %d: %s", rank, size, dt_last_error());
    dt_ckpt_close(ckpt);
    if (rank == 0)
        s->right = right;
}

static void test_slices(void)
{
    char *dir = ckpt_temp_dir(), *path = NULL;
    struct series s = {.dir = dir};
    fake_world_run(5, slices_rank, &s);
    ok(s.right, "5 ranks save a tensor that 4 have parts of");
    if (asprintf(&path, "%s/step-000000000003", dir) < 0)
        abort();
    ok(strcmp(ckpt_list(path), "manifest.json rank-00000-of-00005.safetensors "
                               "rank-00002-of-00005.safetensors ") == 0,
       "equal parts are written once: %s", ckpt_list(path));
    free(path);
    s.rc = 1;
    fake_world_run(4, slices_rank, &s);
    ok(s.right, "4 ranks load it, cut in another way");
    ckpt_remove_tree(dir);
}

/* ---- when ---- */

struct when {
    const char *dir;
    int yes[4][3]; /* how often, of 20 steps, in each of 4 situations */
};

static void when_rank(void *arg)
{
    struct when *w = arg;
    int rank = dt_rank();
    dt_ckpt_t ckpt = NULL;
    dt_ckpt_open(w->dir, 1, &ckpt);
    for (int64_t step = 1; step <= 80; step++) {
        if (step % 20 == 1) { /* all ranks see the change at one step */
            dt_barrier(dt_comm_world(), DT_STREAM_NONE);
            if (step == 21)
                fake_world_leave(true, -1);
            if (step == 41)
                fake_world_leave(false, -1);
            if (step == 61)
                fake_world_leave(false, 0);
            dt_barrier(dt_comm_world(), DT_STREAM_NONE);
        }
        w->yes[(step - 1) / 20][rank] += dt_ckpt_need(ckpt, step);
    }
    dt_ckpt_close(ckpt);
}

static void test_when(void)
{
    char *dir = ckpt_temp_dir();
    struct when w = {.dir = dir};
    setenv("DT_CKPT_INTERVAL", "1d", 1);
    fake_world_run(3, when_rank, &w);
    unsetenv("DT_CKPT_INTERVAL");
    fake_world_leave(false, -1);
    for (int r = 0; r < 3; r++)
        ok(w.yes[0][r] == 0 && w.yes[1][r] == 20 && w.yes[2][r] == 0 &&
               w.yes[3][r] == 1,
           "rank %d: no need, notice, no need, no time left, once: "
           "%d %d %d %d",
           r, w.yes[0][r], w.yes[1][r], w.yes[2][r], w.yes[3][r]);
    ckpt_remove_tree(dir);
}

int main(void)
{
    alarm(600);
    test_incremental();
    test_much();
    test_slices();
    test_when();
    return tap_done();
}
