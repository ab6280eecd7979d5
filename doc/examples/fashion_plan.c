/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fashion_plan.c - a plan of the gradient engine: its tensors are named once,
 * submitted in each step as they are computed, and summed in buckets. */
#include "fashion_plan.h"

static void submit(struct plan *plan, size_t i)
{
    float *data = plan->tensors[i].data;
    dt_result_t rc =
        dt_grad_plan_submit(plan->plan, plan->tensors[i].id, data, data);
    if (!plan->failed)
        plan->failed = rc;
}

/* Called by the net, in the order of backpropagation. */
static void computed(void *arg, size_t i)
{
    submit(arg, i);
}

static dt_result_t name(struct plan *plan, size_t i,
                        const struct net_tensor *tensor)
{
    const dt_grad_op_t op = {.kind = DT_GRAD_ALLREDUCE,
                             .dtype = DT_DTYPE_F32,
                             .wire = DT_DTYPE_F32,
                             .op = DT_OP_SUM,
                             .ndim = tensor->ndim,
                             .shape = tensor->shape,
                             .prescale = 1,
                             .postscale = 1};
    plan->tensors[i].data = tensor->data;
    return dt_grad_plan_tensor(plan->plan, tensor->name, &op,
                               &plan->tensors[i].id);
}

dt_result_t plan_open(struct plan *plan, struct net *net, float *grad)
{
    struct net_tensor tensors[NET_TENSORS + 1];
    net_tensors(net, grad, tensors);
    tensors[NET_TENSORS] =
        (struct net_tensor){"loss", grad + net->nparams, 0, {0}};
    dt_result_t rc = dt_grad_open(NULL, &plan->engine);
    if (!rc)
        rc = dt_grad_plan_create(plan->engine, DT_GRAD_WORLD, &plan->plan);
    for (size_t i = 0; i <= NET_TENSORS && !rc; i++)
        rc = name(plan, i, &tensors[i]);
    net->computed = computed;
    net->computed_arg = plan;
    return rc;
}

dt_result_t plan_step(struct plan *plan)
{
    submit(plan, NET_TENSORS);
    dt_result_t rc = plan->failed;
    return rc ? rc : dt_grad_plan_step(plan->plan, -1);
}

void plan_close(struct plan *plan)
{
    dt_grad_close(plan->engine); /* and the plan with it */
    *plan = (struct plan){0};
}
