/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* plan.h - who brings back what. Every rank makes the same plan from what all
 * know. */
#ifndef DT_CKPT_PLAN_H
#define DT_CKPT_PLAN_H

#include "ckpt/ckpt.h"
#include "ckpt/team.h"

struct dt_job {
    int team, member, file;
    size_t from, end;         /* the file in the member's span */
    int worker, lane;         /* the rank that makes it, and beside what */
    int fd;                   /* what the worker writes, or -1 */
    struct dt_verify *verify; /* and its sums */
};

/* The jobs of a lane are done one behind the other, those of different lanes
 * together. */
struct dt_plan {
    struct dt_redundancy scheme;
    int teams, jobs, lanes;
    struct dt_team *team; /* those that lost something */
    struct dt_job *job;   /* by team */
    int *fd;      /* [num_nodes]: parity that this rank has open, or -1 */
    size_t chunk; /* bytes of a job at a time */
};

/* Make it, for the files that have no holder. check: parity is used only if it
 * is what its sums say. Collective over the world; one result for all; the plan
 * is to be cleared in any case. CORRUPT lists what is missing if more is lost
 * than can be brought back; NO_MEMORY, those of the collectives. */
dt_result_t dt_plan_make(struct dt_plan *plan, struct dt_ckpt *ckpt,
                         const struct dt_source *source, bool check,
                         struct dt_error *err);
void dt_plan_clear(struct dt_plan *plan, const struct dt_source *source);

#endif
