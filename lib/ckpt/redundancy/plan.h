/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* plan.h - which rank rebuilds which lost file. Every rank makes the same plan,
 * from what all ranks know. */
#ifndef DT_CKPT_REDUNDANCY_PLAN_H
#define DT_CKPT_REDUNDANCY_PLAN_H

#include "ckpt/handle.h"
#include "ckpt/source.h"

/* A file to rebuild. */
struct dt_rebuild_item {
    int set, member, file;
    size_t from, end;         /* the file in the member's span */
    int worker;               /* the rank that writes it */
    int queue;                /* in which it waits for its turn */
    int fd;                   /* the worker's file, or -1 */
    struct dt_verify *verify; /* the worker's checksums of it */
};

/* The items of a queue are rebuilt one after the other, those of different
 * queues at the same time. */
struct dt_plan {
    struct dt_erasure scheme;
    int sets, items, queues;
    struct dt_redundancy_set *set; /* those that have lost files */
    struct dt_rebuild_item *item;  /* by set */
    int *fd;      /* [num_nodes] parity files that this rank has open, or -1 */
    size_t chunk; /* bytes of an item at a time */
};

/* Plan the files that have no holder. With check, a parity file is used only if
 * its checksums are right. Collective over the world, with one result for all
 * ranks; dt_plan_clear must follow in any case. CORRUPT lists what is missing
 * if it cannot be rebuilt; NO_MEMORY, those of the collectives. */
dt_result_t dt_plan_make(struct dt_plan *plan, struct dt_ckpt *ckpt,
                         const struct dt_source *source, bool check,
                         struct dt_error *err);
void dt_plan_clear(struct dt_plan *plan, const struct dt_source *source);

#endif
