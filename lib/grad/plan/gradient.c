/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gradient.c - one tensor of a plan. */
#include "grad/plan/gradient.h"

#include "grad/work.h"

void dt_gradient_end(struct dt_gradient *g, dt_result_t code,
                     const struct dt_error *err)
{
    struct dt_grad_plan *plan = g->plan;
    g->result = code;
    if (code != DT_SUCCESS) {
        g->err = *err;
        pthread_mutex_lock(&plan->grad->submit);
        if (plan->code == DT_SUCCESS) {
            plan->code = code;
            plan->err = *err;
        }
        pthread_mutex_unlock(&plan->grad->submit);
    }
    atomic_store(&g->state, DT_GRADIENT_IDLE);
    atomic_fetch_sub(&plan->open, 1);
}

void dt_gradient_negotiate(struct dt_gradient *g)
{
    g->work.left = 1;
    atomic_store(&g->work.status, DT_IN_PROGRESS);
    atomic_store(&g->state, DT_GRADIENT_NEGOTIATED);
    dt_work_tell(&g->work);
}

struct dt_gradient *dt_gradient_of(struct dt_grad_work *work)
{
    return (struct dt_gradient *)((char *)work -
                                  offsetof(struct dt_gradient, work));
}

void dt_gradient_work_end(struct dt_grad_work *work)
{
    dt_gradient_end(dt_gradient_of(work), atomic_load(&work->status),
                    &work->err);
}
