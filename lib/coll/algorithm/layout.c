/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* layout.c - subgroups, derived by every rank alike. */
#include "coll/algorithm/layout.h"

#include <stdlib.h>
#include <string.h>

static bool group_alloc(struct dt_group *group, size_t room)
{
    *group = (struct dt_group){.index = DT_NOT_A_MEMBER};
    group->ranks = calloc(room ? room : 1, sizeof(*group->ranks));
    return group->ranks;
}

static void group_add(struct dt_group *group, size_t rank, size_t self)
{
    if (rank == self)
        group->index = group->size;
    group->ranks[group->size++] = rank;
}

/* Sorts (node, rank) pairs, so that equal nodes are neighbours. */
struct where {
    size_t node, rank;
};

static int by_node(const void *a, const void *b)
{
    const struct where *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return x->rank < y->rank ? -1 : 1;
}

/* Number the nodes by their lowest rank; sets node_of and nnodes. */
static bool number_nodes(struct dt_layout *layout, const size_t *given)
{
    struct where *all = calloc(layout->size, sizeof(*all));
    size_t *lowest = layout->local_of; /* not in use yet */
    if (!all)
        return false;
    for (size_t r = 0; r < layout->size; r++)
        all[r] = (struct where){given[r], r};
    qsort(all, layout->size, sizeof(*all), by_node);
    for (size_t i = 0, first = 0; i < layout->size; i++) {
        if (i && all[i].node != all[i - 1].node)
            first = i;
        lowest[all[i].rank] = all[first].rank;
    }
    for (size_t r = 0; r < layout->size; r++)
        layout->node_of[r] =
            lowest[r] == r ? layout->nnodes++ : layout->node_of[lowest[r]];
    free(all);
    return true;
}

/* NODE of every node. */
static bool find_nodes(struct dt_layout *layout)
{
    layout->nodes = calloc(layout->nnodes, sizeof(*layout->nodes));
    if (!layout->nodes)
        return false;
    for (size_t r = 0; r < layout->size; r++)
        layout->nodes[layout->node_of[r]].size++;
    layout->nrails = layout->size;
    for (size_t n = 0; n < layout->nnodes; n++) {
        size_t size = layout->nodes[n].size;
        if (!group_alloc(&layout->nodes[n], size))
            return false;
        if (size < layout->nrails)
            layout->nrails = size;
    }
    for (size_t r = 0; r < layout->size; r++) {
        struct dt_group *node = &layout->nodes[layout->node_of[r]];
        layout->local_of[r] = node->size;
        group_add(node, r, layout->rank);
    }
    return true;
}

/* NODE_LEADERS picks from the nodes. */
static bool find_leaders(struct dt_layout *layout)
{
    if (!group_alloc(&layout->leaders, layout->nnodes))
        return false;
    for (size_t n = 0; n < layout->nnodes; n++)
        group_add(&layout->leaders, layout->nodes[n].ranks[0], layout->rank);
    return true;
}

dt_result_t dt_layout_init(struct dt_layout *layout, size_t rank, size_t size,
                           const size_t *node_of, struct dt_error *err)
{
    *layout = (struct dt_layout){.rank = rank, .size = size};
    layout->node_of = calloc(size, sizeof(*layout->node_of));
    layout->local_of = calloc(size, sizeof(*layout->local_of));
    if (!layout->node_of || !layout->local_of ||
        !number_nodes(layout, node_of) || !find_nodes(layout))
        goto fini;
    layout->node = layout->node_of[rank];
    if (find_leaders(layout))
        return DT_SUCCESS;

fini:
    dt_layout_fini(layout);
    return dt_error_set(err, DT_ERR_NO_MEMORY,
                        "no memory for a communicator of %zu ranks", size);
}

void dt_layout_fini(struct dt_layout *layout)
{
    for (size_t n = 0; layout->nodes && n < layout->nnodes; n++)
        free(layout->nodes[n].ranks);
    free(layout->nodes);
    free(layout->leaders.ranks);
    free(layout->node_of);
    free(layout->local_of);
    memset(layout, 0, sizeof(*layout));
}
