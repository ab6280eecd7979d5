/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* multicast.h - the body of the kernel that reduces by the switch between
 * GPUs; see cuda_kernels.h for how it is included.
 *
 * A window is there twice: at `own` is this GPU's memory of it, at `all` the
 * memories of all GPUs, which a load reduces and a store writes. Block b has
 * region b of it, and counts rounds and meets the others as in cuda_exchange.h:
 *
 *   copy what I show into my own memory
 *   tell everyone, wait for everyone
 *   reduce my part of all; store it into all, or, with a row for each rank,
 *   into my own memory
 *   tell everyone, wait for everyone
 *   copy the result from my own memory
 *
 * After the second meeting nobody else touches my memory until I have shown
 * again, so one slot suffices. */
#ifndef DT_GPU_CUDA_MULTICAST_H
#define DT_GPU_CUDA_MULTICAST_H

#include "gpu/cuda/exchange.h"

/* ---- load_all, store_all: 16 bytes ---- */

#ifdef __CUDACC__

/* What is written by the one address of a memory is read by the other. */
FN void join_views(void)
{
    asm volatile("fence.proxy.alias;" ::: "memory");
}

/* Older GPUs have no such instructions: what they "reduce" stays as it is,
 * which the test before the first use finds. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 &&                          \
    __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1201

#define LOAD "multimem.ld_reduce.relaxed.sys.global."
#define LOAD_1(what)                                                           \
    asm volatile(LOAD what " {%0, %1, %2, %3}, [%4];"                          \
                 : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])      \
                 : "l"(at)                                                     \
                 : "memory")
#define LOAD_2(what, how, type)                                                \
    do {                                                                       \
        type x[2];                                                             \
        asm volatile(LOAD what " %0, [%2];\n\t" LOAD what " %1, [%2 + 8];"     \
                     : how(x[0]), how(x[1])                                    \
                     : "l"(at)                                                 \
                     : "memory");                                              \
        memcpy(v.w, x, sizeof(x));                                             \
    } while (0)
#define LOAD_4(what)                                                           \
    asm volatile(LOAD what " %0, [%4];\n\t" LOAD what                          \
                           " %1, [%4 + 4];\n\t" LOAD what                      \
                           " %2, [%4 + 8];\n\t" LOAD what " %3, [%4 + 12];"    \
                 : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])      \
                 : "l"(at)                                                     \
                 : "memory")

FN struct vec load_all(const char *p, int dtype, int op)
{
    const size_t at = __cvta_generic_to_global(p);
    struct vec v;
    if (dtype == DT_DTYPE_F32) {
        LOAD_1("add.v4.f32");
    } else if (dtype == DT_DTYPE_F16) {
        LOAD_1("add.acc::f32.v4.f16x2");
    } else if (dtype == DT_DTYPE_BF16) {
        LOAD_1("add.acc::f32.v4.bf16x2");
    } else if (dtype == DT_DTYPE_F64) {
        LOAD_2("add.f64", "=d", double);
    } else if (dtype == DT_DTYPE_I32) {
        if (op == DT_OP_MIN) {
            LOAD_4("min.s32");
        } else if (op == DT_OP_MAX) {
            LOAD_4("max.s32");
        } else {
            LOAD_4("add.s32");
        }
    } else if (op == DT_OP_MIN) {
        LOAD_2("min.s64", "=l", int64_t);
    } else if (op == DT_OP_MAX) {
        LOAD_2("max.s64", "=l", int64_t);
    } else {
        LOAD_2("add.u64", "=l", uint64_t);
    }
    return v;
}

FN void store_all(char *p, const struct vec *v)
{
    asm volatile(
        "multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(
            __cvta_generic_to_global(p)),
        "r"(v->w[0]), "r"(v->w[1]), "r"(v->w[2]), "r"(v->w[3])
        : "memory");
}

#else

FN struct vec load_all(const char *p, int dtype, int op)
{
    struct vec none = {{0, 0, 0, 0}};
    return none;
}

FN void store_all(char *p, const struct vec *v)
{
}

#endif

#else

/* The host plays the switch, too: where the memories are; how many. */
size_t dt_host_copies(const char *at, char *copies[DT_CUDA_PEERS]);

FN void join_views(void)
{
}

/* From the last one to the first: a switch has an order of its own. */
#define LOAD_ALL(wide, type)                                                   \
    FN struct vec load_all_##wide(char *const *from, size_t n, int dtype,      \
                                  int op)                                      \
    {                                                                          \
        const size_t size = size_of(dtype);                                    \
        struct vec v = {{0, 0, 0, 0}};                                         \
        for (size_t i = 0; i < 16 / size; i++) {                               \
            type acc = 0;                                                      \
            for (size_t k = n; k-- > 0;) {                                     \
                type x =                                                       \
                    in_##wide(dtype, load_code(from[k] + i * size, size));     \
                acc = k + 1 == n ? x : op_##wide(op, acc, x);                  \
            }                                                                  \
            put_code(&v, size, i, out_##wide(dtype, acc));                     \
        }                                                                      \
        return v;                                                              \
    }
LOAD_ALL(i32, int32_t)
LOAD_ALL(i64, int64_t)
LOAD_ALL(f32, float)
LOAD_ALL(f64, double)

FN struct vec load_all(const char *p, int dtype, int op)
{
    char *from[DT_CUDA_PEERS];
    const size_t n = dt_host_copies(p, from);
    switch (dtype) {
    case DT_DTYPE_I32:
        return load_all_i32(from, n, dtype, op);
    case DT_DTYPE_I64:
        return load_all_i64(from, n, dtype, op);
    case DT_DTYPE_F64:
        return load_all_f64(from, n, dtype, op);
    default:
        return load_all_f32(from, n, dtype, op);
    }
}

FN void store_all(char *p, const struct vec *v)
{
    char *to[DT_CUDA_PEERS];
    const size_t n = dt_host_copies(p, to);
    for (size_t k = 0; k < n; k++)
        store_vec(to[k], v);
}

#endif

/* ---- a round ---- */

/* My part of what all show, from this byte of the window on. */
struct part {
    uint64_t at, vectors; /* what is behind the elements is nobody's */
};

FN struct part part_for_me(const struct dt_exchange_args *a,
                           const struct round *r, size_t size)
{
    const struct piece mine = piece_of(a, r, a->rank, size);
    struct part p = {r->at + mine.first * size, (mine.count * size + 15) / 16};
    if (a->rows > 1) {
        p.at = r->at + my_row(a);
        p.vectors = (r->count * size + 15) / 16;
    }
    return p;
}

FN void divide_vec(struct vec *v, int dtype, uint32_t by)
{
    const size_t size = size_of(dtype);
    struct vec w = {{0, 0, 0, 0}};
    UNROLL(8)
    for (size_t i = 0; i < 16 / size; i++)
        put_code(&w, size, i, divide(dtype, get_code(v, size, i), by));
    *v = w;
}

/* many vectors are under way at once. dtype, op and many are constants, as in
 * cuda_numbers.h; 1 for AVG, whose divisions take all registers. */
FN void reduce_by(const struct dt_exchange_args *a, struct part p,
                  struct lane lane, int dtype, int op, const uint64_t many)
{
    ROLLED
    for (uint64_t i = lane.first; i < p.vectors; i += many * lane.step) {
        struct vec v[2];
        UNROLL(2)
        for (uint64_t k = 0; k < many; k++)
            if (i + k * lane.step < p.vectors)
                v[k] = load_all(a->all + p.at + (i + k * lane.step) * 16, dtype,
                                op);
        if (many == 1)
            divide_vec(&v[0], dtype, a->divisor);
        UNROLL(2)
        for (uint64_t k = 0; k < many; k++) {
            const uint64_t at = p.at + (i + k * lane.step) * 16;
            if (i + k * lane.step < p.vectors && a->rows > 1)
                store_vec(a->own + at, &v[k]);
            else if (i + k * lane.step < p.vectors)
                store_all(a->all + at, &v[k]);
        }
    }
}

FN void reduce_part(const struct dt_exchange_args *a, struct part p,
                    struct lane lane, int dtype, int op)
{
    if (a->divisor && op == DT_OP_SUM)
        reduce_by(a, p, lane, dtype, op, 1);
    else
        reduce_by(a, p, lane, dtype, op, 2);
}

FN void reduce_integers(const struct dt_exchange_args *a, struct part p,
                        struct lane lane, int dtype)
{
    if (a->op == DT_OP_MIN)
        reduce_part(a, p, lane, dtype, DT_OP_MIN);
    else if (a->op == DT_OP_MAX)
        reduce_part(a, p, lane, dtype, DT_OP_MAX);
    else
        reduce_part(a, p, lane, dtype, DT_OP_SUM);
}

FN void reduce_any(const struct dt_exchange_args *a, struct part p,
                   struct lane lane)
{
    switch (a->dtype) {
    case DT_DTYPE_I32:
        reduce_integers(a, p, lane, DT_DTYPE_I32);
        break;
    case DT_DTYPE_I64:
        reduce_integers(a, p, lane, DT_DTYPE_I64);
        break;
    case DT_DTYPE_F16:
        reduce_part(a, p, lane, DT_DTYPE_F16, DT_OP_SUM);
        break;
    case DT_DTYPE_BF16:
        reduce_part(a, p, lane, DT_DTYPE_BF16, DT_OP_SUM);
        break;
    case DT_DTYPE_F32:
        reduce_part(a, p, lane, DT_DTYPE_F32, DT_OP_SUM);
        break;
    default:
        reduce_part(a, p, lane, DT_DTYPE_F64, DT_OP_SUM);
    }
}

/* Copy what is shown; reduce; copy the result. False: told to give up. */
FN bool multicast(const struct dt_exchange_args *a, struct dt_block block,
                  const struct round *r, size_t size, uint32_t number)
{
    const struct part p = part_for_me(a, r, size);
    const char *result = a->own + r->at + my_row(a);
    show(a, block, a->own + r->at, r, size);
    EACH_THREAD(t, block)
    {
        join_views();
    }
    if (!meet(a, block, false, number))
        return false;
    EACH_THREAD(t, block)
    {
        struct lane lane = {t, block.threads};
        reduce_any(a, p, lane);
        join_views();
    }
    if (!meet(a, block, true, number))
        return false;
    EACH_THREAD(t, block)
    {
        struct lane lane = {t, block.threads};
        copy_bytes(a->recv + r->first * size, result, r->count * size, lane);
    }
    barrier(); /* before the next round is shown there */
    return true;
}

FN void run_dt_multicast(const struct dt_exchange_args *a,
                         struct dt_block block)
{
    const size_t size = size_of(a->dtype);
    uint32_t number = *count_of(a, block);
    const uint64_t part = part_of(a, block);
    uint64_t done = 0;
    do {
        struct round r = round_of(a, block, done, part, number);
        r.at = block.index * a->region;
        if (!multicast(a, block, &r, size, ++number))
            break;
        done += r.count;
    } while (done < part);
    leave(a, block, number);
}

#endif
