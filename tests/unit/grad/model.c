/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* model.c - the gradients of a pretended model: numbers that are exact in each
 * type, whose sums and averages are, too. */
#include "memory.h"
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t counts[] = {1, 64, 1000, 3, 9000, 257, 0, 5000, 33};
static const dt_dtype_t types[] = {DT_DTYPE_F32, DT_DTYPE_F32,  DT_DTYPE_F16,
                                   DT_DTYPE_F32, DT_DTYPE_BF16, DT_DTYPE_I32,
                                   DT_DTYPE_F64, DT_DTYPE_F32,  DT_DTYPE_I64};

static size_t bytes_of(const struct tensor *tensor)
{
    return (size_t)tensor->count * dt_dtype_size(tensor->dtype);
}

static bool is_float(dt_dtype_t dtype)
{
    return dtype != DT_DTYPE_I32 && dtype != DT_DTYPE_I64;
}

static void release(struct tensor *tensor)
{
    if (tensor->out != tensor->in)
        memory_put(tensor->out);
    memory_put(tensor->in);
}

void model_allocate(struct model *model, int k)
{
    struct tensor *tensor = &model->tensors[k];
    size_t len = bytes_of(tensor) + 1;
    release(tensor);
    tensor->in = memory_get(len);
    tensor->out = k % 2 ? tensor->in : memory_get(len);
}

static void choose(struct tensor *tensor, int k)
{
    size_t n = sizeof(counts) / sizeof(counts[0]);
    *tensor = (struct tensor){.count = counts[(size_t)k * 5 % n],
                              .dtype = types[(size_t)k % n],
                              .op = k % 3 ? DT_OP_SUM : DT_OP_AVG,
                              .prescale = 1,
                              .postscale = 1};
    tensor->wire = tensor->dtype;
    if (k % 9 == 3)
        tensor->wire = k % 2 ? DT_DTYPE_F16 : DT_DTYPE_BF16;
    if (is_float(tensor->dtype) && k % 4 == 1) {
        tensor->prescale = 0.5;
        tensor->postscale = 4;
    }
}

void model_name(struct model *model, int k)
{
    struct tensor *tensor = &model->tensors[k];
    char name[64];
    dt_grad_op_t op =
        op_of(DT_GRAD_ALLREDUCE, tensor->dtype, 1, &tensor->count, NULL, NULL);
    int id = -1;
    snprintf(name, sizeof(name), "%s.%d.weight", model->name, k);
    op.wire = tensor->wire;
    op.op = tensor->op;
    op.prescale = tensor->prescale;
    op.postscale = tensor->postscale;
    expect(dt_grad_plan_tensor(model->plan, name, &op, &id) == DT_SUCCESS,
           "name %s", name);
    expect(id == k, "%s is number %d", name, id);
    tensor->id = id;
}

void model_create(struct model *model, const char *name, dt_grad_t grad,
                  const struct set *set, int n, uint64_t order)
{
    *model = (struct model){
        .name = name, .grad = grad, .set = set, .n = n, .order = order};
    dt_result_t rc = dt_grad_plan_create(grad, set->id, &model->plan);
    expect(rc == DT_SUCCESS, "create plan %s: %s", name, dt_strerror(rc));
    for (int k = 0; k < n; k++) {
        choose(&model->tensors[k], k);
        model_allocate(model, k);
        model_name(model, k);
    }
}

void model_destroy(struct model *model)
{
    expect(dt_grad_plan_destroy(model->plan) == DT_SUCCESS, "destroy plan %s",
           model->name);
    for (int k = 0; k < model->n; k++)
        release(&model->tensors[k]);
}

size_t model_bytes(const struct model *model)
{
    size_t sum = 0;
    for (int k = 0; k < model->n; k++)
        sum += bytes_of(&model->tensors[k]);
    return sum;
}

size_t model_wire_bytes(const struct model *model)
{
    size_t sum = 0;
    for (int k = 0; k < model->n; k++)
        sum += (size_t)model->tensors[k].count *
               dt_dtype_size(model->tensors[k].wire);
    return sum;
}

/* ---- numbers ---- */

/* What a member gives; a multiple of the number of ranks where that divides. */
static double given(const struct model *model, int k, int member, size_t i)
{
    const struct tensor *tensor = &model->tensors[k];
    double value = value_of(tensor->wire, DT_OP_SUM, member,
                            i + 13 * model->step + 7 * (unsigned)k);
    return tensor->op == DT_OP_AVG ? value * model->set->n : value;
}

static double wanted(const struct model *model, int k, size_t i)
{
    const struct tensor *tensor = &model->tensors[k];
    double sum = 0;
    for (int m = 0; m < model->set->n - model->joined; m++)
        sum += given(model, k, m, i) * tensor->prescale;
    if (tensor->op == DT_OP_AVG)
        sum /= model->set->n;
    return sum * tensor->postscale;
}

void model_fill(struct model *model)
{
    model->step++;
    for (int k = 0; k < model->n; k++) {
        struct tensor *tensor = &model->tensors[k];
        memset(tensor->out, 0x5a, bytes_of(tensor));
        for (size_t i = 0; i < (size_t)tensor->count; i++)
            value_put(tensor->in, i, tensor->dtype,
                      given(model, k, model->set->me, i));
    }
}

static void verify_tensor(struct model *model, int k)
{
    const struct tensor *tensor = &model->tensors[k];
    size_t elem = dt_dtype_size(tensor->dtype);
    char right[8];
    for (size_t i = 0; i < (size_t)tensor->count; i++) {
        value_put(right, 0, tensor->dtype, wanted(model, k, i));
        if (!memcmp(right, tensor->out + i * elem, elem))
            continue;
        expect(false,
               "%s step %u: element %zu of %lld of tensor %d, type %d wire %d "
               "op %d factors %g %g",
               model->name, model->step, i, (long long)tensor->count, k,
               (int)tensor->dtype, (int)tensor->wire, tensor->op,
               tensor->prescale, tensor->postscale);
        return;
    }
}

void model_verify(struct model *model)
{
    for (int k = 0; k < model->n; k++)
        if (!model->tensors[k].absent)
            verify_tensor(model, k);
}

/* ---- steps ---- */

dt_result_t model_submit(struct model *model, int k)
{
    const struct tensor *tensor = &model->tensors[k];
    return dt_grad_plan_submit_on(model->plan, tensor->id, tensor->in,
                                  tensor->out, memory_stream());
}

void model_step(struct model *model)
{
    int order[MOST_TENSORS];
    draw_order(&model->order, order, model->n);
    model_fill(model);
    for (int i = 0; i < model->n; i++)
        if (!model->tensors[order[i]].absent)
            expect(model_submit(model, order[i]) == DT_SUCCESS,
                   "%s step %u: submit %d", model->name, model->step, order[i]);
    dt_result_t rc = dt_grad_plan_step(model->plan, -1);
    expect(rc == DT_SUCCESS, "%s step %u: %s", model->name, model->step,
           dt_strerror(rc));
    if (rc == DT_SUCCESS)
        model_verify(model);
}

dt_grad_stats_t stats_of(dt_grad_t grad)
{
    dt_grad_stats_t stats = {0};
    expect(dt_grad_stats(grad, &stats) == DT_SUCCESS, "stats");
    return stats;
}
