/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* solo.c - no launcher: a job of one rank, like a singleton of MPI. Several
 * tasks of a Slurm step without a PMIx server are an error, not as many jobs.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "boot/boot.h"

struct solo {
    struct dt_boot base;
    struct dt_blob card;
};

/* The number of tasks of this process's step. Only tasks of srun have both
 * variables; a batch script has not. */
static dt_result_t step_tasks(long *ntasks, struct dt_error *err)
{
    *ntasks = 1;
    if (!getenv("SLURM_STEP_ID") || !getenv("SLURM_PROCID"))
        return DT_SUCCESS;
    return dt_env_long("SLURM_STEP_NUM_TASKS", 1, 1, 1L << 30, ntasks, err);
}

static dt_result_t solo_open(struct dt_boot **boot, struct dt_error *err)
{
    long ntasks;
    if (step_tasks(&ntasks, err) != DT_SUCCESS)
        return DT_ERR_BOOTSTRAP;
    if (ntasks > 1)
        return dt_error_set(err, DT_ERR_BOOTSTRAP,
                            "this step has %ld tasks, but no PMIx server: "
                            "start it with srun --dt-pmix or srun --mpi=pmix "
                            "(srun --help and srun --mpi=list show whether "
                            "this Slurm has them)",
                            ntasks);
    struct solo *solo = calloc(1, sizeof(*solo));
    if (!solo)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory to start");
    solo->base = (struct dt_boot){
        .ops = &dt_boot_solo, .size = 1, .most = 1, .nnodes = 1};
    dt_boot_node_name(solo->base.node, sizeof(solo->base.node));
    *boot = &solo->base;
    return DT_SUCCESS;
}

static dt_result_t solo_allgather(struct dt_boot *boot, const void *mine,
                                  size_t len, struct dt_blob *all, long timeout,
                                  struct dt_error *err)
{
    struct solo *solo = (struct solo *)boot;
    (void)timeout;
    void *copy = malloc(len ? len : 1);
    if (!copy)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory to start");
    memcpy(copy, mine, len);
    free((void *)solo->card.data);
    solo->card = all[0] = (struct dt_blob){copy, len};
    return DT_SUCCESS;
}

static void solo_close(struct dt_boot *boot)
{
    struct solo *solo = (struct solo *)boot;
    if (solo)
        free((void *)solo->card.data);
    free(solo);
}

const struct dt_boot_ops dt_boot_solo = {
    .open = solo_open,
    .allgather = solo_allgather,
    .close = solo_close,
};
