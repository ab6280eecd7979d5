/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* team.h - the nodes that protected each other when a checkpoint was saved, and
 * who has what of them now. */
#ifndef DT_CKPT_TEAM_H
#define DT_CKPT_TEAM_H

#include "ckpt/parity.h"
#include "ckpt/span.h"

struct dt_team {
    const struct dt_source *source;
    struct dt_redundancy_group group;
    struct dt_parity parity; /* its node is to be set */
    struct dt_span *span;    /* [group.size] */
    int32_t *keeper;         /* [group.size] a rank with that node's parity, or
                              * -1 */
};

/* The group of node when source was saved; nobody has parity yet. CORRUPT if
 * there is none such, NO_MEMORY. */
dt_result_t dt_team_init(struct dt_team *team, const struct dt_source *source,
                         const struct dt_redundancy *scheme, int node,
                         struct dt_error *err);
void dt_team_clear(struct dt_team *team);

/* A range of one stripe in which each piece lies in one place. */
struct dt_cut {
    int wanted; /* the piece to make */
    size_t len; /* bytes of each piece */
    struct dt_cut_piece {
        int number, holder; /* the rank that has it; -1: it is all zero */
        int file, node;     /* of that file or, if -1, of that node's parity */
        size_t offset;      /* and there */
    } use[255];             /* k of those that are there, rising */
};

/* The first of the bytes from .. end-1 of the member's files, at most limit of
 * them. False if too many pieces of it are lost. */
bool dt_team_cut(const struct dt_team *team, int member, size_t from,
                 size_t end, size_t limit, struct dt_cut *cut);

/* row[k]: the wanted piece is the sum of row[i] * use[i]. Errors as
 * dt_redundancy_row. */
dt_result_t dt_team_row(const struct dt_team *team, const struct dt_cut *cut,
                        unsigned char *row, struct dt_error *err);

#endif
