/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* team.c - the nodes that protected each other, and who has what of them. */
#include "ckpt/team.h"

#include <stdlib.h>

dt_result_t dt_team_init(struct dt_team *team, const struct dt_source *source,
                         const struct dt_redundancy *scheme, int node,
                         struct dt_error *err)
{
    struct dt_team t = {.source = source};
    const struct dt_manifest *manifest = &source->manifest;
    size_t longest = 0;
    if (dt_redundancy_group(scheme, manifest->num_nodes, node, &t.group, err) !=
        DT_SUCCESS)
        return DT_ERR_CORRUPT;
    t.span = calloc((size_t)t.group.size, sizeof(*t.span));
    t.keeper = calloc((size_t)t.group.size, sizeof(*t.keeper));
    dt_result_t rc = t.span && t.keeper
                         ? DT_SUCCESS
                         : dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
    for (int i = 0; i < t.group.size && rc == DT_SUCCESS; i++) {
        t.keeper[i] = -1;
        rc = dt_span_init(&t.span[i], manifest, t.group.first + i, err);
        if (t.span[i].bytes > longest)
            longest = t.span[i].bytes;
    }
    if (rc != DT_SUCCESS) {
        dt_team_clear(&t);
        return rc;
    }
    dt_parity_init(&t.parity, manifest->tag, manifest->num_nodes, -1, &t.group,
                   longest);
    *team = t;
    return rc;
}

void dt_team_clear(struct dt_team *team)
{
    for (int i = 0; team->span && i < team->group.size; i++)
        dt_span_clear(&team->span[i]);
    free(team->span);
    free(team->keeper);
    *team = (struct dt_team){0};
}

/* One piece of a stripe, from byte `at` of it: false if it is lost. *len is how
 * much of it is asked for, and then how much lies in one place. */
static bool find_piece(const struct dt_team *team, int stripe, size_t at,
                       struct dt_cut_piece *piece, size_t *len)
{
    struct dt_read run;
    int parity;
    int member = dt_redundancy_member(&team->group, stripe, piece->number);
    int segment = dt_redundancy_segment(&team->group, member, stripe, &parity);
    piece->holder = piece->file = -1;
    if (segment < 0) {
        piece->node = team->group.first + member;
        piece->offset = (size_t)dt_parity_at(&team->parity, parity, at);
        piece->holder = team->keeper[member];
        return piece->holder >= 0;
    }
    at += (size_t)segment * team->parity.segment;
    if (!dt_span_next(&team->span[member], &at, at + *len, &run))
        return true; /* zeros, behind the last file of the node */
    piece->file = run.file;
    piece->offset = run.offset;
    piece->holder = team->source->holder[run.file];
    if (piece->holder < 0)
        return false;
    *len = run.len;
    return true;
}

bool dt_team_cut(const struct dt_team *team, int member, size_t from,
                 size_t end, size_t limit, struct dt_cut *cut)
{
    const struct dt_redundancy_group *group = &team->group;
    size_t segment = team->parity.segment, at = from % segment;
    int stripe = dt_redundancy_stripe(group, member, (int)(from / segment));
    int used = 0;
    cut->wanted = dt_redundancy_piece(group, member, stripe);
    cut->len = end - from < limit ? end - from : limit;
    if (cut->len > segment - at)
        cut->len = segment - at;
    for (int i = 0; i < group->size && used < group->k; i++) {
        cut->use[used].number = i;
        used += i != cut->wanted &&
                find_piece(team, stripe, at, &cut->use[used], &cut->len);
    }
    return used == group->k;
}

dt_result_t dt_team_row(const struct dt_team *team, const struct dt_cut *cut,
                        unsigned char *row, struct dt_error *err)
{
    int have[255];
    for (int i = 0; i < team->group.k; i++)
        have[i] = cut->use[i].number;
    return dt_redundancy_row(team->group.k, team->group.m, have, cut->wanted,
                             row, err);
}
