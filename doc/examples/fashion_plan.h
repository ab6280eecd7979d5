/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fashion_plan.h - the gradients are summed while others are still computed, by
 * the gradient engine of libdt (dt_grad.h). */
#ifndef FASHION_PLAN_H
#define FASHION_PLAN_H

#include "fashion_net.h"

#include <dt_grad.h>

struct plan {
    dt_grad_t engine; /* NULL: none is open */
    dt_grad_plan_t plan;
    dt_result_t failed; /* the first error of a tensor of this step */
    struct {
        int id;
        float *data;
    } tensors[NET_TENSORS + 1]; /* the loss is the last one */
};

/* Open the engine, and name it all tensors of grad[nparams + 1]. Collective.
 * From then on net tells it of each tensor that is computed. */
dt_result_t plan_open(struct plan *plan, struct net *net, float *grad);

/* The loss is there, too: wait until all sums are in grad. */
dt_result_t plan_step(struct plan *plan);

/* Collective; nothing if none is open. */
void plan_close(struct plan *plan);

#endif
