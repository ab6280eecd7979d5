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

bool dt_team_next(const struct dt_team *team, const struct dt_cut *cut,
                  int piece, size_t *done, struct dt_read *run, int *parity,
                  int *holder)
{
    int member = dt_redundancy_member(&team->group, cut->stripe, piece);
    int segment =
        dt_redundancy_segment(&team->group, member, cut->stripe, parity);
    if (segment < 0) {
        if (*done == cut->len)
            return false;
        run->file = -1;
        run->offset =
            (size_t)dt_parity_at(&team->parity, *parity, cut->at + *done);
        run->len = cut->len - *done;
        *done = cut->len;
        *parity = member;
        *holder = team->keeper[member];
        return true;
    }
    size_t base = (size_t)segment * team->parity.segment + cut->at;
    size_t at = base + *done;
    if (!dt_span_next(&team->span[member], &at, base + cut->len, run))
        return false;
    *done = at - base;
    *holder = team->source->holder[run->file];
    return true;
}

static bool is_there(const struct dt_team *team, const struct dt_cut *cut,
                     int piece)
{
    struct dt_read run;
    size_t done = 0;
    int parity, holder;
    while (dt_team_next(team, cut, piece, &done, &run, &parity, &holder))
        if (holder < 0)
            return false;
    return true;
}

bool dt_team_cut(const struct dt_team *team, int member, size_t from,
                 size_t end, size_t limit, struct dt_cut *cut)
{
    const struct dt_redundancy_group *group = &team->group;
    size_t segment = team->parity.segment;
    int used = 0;
    cut->at = from % segment;
    cut->stripe = dt_redundancy_stripe(group, member, (int)(from / segment));
    cut->wanted = dt_redundancy_piece(group, member, cut->stripe);
    cut->len = end - from < limit ? end - from : limit;
    if (cut->len > segment - cut->at)
        cut->len = segment - cut->at;
    cut->n = 0;
    for (int piece = 0; piece < group->size; piece++)
        if (!is_there(team, cut, piece))
            cut->lost[cut->n++] = piece;
        else if (used < group->k)
            cut->use[used++] = piece;
    return used == group->k;
}
