/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* vote.c - an allgather of who can go on. */
#include "gpu/coll/vote.h"

#include <stdio.h>

void dt_gpu_object(struct dt_gpu_vote *mine, const struct dt_error *err)
{
    if (!mine->why[0])
        snprintf(mine->why, sizeof(mine->why), "%.*s",
                 (int)sizeof(mine->why) - 1, err->text);
}

dt_result_t dt_gpu_vote(struct dt_comm *comm, const struct dt_gpu_vote *mine,
                        void *all, size_t size, bool *yes, char reason[512],
                        struct dt_error *err)
{
    const struct dt_shape shape = {.coll = DT_COLL_ALLGATHER,
                                   .dtype = DT_DTYPE_U8,
                                   .count = size,
                                   .prescale = 1,
                                   .postscale = 1};
    dt_result_t rc = dt_comm_run(comm, &shape, mine, all, err);
    if (rc != DT_SUCCESS)
        return rc;
    *yes = true;
    for (size_t r = 0; *yes && r < comm->size; r++) {
        const struct dt_gpu_vote *vote = (void *)((char *)all + r * size);
        if (vote->why[0]) {
            *yes = false;
            snprintf(reason, 512, "rank %zu: %s", r, vote->why);
        }
    }
    return DT_SUCCESS;
}
