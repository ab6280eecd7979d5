/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gpu-model.c - the tensors of ckpt-gpu. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

enum where { HOST, PINNED, MANAGED, GPU, OTHER_GPU };
enum cut { WHOLE, ROWS, COLUMNS, OWN };

static struct tensor {
    const char *name;
    enum where where;
    enum cut cut;
    dt_dtype_t dtype;
    int64_t shape[2];
    int64_t at[2], extent[2]; /* this rank's part */
    size_t bytes;             /* of that */
    char *data;
} tensor[TENSORS] = {
    {"host", HOST, WHOLE, DT_DTYPE_F32, {10, 100}},
    {"weight", GPU, WHOLE, DT_DTYPE_F32, {123457, 1}},
    {"managed", MANAGED, WHOLE, DT_DTYPE_BF16, {5001, 1}},
    {"rows", GPU, ROWS, DT_DTYPE_F32, {240, 18000}}, /* several blocks */
    {"columns", GPU, COLUMNS, DT_DTYPE_U8, {100, 240}},
    {"pinned", PINNED, ROWS, DT_DTYPE_I64, {240, 3}},
    {"other", OTHER_GPU, ROWS, DT_DTYPE_F64, {240, 11}},
    {"movable", MANAGED, COLUMNS, DT_DTYPE_F16, {7, 240}},
    {"own", GPU, OWN, DT_DTYPE_U8, {777, 1}},
};
static size_t first, end; /* those that this run has */
static struct dt_cu_context *context[2];

dt_stream_t user_stream;

void need(bool good, const char *fmt, ...)
{
    va_list ap;
    if (good)
        return;
    fprintf(stderr, "rank %d: ", dt_rank());
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, " (%s)\n", dt_last_error());
    exit(1);
}

/* ---- memory ---- */

static char *allocate(enum where where, size_t bytes)
{
    dt_cu_ptr ptr = 0;
    void *host = NULL;
    int code = 0;
    cuCtxSetCurrent(context[where == OTHER_GPU]);
    if (where == HOST)
        host = malloc(bytes);
    else if (where == PINNED)
        code = cuMemHostAlloc(&host, bytes, 1);
    else if (where == MANAGED)
        code = cuMemAllocManaged(&ptr, bytes, 1);
    else
        code = cuMemAlloc_v2(&ptr, bytes);
    cuCtxSetCurrent(context[0]);
    need(!code && (host || ptr), "no memory: %d", code);
    return host ? host : (char *)(uintptr_t)ptr;
}

static void cut(struct tensor *t)
{
    memcpy(t->extent, t->shape, sizeof(t->extent));
    if (t->cut == ROWS || t->cut == COLUMNS) {
        int d = t->cut == COLUMNS;
        t->extent[d] = t->shape[d] / dt_size();
        t->at[d] = t->extent[d] * dt_rank();
    }
    t->bytes = (size_t)(t->extent[0] * t->extent[1]) * dt_dtype_size(t->dtype);
}

void model_open(bool own, const char *only)
{
    need(!cuInit(0) && !cuDevicePrimaryCtxRetain(&context[0], 0) &&
             !cuDevicePrimaryCtxRetain(&context[1], 1) &&
             !cuCtxSetCurrent(context[0]) &&
             !cuStreamCreate(&user_stream, DT_CU_NON_BLOCKING),
         "the mock driver");
    need(240 % dt_size() == 0, "a number of ranks that divides 240");
    end = own ? TENSORS : TENSORS - 1;
    if (only) {
        while (first < end && strcmp(tensor[first].name, only) != 0)
            first++;
        need(first < end, "no tensor %s", only);
        end = first + 1;
    }
    for (size_t i = first; i < end; i++) {
        cut(&tensor[i]);
        tensor[i].data = allocate(tensor[i].where, tensor[i].bytes);
    }
}

void model_name(dt_ckpt_t ckpt)
{
    for (size_t i = first; i < end; i++) {
        const struct tensor *t = &tensor[i];
        dt_result_t rc =
            t->cut == ROWS || t->cut == COLUMNS
                ? dt_ckpt_add_slice(ckpt, t->name, t->data, t->dtype, 2,
                                    t->shape, t->at, t->extent)
                : dt_ckpt_add_tensor(ckpt, t->name, t->data, t->dtype, 2,
                                     t->shape,
                                     t->cut == WHOLE ? DT_CKPT_REPLICATED : 0);
        need(rc == DT_SUCCESS, "%s", t->name);
    }
}

void model_free_one(void)
{
    need(!cuMemFree_v2((dt_cu_ptr)(uintptr_t)tensor[3].data), "free");
}

/* ---- values ---- */

/* Of this rank's part; by where they are in the whole. */
static char *values(const struct tensor *t, int64_t step)
{
    char *all = malloc(t->bytes), *to = all;
    size_t width = dt_dtype_size(t->dtype);
    size_t len = (size_t)t->extent[1] * width;
    uint64_t seed = (uint64_t)step * 31 + (uint64_t)(t - tensor) * 17 +
                    (t->cut == OWN ? 97 * (uint64_t)(dt_rank() + 1) : 0);
    need(all, "no memory");
    for (int64_t r = t->at[0]; r < t->at[0] + t->extent[0]; r++) {
        uint64_t at = (uint64_t)(r * t->shape[1] + t->at[1]) * width;
        for (size_t i = 0; i < len; i++, at++)
            *to++ = (char)(seed + at * 5 + at / 251);
    }
    return all;
}

static bool by_driver(const struct tensor *t)
{
    return t->where == GPU || t->where == OTHER_GPU || t->where == MANAGED;
}

static void copy(void *to, const void *from, size_t len)
{
    int code = cuMemcpyAsync((dt_cu_ptr)(uintptr_t)to,
                             (dt_cu_ptr)(uintptr_t)from, len, user_stream);
    need(!code, "copy: %d", code);
}

static void put(const struct tensor *t, int64_t step)
{
    char *all = values(t, step);
    if (by_driver(t))
        copy(t->data, all, t->bytes);
    else
        memcpy(t->data, all, t->bytes);
    free(all);
}

void model_put(int64_t step)
{
    for (size_t i = first; i < end; i++)
        put(&tensor[i], step);
}

void model_fill(int64_t step)
{
    model_put(step);
    need(!cuStreamSynchronize(user_stream), "synchronize");
}

bool model_holds(int64_t step)
{
    bool right = true;
    for (size_t i = first; i < end; i++) {
        const struct tensor *t = &tensor[i];
        char *want = values(t, step), *is = malloc(t->bytes);
        need(is, "no memory");
        if (by_driver(t))
            copy(is, t->data, t->bytes);
        else
            memcpy(is, t->data, t->bytes);
        need(!cuStreamSynchronize(user_stream), "synchronize");
        if (memcmp(is, want, t->bytes) != 0) {
            fprintf(stderr, "rank %d: %s is wrong\n", dt_rank(), t->name);
            right = false;
        }
        free(is);
        free(want);
    }
    return right;
}
