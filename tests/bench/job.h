/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* job.h - what the jobs that are timed with their checkpoints do alike: meet,
 * name tensors, save and load them, remove files. */
#ifndef DT_BENCH_JOB_H
#define DT_BENCH_JOB_H

#include <ftw.h>

#include "clock.h"

/* What follows begins, or is over, on all ranks. */
static inline void meet(void)
{
    need(dt_barrier(dt_comm_world(), DT_STREAM_NONE) == DT_SUCCESS, "barrier");
}

/* With n tensors of so many bytes, this rank's own. */
static inline dt_ckpt_t open_all(const char *dir, char *const *tensor, int n,
                                 size_t bytes)
{
    dt_ckpt_t ckpt = NULL;
    int64_t shape[] = {(int64_t)bytes / 4};
    need(dt_ckpt_open(dir, 1, &ckpt) == DT_SUCCESS, "open");
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof(name), "t%d", i);
        need(dt_ckpt_add_tensor(ckpt, name, tensor[i], DT_DTYPE_F32, 1, shape,
                                0) == DT_SUCCESS,
             "add");
    }
    return ckpt;
}

static inline void save_all(dt_ckpt_t ckpt, int64_t step)
{
    need(dt_ckpt_save_async(ckpt, step) == DT_SUCCESS &&
             dt_ckpt_wait(ckpt) == DT_SUCCESS,
         "save");
}

static inline void load_all(dt_ckpt_t ckpt, int64_t step)
{
    int64_t found = 0;
    need(dt_ckpt_load(ckpt, &found) == DT_SUCCESS && found == step, "load");
}

/* From all ranks' begin to all ranks' end. */
static inline double time_load(dt_ckpt_t ckpt, int64_t step)
{
    meet();
    double begun = now();
    load_all(ckpt, step);
    meet();
    return now() - begun;
}

static inline int remove_one(const char *path, const struct stat *st, int type,
                             struct FTW *ftw)
{
    (void)st, (void)type;
    if (ftw->level > 0)
        remove(path);
    return 0;
}

/* What is in it, if it is there; not the directory itself. */
static inline void clear(const char *dir)
{
    nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
