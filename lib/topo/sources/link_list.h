/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* link_list.h - NVLinks and XGMI links as a source lists them, GPU by GPU,
 * summed up between pairs of GPUs. Pure. */
#ifndef DT_TOPO_LINK_LIST_H
#define DT_TOPO_LINK_LIST_H

#include "topo/model/model.h"

#define DT_LINK_MAX (72 * DT_TOPO_MAX_GPUS)

struct dt_link {
    uint8_t gpu;    /* it begins at; index into topo->gpu */
    bool to_switch; /* it ends at a switch, if at no GPU */
    uint16_t count;
    char target[32]; /* bus id of the other end, or what stands for it */
};

struct dt_link_list {
    size_t n;
    struct dt_link link[DT_LINK_MAX];
};

/* Append count links of a GPU to target, a bus id in any spelling or another
 * text. false: the list is full. */
bool dt_link_add(struct dt_link_list *list, uint8_t gpu, const char *target,
                 uint16_t count, bool to_switch);

/* Fill topo->links and the nvswitch fields, before dt_topo_normalize(). Two
 * GPUs reach each other over a switch with as many links as the one with fewer
 * has to it. Links to what is neither a GPU of topo nor a switch do not count.
 */
void dt_link_apply(const struct dt_link_list *list, dt_topo_t *topo);

#endif
