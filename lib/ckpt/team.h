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

/* A range of one stripe, and how its pieces are to be had. */
struct dt_cut {
    int stripe, wanted; /* the piece to make */
    size_t at, len;     /* in each piece */
    int use[255];       /* k pieces that are there, rising */
    int lost[255], n;   /* those that are not, rising */
};

/* The first of the bytes from .. end-1 of the member's files, at most limit of
 * them. False if too many pieces of it are lost. */
bool dt_team_cut(const struct dt_team *team, int member, size_t from,
                 size_t end, size_t limit, struct dt_cut *cut);

/* Where the bytes *done .. cut->len-1 of a piece begin: holder has run->len of
 * them at run->offset of run->file or, if that is -1, of the parity of the
 * member *parity. *done moves behind them; false: the rest is zero. */
bool dt_team_next(const struct dt_team *team, const struct dt_cut *cut,
                  int piece, size_t *done, struct dt_read *run, int *parity,
                  int *holder);

#endif
