/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ranks.c - one rank of a job that saves and loads with the real libdt:
 *
 *   ckpt-ranks save DIR STEP    once
 *   ckpt-ranks train DIR STEP   from the last one on, up to STEP
 *   ckpt-ranks behind DIR STEP  the same with dt_ckpt_save_async
 *   ckpt-ranks load DIR         says which step it was; checks the values */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dt.h"

#define SHARED 100000
#define OWN    1000

static float shared[SHARED];
static int64_t own[OWN];

static int complain(const char *what)
{
    fprintf(stderr, "rank %d: %s: %s\n", dt_rank(), what, dt_last_error());
    return 1;
}

static void fill(int64_t step)
{
    for (int i = 0; i < SHARED; i++)
        shared[i] = (float)(step * 3 + i);
    for (int i = 0; i < OWN; i++)
        own[i] = step * 1000000 + dt_rank() * OWN + i;
}

static bool right(int64_t step)
{
    for (int i = 0; i < SHARED; i++)
        if (shared[i] != (float)(step * 3 + i))
            return false;
    for (int i = 0; i < OWN; i++)
        if (own[i] != step * 1000000 + dt_rank() * OWN + i)
            return false;
    return true;
}

static int load(dt_ckpt_t ckpt, int64_t *step)
{
    dt_result_t rc = dt_ckpt_load(ckpt, step);
    if (rc == DT_ERR_NOT_FOUND)
        return 0;
    if (rc != DT_SUCCESS)
        return complain("load");
    if (!right(*step)) {
        fprintf(stderr, "rank %d: wrong values\n", dt_rank());
        return 1;
    }
    return 0;
}

static int work(dt_ckpt_t ckpt, const char *what, int64_t last)
{
    int64_t step = 0;
    if (strcmp(what, "save") == 0) {
        fill(last);
        return dt_ckpt_save(ckpt, last) == DT_SUCCESS ? 0 : complain("save");
    }
    if (load(ckpt, &step))
        return 1;
    if (dt_rank() == 0)
        printf("step %lld\n", (long long)step);
    while (strcmp(what, "train") == 0 && step < last) {
        fill(++step);
        if (dt_ckpt_save(ckpt, step) != DT_SUCCESS)
            return complain("save");
    }
    while (strcmp(what, "behind") == 0 && step < last) {
        fill(++step);
        if (dt_ckpt_save_async(ckpt, step) != DT_SUCCESS)
            return complain("save_async");
    }
    return dt_ckpt_wait(ckpt) == DT_SUCCESS ? 0 : complain("wait");
}

int main(int argc, char **argv)
{
    static const int64_t shape[] = {SHARED / 10, 10}, own_shape[] = {OWN};
    dt_ckpt_t ckpt = NULL;
    if (argc < 3)
        return 64;
    if (dt_init() != DT_SUCCESS)
        return complain("init");
    if (dt_ckpt_open(argv[2], 2, &ckpt) != DT_SUCCESS)
        return complain("open");
    if (dt_ckpt_add_tensor(ckpt, "shared", shared, DT_DTYPE_F32, 2, shape,
                           DT_CKPT_REPLICATED) != DT_SUCCESS ||
        dt_ckpt_add_tensor(ckpt, "own", own, DT_DTYPE_I64, 1, own_shape, 0) !=
            DT_SUCCESS)
        return complain("add");
    int rc = work(ckpt, argv[1], argc > 3 ? atoll(argv[3]) : 0);
    dt_ckpt_close(ckpt);
    if (dt_finalize() != DT_SUCCESS)
        rc = complain("finalize");
    return rc;
}
