/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* grant.h - from Slurm's names for granted GPUs and CPUs to those of the
 * topology. Pure. */
#ifndef DT_SPANK_GRANT_H
#define DT_SPANK_GRANT_H

#include "placement/devices.h"

/* Find granted GPU k in topo as gpu[k]: a UUID as it is; a number as that of a
 * device file, where topo knows any, else as a place. Where a cgroup hides
 * GPUs, Slurm numbers the others from 0: opens has a bit for each GPU of topo
 * that this process can open, all of them if that is not known. NOT_FOUND: topo
 * does not fit the names. */
dt_result_t dt_grant_gpus(const dt_topo_t *topo,
                          const struct dt_devices *granted, uint64_t opens,
                          uint8_t gpu[DT_TOPO_MAX_GPUS], struct dt_error *err);

/* Find the names of a user among those granted: index[k] is the place of
 * name k. false if one of them is not there, or is there twice. */
bool dt_grant_find(const struct dt_devices *granted,
                   const struct dt_devices *user,
                   uint8_t index[DT_TOPO_MAX_GPUS]);

/* true if srun's CUDA_VISIBLE_DEVICES was set by Slurm, for the script or the
 * step in which srun runs, and not by the user: equal to a list that Slurm set
 * beside it (SLURM_STEP_GPUS, SLURM_JOB_GPUS; NULL if unset), or as many,
 * numbered from 0 or by UUID. */
bool dt_grant_is_slurms(const char *visible, const char *step_gpus,
                        const char *job_gpus);

/* The CPUs of a task, as Slurm and the kernel have set them. */
struct dt_grant_cpus {
    dt_cpuset_t current; /* where it may run now */
    const char
        *bind_type; /* SLURM_CPU_BIND_TYPE and _LIST of the task, which */
    const char *bind_list; /* task/affinity sets; NULL if unset */
    const char *cores;     /* of the step by Slurm's own numbers, may be NULL */
};

/* The CPUs granted to the tasks of the step on this node, never empty unless
 * current is. In this order:
 *   masks that task/affinity has given to the tasks    all of them together
 *   current leaves CPUs of topo out: a cgroup          current
 *   Slurm's cores are some of topo's                   their CPUs in current
 *   else                                               current */
void dt_grant_cpus(const dt_topo_t *topo, const struct dt_grant_cpus *known,
                   dt_cpuset_t *cpus);

#endif
