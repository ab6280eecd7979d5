/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* score.c - which sets of GPUs are better than others. */
#include "topo/model/score.h"

#include "place-machines.h"
#include "../tap.h"

static void test_scores(void)
{
    dt_topo_t *topo = dgx1();
    dt_place_score_t a = dt_place_score(topo, (uint8_t[]){3, 0}, 2);
    dt_place_score_t b = dt_place_score(topo, (uint8_t[]){0, 1, 4}, 3);
    ok(a.links == 2 && a.pci == DT_PATH_NODE && a.numas == 1, "a pair's score");
    ok(b.links == 3 && b.numas == 2 &&
           b.pci == DT_PATH_NODE + 2 * (uint32_t)DT_PATH_SYS,
       "a three's score");
    ok(dt_place_compare(&a, &b) < 0 && dt_place_compare(&b, &a) > 0 &&
           dt_place_compare(&a, &a) == 0,
       "more links win");
    dt_place_score_t c = a;
    c.pci++;
    ok(dt_place_compare(&c, &a) < 0, "then shorter paths");
    c = a;
    c.numas++;
    ok(dt_place_compare(&c, &a) < 0 && dt_place_compare(&a, &c) > 0,
       "then fewer NUMA nodes");
    path(topo, 0, 4, DT_PATH_UNKNOWN);
    c = dt_place_score(topo, (uint8_t[]){0, 1, 4}, 3);
    ok(dt_place_compare(&b, &c) == 0, "an unknown path counts as SYS");
    c = dt_place_score(topo, NULL, 0);
    ok(!c.links && !c.pci && !c.numas, "an empty set");
    dt_topo_destroy(topo);
}

int main(void)
{
    test_scores();
    return tap_done();
}
