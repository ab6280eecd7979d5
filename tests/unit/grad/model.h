/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* model.h - the gradients of a pretended model, and steps of a plan with them
 * whose sums are known. */
#ifndef GRAD_TESTS_MODEL_H
#define GRAD_TESTS_MODEL_H

#include "grad.h"

enum { MOST_TENSORS = 48 };

struct tensor {
    dt_dtype_t dtype, wire;
    int op;
    double prescale, postscale;
    int64_t count;
    bool absent; /* from the next steps, on all ranks */
    int id;
    char *in, *out;
};

struct model {
    const char *name;
    dt_grad_t grad;
    const struct set *set;
    dt_grad_plan_t plan;
    int n;
    struct tensor tensors[MOST_TENSORS];
    unsigned step;  /* other steps, other numbers */
    uint64_t order; /* of submission, on this rank */
    int joined;     /* the set's last ranks, so many, add zeros */
};

/* n tensors of mixed sizes and types; the plan is created. */
void model_create(struct model *model, const char *name, dt_grad_t grad,
                  const struct set *set, int n, uint64_t order);
void model_destroy(struct model *model);

/* Name tensor k to the plan, as it now is. */
void model_name(struct model *model, int k);

/* Its memory, after count was changed. */
void model_allocate(struct model *model, int k);

/* Write this step's numbers into all tensors. */
void model_fill(struct model *model);

dt_result_t model_submit(struct model *model, int k);

/* The gradients of the step are there, and right. */
void model_verify(struct model *model);

/* All of it, in an order of this rank's own. */
void model_step(struct model *model);

/* As the program has them, and after compression. */
size_t model_bytes(const struct model *model);
size_t model_wire_bytes(const struct model *model);

/* Of this rank, now. */
dt_grad_stats_t stats_of(dt_grad_t grad);

#endif
