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
    size_t from, at,
        end;          /* in the member's span: the file, and how far it is */
    int worker, wave; /* the rank that does it, and when */
    int fd;           /* what the worker writes, or -1 */
};

struct dt_plan {
    struct dt_redundancy scheme;
    int teams, jobs, waves;
    struct dt_team *team; /* those that lost something */
    struct dt_job *job;
    int *fd;      /* [num_nodes]: parity that this rank has open, or -1 */
    size_t block; /* of a piece at a time */
    size_t room;  /* the most that this rank sends in one round, bytes */
};

/* Make it, for the files that have no holder. Parity that anybody needs is read
 * to see that it is whole. Collective over the world; one result for all; the
 * plan is to be cleared in any case. CORRUPT lists what is missing if more is
 * lost than can be brought back; NO_MEMORY, those of the collectives. */
dt_result_t dt_plan_make(struct dt_plan *plan, struct dt_ckpt *ckpt,
                         const struct dt_source *source, struct dt_error *err);
void dt_plan_clear(struct dt_plan *plan, const struct dt_source *source);

#endif
