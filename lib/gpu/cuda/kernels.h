/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* kernels.h - the bodies of the kernels on memory of one GPU: copy, reduce,
 * scale. It is included by kernels.cu, for the device, and by the tests, for a
 * host that emulates it. */
#ifndef DT_GPU_CUDA_KERNELS_H
#define DT_GPU_CUDA_KERNELS_H

#include "gpu/cuda/block.h"

/* The elements of a thread: first, first + step, ... */
struct lane {
    uint64_t first, step;
};

/* ---- copies ---- */

/* Copy len bytes; dst and src have the same offset from a multiple of
 * `unit`. */
#define COPY_BY(unit, type, get, put, many)                                    \
    FN void copy_by_##unit(char *dst, const char *src, uint64_t len,           \
                           struct lane lane)                                   \
    {                                                                          \
        const uint64_t head = smaller((0 - (uintptr_t)dst) % (unit), len);     \
        const uint64_t n = (len - head) / (unit), tail = head + n * (unit);    \
        uint64_t i = lane.first;                                               \
        ROLLED                                                                 \
        for (; i + (many - 1) * lane.step < n; i += many * lane.step) {        \
            type v[many];                                                      \
            UNROLL(many)                                                       \
            for (uint64_t u = 0; u < many; u++)                                \
                v[u] = get(src + head + (i + u * lane.step) * (unit));         \
            UNROLL(many)                                                       \
            for (uint64_t u = 0; u < many; u++)                                \
                put(dst + head + (i + u * lane.step) * (unit), v[u]);          \
        }                                                                      \
        ROLLED                                                                 \
        for (; i < n; i += lane.step)                                          \
            put(dst + head + i * (unit), get(src + head + i * (unit)));        \
        ROLLED                                                                 \
        for (i = lane.first; i < head; i += lane.step)                         \
            dst[i] = src[i];                                                   \
        ROLLED                                                                 \
        for (i = tail + lane.first; i < len; i += lane.step)                   \
            dst[i] = src[i];                                                   \
    }
#define GET_16(p)    load_vec(p)
#define PUT_16(p, v) store_whole(p, v)
#define GET_4(p)     (*(const code32 *)(p))
#define PUT_4(p, v)  (*(code32 *)(p) = (v))
#define GET_2(p)     (*(const code16 *)(p))
#define PUT_2(p, v)  (*(code16 *)(p) = (v))
#define GET_1(p)     (*(p))
#define PUT_1(p, v)  (*(p) = (v))

FN void store_whole(char *p, struct vec v)
{
    store_vec(p, &v);
}

COPY_BY(16, struct vec, GET_16, PUT_16, 4)
COPY_BY(4, uint32_t, GET_4, PUT_4, 4)
COPY_BY(2, uint16_t, GET_2, PUT_2, 4)
COPY_BY(1, char, GET_1, PUT_1, 4)

FN void copy_bytes(char *dst, const char *src, uint64_t len, struct lane lane)
{
    const uintptr_t apart = (uintptr_t)dst ^ (uintptr_t)src;
    if (apart % 16 == 0)
        copy_by_16(dst, src, len, lane);
    else if (apart % 4 == 0)
        copy_by_4(dst, src, len, lane);
    else if (apart % 2 == 0)
        copy_by_2(dst, src, len, lane);
    else
        copy_by_1(dst, src, len, lane);
}

/* ---- fold ---- */

/* dst[i] = scale * (in[0][i] op in[1][i] ...), from byte `at` of each in */
struct fold {
    char *dst;
    const char *const *in;
    uint32_t n;
    uint64_t at, count;
    double scale;
    bool few; /* hence one by one */
};

/* The elements before dst and all inputs are aligned; count, if they never
 * are, or are few. */
FN uint64_t fold_head(const struct fold *f, size_t size)
{
    const uintptr_t place = (uintptr_t)f->dst;
    uintptr_t apart = 0;
    if (f->few)
        return f->count;
    for (uint32_t k = 0; k < f->n; k++)
        apart |= place ^ (uintptr_t)(f->in[k] + f->at);
    return apart % 16 ? f->count : smaller(head_of(f->dst, size), f->count);
}

/* fold_WIDE: a thread's elements of the types that are computed in it. All
 * inputs of an element are read before it is written. */
#define FOLD(wide, type)                                                       \
    FN void fold_one_##wide(const struct fold *f, int dtype, int op,           \
                            uint64_t i)                                        \
    {                                                                          \
        const size_t size = size_of(dtype), at = f->at + i * size;             \
        type acc = in_##wide(dtype, load_code(f->in[0] + at, size));           \
        ROLLED                                                                 \
        for (uint32_t k = 1; k < f->n; k++)                                    \
            acc = op_##wide(op, acc,                                           \
                            in_##wide(dtype, load_code(f->in[k] + at, size))); \
        if (op == DT_OP_SUM)                                                   \
            acc = scale_##wide(acc, f->scale);                                 \
        store_code(f->dst + i * size, size, out_##wide(dtype, acc));           \
    }                                                                          \
    /* many vectors, step bytes from each other, from byte `at` on */          \
    FN void fold_vecs_##wide(const struct fold *f, int dtype, int op,          \
                             uint64_t at, uint64_t step, const uint32_t many)  \
    {                                                                          \
        const size_t size = size_of(dtype), lanes = 16 / size;                 \
        type acc[2][16];                                                       \
        UNROLL(many)                                                           \
        for (uint32_t u = 0; u < many; u++) {                                  \
            struct vec v = load_vec(f->in[0] + f->at + at + u * step);         \
            UNROLL(lanes)                                                      \
            for (size_t i = 0; i < lanes; i++)                                 \
                acc[u][i] = in_##wide(dtype, get_code(&v, size, i));           \
        }                                                                      \
        for (uint32_t k = 1; k < f->n; k++) {                                  \
            struct vec v[2];                                                   \
            UNROLL(many)                                                       \
            for (uint32_t u = 0; u < many; u++)                                \
                v[u] = load_vec(f->in[k] + f->at + at + u * step);             \
            UNROLL(many)                                                       \
            for (uint32_t u = 0; u < many; u++) {                              \
                UNROLL(lanes)                                                  \
                for (size_t i = 0; i < lanes; i++)                             \
                    acc[u][i] =                                                \
                        op_##wide(op, acc[u][i],                               \
                                  in_##wide(dtype, get_code(&v[u], size, i))); \
            }                                                                  \
        }                                                                      \
        UNROLL(many)                                                           \
        for (uint32_t u = 0; u < many; u++) {                                  \
            struct vec v = {{0, 0, 0, 0}};                                     \
            UNROLL(lanes)                                                      \
            for (size_t i = 0; i < lanes; i++) {                               \
                if (op == DT_OP_SUM)                                           \
                    acc[u][i] = scale_##wide(acc[u][i], f->scale);             \
                put_code(&v, size, i, out_##wide(dtype, acc[u][i]));           \
            }                                                                  \
            store_vec(f->dst + at + u * step, &v);                             \
        }                                                                      \
    }                                                                          \
    FN void fold_run_##wide(const struct fold *f, int dtype, int op,           \
                            struct lane lane)                                  \
    {                                                                          \
        const size_t size = size_of(dtype), lanes = 16 / size;                 \
        const uint64_t head = fold_head(f, size);                              \
        const uint64_t n = (f->count - head) / lanes;                          \
        const uint64_t step = lane.step * 16;                                  \
        uint64_t i = lane.first;                                               \
        ROLLED                                                                 \
        for (; i + lane.step < n; i += 2 * lane.step)                          \
            fold_vecs_##wide(f, dtype, op, head *size + i * 16, step, 2);      \
        if (i < n)                                                             \
            fold_vecs_##wide(f, dtype, op, head *size + i * 16, step, 1);      \
        ROLLED                                                                 \
        for (i = lane.first; i < head; i += lane.step)                         \
            fold_one_##wide(f, dtype, op, i);                                  \
        ROLLED                                                                 \
        for (i = head + n * lanes + lane.first; i < f->count; i += lane.step)  \
            fold_one_##wide(f, dtype, op, i);                                  \
    }                                                                          \
    FN void fold_##wide(const struct fold *f, int dtype, int op,               \
                        struct lane lane)                                      \
    {                                                                          \
        switch (op) {                                                          \
        case DT_OP_PROD:                                                       \
            fold_run_##wide(f, dtype, DT_OP_PROD, lane);                       \
            break;                                                             \
        case DT_OP_MIN:                                                        \
            fold_run_##wide(f, dtype, DT_OP_MIN, lane);                        \
            break;                                                             \
        case DT_OP_MAX:                                                        \
            fold_run_##wide(f, dtype, DT_OP_MAX, lane);                        \
            break;                                                             \
        default:                                                               \
            fold_run_##wide(f, dtype, DT_OP_SUM, lane);                        \
        }                                                                      \
    }
FOLD(i32, int32_t)
FOLD(i64, int64_t)
FOLD(f32, float)
FOLD(f64, double)

#define KERNEL_SCALE(type, TYPE, wide)                                         \
    FN void run_dt_scale_##type(const struct dt_scale_args *a,                 \
                                struct dt_block block)                         \
    {                                                                          \
        struct fold f = {a->dst, &a->src, 1, 0, a->count, a->factor, false};   \
        EACH_THREAD(t, block)                                                  \
        {                                                                      \
            struct lane lane = {(uint64_t)block.index * block.threads + t,     \
                                (uint64_t)block.grid * block.threads};         \
            fold_run_##wide(&f, DT_DTYPE_##TYPE, DT_OP_SUM, lane);             \
        }                                                                      \
    }
DT_CUDA_FLOATS(KERNEL_SCALE)

/* ---- convert ---- */

FN void convert_run(const struct dt_convert_part *p, const int from,
                    const int to, struct lane lane)
{
    for (uint64_t i = lane.first; i < p->count; i += lane.step) {
        uint64_t code = 0;
        if (p->src)
            code = load_code(p->src + i * size_of(from), size_of(from));
        if (p->before != 1.0)
            code = scale_code(from, code, p->before);
        code = cast_code(to, from, code);
        if (p->after != 1.0)
            code = scale_code(to, code, p->after);
        if (p->divisor > 1)
            code = divide(to, code, p->divisor);
        store_code(p->dst + i * size_of(to), size_of(to), code);
    }
}

FN void convert(const struct dt_convert_part *p, struct lane lane)
{
    if (p->src && p->from == p->to && p->before == 1.0 && p->after == 1.0 &&
        p->divisor <= 1) {
        copy_bytes(p->dst, p->src, p->count * size_of(p->to), lane);
        return;
    }
#define CONVERT(FROM, TO)                                                      \
    if (p->from == DT_DTYPE_##FROM && p->to == DT_DTYPE_##TO)                  \
        convert_run(p, DT_DTYPE_##FROM, DT_DTYPE_##TO, lane);
    DT_CUDA_CASTS(CONVERT)
#undef CONVERT
}

FN void run_dt_convert(const struct dt_convert_args *a, struct dt_block block)
{
    uint32_t k = 0, end;
    ROLLED
    while (k + 1 < a->parts && a->part[k + 1].first <= block.index)
        k++;
    end = k + 1 < a->parts ? a->part[k + 1].first : block.grid;
    EACH_THREAD(t, block)
    {
        const uint32_t mine = block.index - a->part[k].first;
        struct lane lane = {(uint64_t)mine * block.threads + t,
                            (uint64_t)(end - a->part[k].first) * block.threads};
        convert(&a->part[k], lane);
    }
}

#endif
