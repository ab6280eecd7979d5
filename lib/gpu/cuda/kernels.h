/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* kernels.h - the bodies of the kernels on memory of one GPU: fold, cast, move.
 * It is included by kernels.cu, for the device, and by the tests, for a host
 * that emulates it. */
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

#define KERNEL_FOLD(type, TYPE, wide)                                          \
    FN void run_dt_fold_##type(const struct dt_fold_args *a,                   \
                               struct dt_block block)                          \
    {                                                                          \
        struct fold f = {a->dst, a->in, a->n, 0, a->count, a->scale, false};   \
        EACH_THREAD(t, block)                                                  \
        {                                                                      \
            struct lane lane = {(uint64_t)block.index * block.threads + t,     \
                                (uint64_t)block.grid * block.threads};         \
            fold_##wide(&f, DT_DTYPE_##TYPE, a->op, lane);                     \
        }                                                                      \
    }
DT_CUDA_TYPES(KERNEL_FOLD)

/* ---- many tensors ---- */

/* A block's part of a tensor. */
struct chunk {
    char *packed, *data;
    uint64_t count;
};

FN struct chunk chunk_of(const struct dt_tensors_args *a, uint32_t block,
                         size_t packed_size, size_t data_size)
{
    uint32_t t = 0, end = a->n;
    while (end - t > 1) {
        uint32_t mid = (t + end) / 2;
        if (a->first[mid] <= block)
            t = mid;
        else
            end = mid;
    }
    const uint64_t at = (block - a->first[t]) * a->chunk;
    const uint64_t count = a->start[t + 1] - a->start[t] - at;
    struct chunk chunk = {a->packed + (a->start[t] + at) * packed_size,
                          a->data[t] + at * data_size,
                          smaller(count, a->chunk)};
    return chunk;
}

FN void run_dt_move(const struct dt_tensors_args *a, struct dt_block block)
{
    const struct chunk c = chunk_of(a, block.index, 1, 1);
    EACH_THREAD(t, block)
    {
        struct lane lane = {t, block.threads};
        if (a->unpack)
            copy_bytes(c.data, c.packed, c.count, lane);
        else
            copy_bytes(c.packed, c.data, c.count, lane);
    }
}

/* The elements before both places are aligned; count, if they never are. */
FN uint64_t cast_head(const char *dst, size_t to, const char *src, size_t from,
                      uint64_t count)
{
    const size_t dst_head = head_of(dst, to), src_head = head_of(src, from);
    const size_t head = to < from ? dst_head : src_head;
    if (head % (16 / to) != dst_head || head % (16 / from) != src_head)
        return count;
    return smaller(head, count);
}

/* A thread's elements: as many at a time as make 16 bytes of the smaller
 * type. */
FN void cast_run(char *dst, int to, const char *src, int from, uint64_t count,
                 double factor, struct lane lane)
{
    const size_t out = size_of(to), in = size_of(from);
    const size_t lanes = 16 / (out < in ? out : in);
    const uint64_t head = cast_head(dst, out, src, in, count);
    const uint64_t n = (count - head) / lanes;
    ROLLED
    for (uint64_t i = lane.first; i < n; i += lane.step) {
        const uint64_t at = head + i * lanes;
        struct vec v[8], w[8];
        UNROLL(8)
        for (size_t k = 0; k < lanes * in / 16; k++)
            v[k] = load_vec(src + at * in + k * 16);
        UNROLL(8)
        for (size_t k = 0; k < lanes * out / 16; k++) {
            struct vec zero = {{0, 0, 0, 0}};
            w[k] = zero;
        }
        UNROLL(16)
        for (size_t k = 0; k < lanes; k++) {
            const size_t r = 16 / in, s = 16 / out;
            uint64_t code = get_code(&v[k / r], in, k % r);
            put_code(&w[k / s], out, k % s, convert(to, from, code, factor));
        }
        UNROLL(8)
        for (size_t k = 0; k < lanes * out / 16; k++)
            store_vec(dst + at * out + k * 16, &w[k]);
    }
    ROLLED
    for (uint64_t i = lane.first; i < head; i += lane.step)
        store_code(dst + i * out, out,
                   convert(to, from, load_code(src + i * in, in), factor));
    ROLLED
    for (uint64_t i = head + n * lanes + lane.first; i < count; i += lane.step)
        store_code(dst + i * out, out,
                   convert(to, from, load_code(src + i * in, in), factor));
}

#define CAST_TO(type, TYPE, wide)                                              \
    case DT_DTYPE_##TYPE:                                                      \
        cast_run(dst, DT_DTYPE_##TYPE, src, from, count, factor, lane);        \
        break;

FN void cast(char *dst, int to, const char *src, int from, uint64_t count,
             double factor, struct lane lane)
{
    switch (to) {
        DT_CUDA_FLOATS(CAST_TO)
    }
}

FN void cast_chunk(const struct dt_tensors_args *a, struct dt_block block,
                   int from)
{
    const size_t in = size_of(from), out = size_of(a->to);
    const struct chunk c =
        chunk_of(a, block.index, a->unpack ? in : out, a->unpack ? out : in);
    char *dst = a->unpack ? c.data : c.packed;
    const char *src = a->unpack ? c.packed : c.data;
    EACH_THREAD(t, block)
    {
        struct lane lane = {t, block.threads};
        cast(dst, a->to, src, from, c.count, a->factor, lane);
    }
}

#define KERNEL_CAST(type, TYPE, wide)                                          \
    FN void run_dt_cast_##type(const struct dt_tensors_args *a,                \
                               struct dt_block block)                          \
    {                                                                          \
        cast_chunk(a, block, DT_DTYPE_##TYPE);                                 \
    }
DT_CUDA_FLOATS(KERNEL_CAST)

#endif
