/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* layout.c - subgroups of a communicator. */
#include "coll/algorithm/layout.h"

#include "../tap.h"

static bool group_is(const struct dt_group *group, size_t index, size_t size,
                     const size_t *ranks)
{
    if (group->size != size || group->index != index)
        return false;
    for (size_t i = 0; i < size; i++)
        if (group->ranks[i] != ranks[i])
            return false;
    return true;
}

static void uneven(void)
{
    /* any numbers may name a node; rank 0 is on the first */
    static const size_t node_of[] = {9, 4, 9, 4, 9, 7};
    struct dt_layout l;
    struct dt_error err;
    if (!ok(dt_layout_init(&l, 3, 6, node_of, &err) == DT_SUCCESS,
            "six ranks on three nodes"))
        return;
    ok(l.nnodes == 3 && l.node == 1, "nodes are numbered by their lowest rank");
    ok(group_is(&l.nodes[0], DT_NOT_A_MEMBER, 3, (size_t[]){0, 2, 4}) &&
           group_is(&l.nodes[1], 1, 2, (size_t[]){1, 3}) &&
           group_is(&l.nodes[2], DT_NOT_A_MEMBER, 1, (size_t[]){5}),
       "NODE of each");
    ok(group_is(&l.leaders, DT_NOT_A_MEMBER, 3, (size_t[]){0, 1, 5}),
       "NODE_LEADERS");
    ok(l.nrails == 1, "as many rails as the smallest node has ranks");
    ok(l.local_of[4] == 2 && l.local_of[5] == 0 && l.node_of[5] == 2,
       "where each rank is");
    dt_layout_fini(&l);
}

static void even(void)
{
    static const size_t node_of[] = {0, 1, 0, 1};
    struct dt_layout l;
    struct dt_error err;
    if (!ok(dt_layout_init(&l, 3, 4, node_of, &err) == DT_SUCCESS,
            "ranks dealt out in turn"))
        return;
    ok(l.nrails == 2 && group_is(&l.nodes[1], 1, 2, (size_t[]){1, 3}),
       "two rails");
    ok(dt_layout_node(&l) == &l.nodes[1], "my node");
    dt_layout_fini(&l);
    dt_layout_fini(&l);
    ok(true, "twice given back is fine");
}

int main(void)
{
    uneven();
    even();
    return tap_done();
}
