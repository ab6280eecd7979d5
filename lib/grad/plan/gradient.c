/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gradient.c - one tensor of a plan. */
#include "grad/plan/gradient.h"

#include <string.h>

#include "grad/convert.h"
#include "grad/item.h"
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

/* ---- blocks of what goes as I8 ---- */

struct dt_int8_block dt_gradient_block(const struct dt_gradient *g, size_t b)
{
    size_t first = b * DT_INT8_BLOCK, left = g->count - first;
    const struct dt_item_type *type = &g->item.type;
    return (struct dt_int8_block){
        .src = (const char *)g->item.in + first * type->element,
        .dtype = (dt_dtype_t)type->dtype,
        .n = left < DT_INT8_BLOCK ? left : DT_INT8_BLOCK,
        .factor = type->prescale,
        .residual = g->residual + first,
    };
}

/* It does not depend on the plan, so that a step has the same bits with it and
 * without. */
int dt_gradient_owner(const struct dt_gradient *g, size_t b)
{
    size_t n = (size_t)g->plan->set->n;
    return (int)((dt_grad_hash(0, g->work.name) + b) % n);
}

void dt_gradient_end_block(struct dt_gradient *g, size_t b,
                           const unsigned char *mine, const unsigned char *sum,
                           const float *error)
{
    const struct dt_item_type *type = &g->item.type;
    struct dt_int8_block block = dt_gradient_block(g, b);
    float v[DT_INT8_BLOCK];
    dt_int8_keep(&block, mine);
    for (size_t i = 0; error && i < block.n; i++)
        block.residual[i] += error[i];
    /* it has overflowed: what remains of such numbers would spoil later steps
     */
    if (dt_int8_is_nan(sum))
        memset(block.residual, 0, block.n * sizeof(*block.residual));
    dt_int8_decode(v, sum);
    dt_convert_out((char *)g->item.out + b * DT_INT8_BLOCK * type->element,
                   block.dtype, v, DT_DTYPE_F32, block.n, type->postscale,
                   type->op == DT_OP_AVG ? (size_t)g->plan->set->n : 1);
}

size_t dt_gradient_bytes(const struct dt_item_type *type)
{
    return dt_int8_blocks(dt_item_count(type)) * DT_INT8_RECORD;
}

void dt_gradient_pack(const struct dt_gradient *g, unsigned char *mine)
{
    for (size_t b = 0; b < dt_int8_blocks(g->count); b++) {
        struct dt_int8_block block = dt_gradient_block(g, b);
        dt_int8_encode(mine + b * DT_INT8_RECORD, &block);
    }
}

void dt_gradient_unpack(struct dt_gradient *g, const unsigned char *all)
{
    const struct dt_grad_set *set = g->plan->set;
    size_t bytes = dt_gradient_bytes(&g->item.type);
    for (size_t b = 0; b < dt_int8_blocks(g->count); b++) {
        const unsigned char *records = all + b * DT_INT8_RECORD;
        unsigned char sum[DT_INT8_RECORD];
        float error[DT_INT8_BLOCK];
        bool owned = dt_gradient_owner(g, b) == set->me;
        dt_int8_reduce(sum, error, records, bytes, set->n);
        dt_gradient_end_block(g, b, records + (size_t)set->me * bytes, sum,
                              owned ? error : NULL);
    }
}

/* ---- ends ---- */

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
