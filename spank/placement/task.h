/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* task.h - one task that is about to start: its rank, what Slurm granted, its
 * placement; then the placement is applied and reported. All functions run in
 * the task's own process, as its user. */
#ifndef DT_SPANK_TASK_H
#define DT_SPANK_TASK_H

#include "placement/devices.h"
#include "spank_dt.h"

/* Slurm names the granted GPUs in one variable per kind of runtime, all with
 * the same list; the first is CUDA's. */
enum { DT_NVISIBLE = 4 };
extern const char *const dt_visible[DT_NVISIBLE];

struct dt_task {
    char *const *env; /* Slurm's: until the next spank_setenv */
    const char *node; /* in env */
    uint32_t rank, local_rank, local_size;
    uint32_t rank_offset; /* of its component of a heterogeneous job */
    bool bound;           /* Slurm gave it GPUs of its own */
    bool prints;          /* rank 0: it prints the notes about all tasks */

    size_t nslurm;             /* GPUs in Slurm's list */
    struct dt_devices granted; /* of them, those to be placed, by name */
    bool chosen;               /* the user named these; their order is kept */
    bool stray;                /* the user named GPUs that were not granted */

    dt_topo_t *topo;
    struct dt_error no_topology;   /* why topo only has a count; else "" */
    uint8_t gpu[DT_TOPO_MAX_GPUS]; /* granted name k is topo->gpu[gpu[k]] */

    dt_place_request_t request;
    dt_place_task_t *placed; /* [request.ntasks]; NULL without --dt-gpus */
    uint32_t self;           /* this task's index in placed */
};

/* The GPUs that Slurm names in env. INVALID_ARG: it names none to the tasks. */
dt_result_t dt_task_slurms_gpus(char *const *env, struct dt_devices *devices,
                                struct dt_error *err);

/* Fill in task, whose fields are 0; without --dt-gpus its rank only. bound and
 * local_rank are valid after an error, too. */
dt_result_t dt_task_init(spank_t spank, const struct spank_dt *dt,
                         struct dt_task *task, struct dt_error *err);
void dt_task_fini(struct dt_task *task);

/* Slurm's names of n GPUs of topo, joined by commas. */
void dt_task_names(const struct dt_task *task, const uint8_t *gpu, size_t n,
                   char text[DT_DEVICES_TEXT]);

/* report.c: the table of verbose, and notes, on standard error. */
void dt_task_report(spank_t spank, const struct spank_dt *dt,
                    const struct dt_task *task);

/* apply.c: variables, CPUs, memory. SYSTEM: Slurm refused a variable. */
dt_result_t dt_task_apply(spank_t spank, const struct spank_dt *dt,
                          struct dt_task *task, struct dt_error *err);

#endif
