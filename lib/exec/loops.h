/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* loops.h - the loops of a set of kernels, and its table KERNELS. */

#ifndef HAVE_PART
/* Load and store less than a register; a load sets the rest to zero. */
INLINE u32v peek_part(const char *p, size_t bytes)
{
    char pad[WIDTH] = {0};
    memcpy(pad, p, bytes);
    return peek(pad);
}

INLINE void poke_part(char *p, u32v bits, size_t bytes)
{
    char pad[WIDTH];
    poke(pad, bits);
    memcpy(p, pad, bytes);
}
#endif

/* Non-temporal stores, and the fence that orders them before all later stores.
 * A processor without them stores as usual. */
#ifndef HAVE_STREAM
INLINE void stream(char *p, u32v bits)
{
    poke(p, bits);
}

INLINE void end_stream(void)
{
}
#endif

typedef void load_fn(u32v *lanes, const char *p);
typedef u32v pack_fn(const u32v *lanes);
typedef u32v op_fn(u32v a, u32v b);

/* What an average is divided by, in the types in which that is computed. */
struct divisor {
    size_t whole;
    bool power; /* of two: to multiply by its inverse, or to shift, is exact */
    unsigned shift;
    float f32, inverse_f32;
    double f64, inverse_f64;
};
typedef u32v quotient_fn(u32v a, const struct divisor *by);

/* An element type: load converts one register of it to `parts` registers of
 * the type in which the operation is computed, pack converts them back. */
struct type {
    size_t parts;
    load_fn *load;
    pack_fn *pack;
};

/* One reduction: the n inputs, reduced by op, are written to all nout outputs.
 * The result is multiplied by factor if mul is set, and, when it has been
 * rounded to its type, divided if quotient is. */
struct work {
    char *const *out;
    size_t nout;
    bool stream; /* non-temporal stores; out is aligned then */
    const char *const *in;
    size_t n;
    op_fn *op, *mul;
    u32v factor;
    quotient_fn *quotient;
    const struct divisor *by;
};

INLINE void load_plain(u32v *lanes, const char *p)
{
    lanes[0] = peek(p);
}

INLINE u32v pack_plain(const u32v *lanes)
{
    return lanes[0];
}

INLINE u32v pack_f32(const u32v *lanes)
{
    return one_nan_f32(lanes[0]);
}

INLINE u32v pack_f64(const u32v *lanes)
{
    return one_nan_f64(lanes[0]);
}

/* The operation name_type of two registers. The result is NaN where an operand
 * is, which pack makes canonical. Integers are added and multiplied as
 * unsigned, as overflow of signed ones is undefined in C; min and max take the
 * left of two equal operands. */
#define OP(name, of, vector, expression)                                       \
    INLINE u32v name##_##of(u32v left, u32v right)                             \
    {                                                                          \
        vector a = (vector)left, b = (vector)right;                            \
        return (u32v)(expression);                                             \
    }
#define OPS_INT(type, vector, wrapping)                                        \
    OP(sum, type, wrapping, a + b)                                             \
    OP(prod, type, wrapping, a *b)                                             \
    OP(min, type, vector, choose((u32v)(b < a), right, left))                  \
    OP(max, type, vector, choose((u32v)(b > a), right, left))
#define OPS_FLOAT(type, vector)                                                \
    OP(sum, type, vector, a + b)                                               \
    OP(prod, type, vector, a *b)                                               \
    OP(min, type, vector, choose((u32v)((b < a) | (b != b)), right, left))     \
    OP(max, type, vector, choose((u32v)((b > a) | (b != b)), right, left))

OPS_INT(i8, i8v, u8v)
OPS_INT(u8, u8v, u8v)
OPS_INT(i32, i32v, u32v)
OPS_INT(i64, i64v, u64v)
OPS_FLOAT(f32, f32v)
OPS_FLOAT(f64, f64v)

/* whole is 0 where nothing is divided. */
INLINE struct divisor divisor_of(size_t whole)
{
    if (!whole)
        whole = 1;
    return (struct divisor){.whole = whole,
                            .power = !(whole & (whole - 1)) && whole < 1u << 30,
                            .shift = (unsigned)__builtin_ctzll(whole),
                            .f32 = (float)whole,
                            .inverse_f32 = 1 / (float)whole,
                            .f64 = (double)whole,
                            .inverse_f64 = 1 / (double)whole};
}

INLINE u32v quotient_f32(u32v a, const struct divisor *by)
{
    return (u32v)(by->power ? (f32v)a * by->inverse_f32 : (f32v)a / by->f32);
}

INLINE u32v quotient_f64(u32v a, const struct divisor *by)
{
    return (u32v)(by->power ? (f64v)a * by->inverse_f64 : (f64v)a / by->f64);
}

/* Integers are truncated towards zero. The type of the division has at least
 * twice their digits, so the rounded quotient truncates to the exact one. */
#define QUOTIENT(type, parts, narrow, wide, whole, floating)                   \
    INLINE u32v quotient_##type(u32v a, const struct divisor *by)              \
    {                                                                          \
        narrow part[parts];                                                    \
        memcpy(part, &a, sizeof(a));                                           \
        for (size_t i = 0; i < (parts); i++) {                                 \
            wide x = __builtin_convertvector(part[i], wide) / by->floating;    \
            whole y = __builtin_convertvector(x, whole);                       \
            part[i] = __builtin_convertvector(y, narrow);                      \
        }                                                                      \
        memcpy(&a, part, sizeof(a));                                           \
        return a;                                                              \
    }
QUOTIENT(i8, 4, quarter_i8v, f32v, i32v, f32)
QUOTIENT(u8, 4, quarter_u8v, f32v, i32v, f32)
QUOTIENT(wide_i32, 2, half_i32v, f64v, half_i32v, f64)

INLINE u32v quotient_i32(u32v a, const struct divisor *by)
{
    i32v x = (i32v)a;
    if (!by->power)
        return quotient_wide_i32(a, by);
    return (u32v)((x + (x >> 31 & (int32_t)(by->whole - 1))) >> by->shift);
}

INLINE u32v quotient_i64(u32v a, const struct divisor *by)
{
    i64v x = (i64v)a;
    if (!by->power)
        return (u32v)(x / (int64_t)by->whole);
    return (u32v)((x + (x >> 63 & (int64_t)(by->whole - 1))) >> by->shift);
}

/* The quotient of packed elements. */
INLINE u32v divide(const struct work *work, const struct type type, u32v bits)
{
    u32v lanes[BLOCK];
    char packed[WIDTH];
    poke(packed, bits);
    type.load(lanes, packed);
    for (size_t v = 0; v < type.parts; v++)
        lanes[v] = work->quotient(lanes[v], work->by);
    return type.pack(lanes);
}

/* Reduce `groups` registers from byte `at` on. Each input is read once, before
 * any output is written, as an output may be an input. */
INLINE void reduce_block(const struct work *work, const struct type type,
                         size_t groups, size_t at)
{
    u32v acc[BLOCK], next[BLOCK];
    for (size_t g = 0; g < groups; g++)
        type.load(acc + g * type.parts, work->in[0] + at + g * WIDTH);
    for (size_t k = 1; k < work->n; k++) {
        for (size_t g = 0; g < groups; g++)
            type.load(next + g * type.parts, work->in[k] + at + g * WIDTH);
        for (size_t v = 0; v < groups * type.parts; v++)
            acc[v] = work->op(acc[v], next[v]);
    }
    for (size_t v = 0; work->mul && v < groups * type.parts; v++)
        acc[v] = work->mul(acc[v], work->factor);
    for (size_t g = 0; g < groups; g++) {
        u32v bits = type.pack(acc + g * type.parts);
        if (work->quotient)
            bits = divide(work, type, bits);
        for (size_t o = 0; o < work->nout; o++)
            if (work->stream)
                stream(work->out[o] + at + g * WIDTH, bits);
            else
                poke(work->out[o] + at + g * WIDTH, bits);
    }
}

/* The last bytes, less than a register. */
INLINE void reduce_tail(const struct work *work, const struct type type,
                        size_t at, size_t rest)
{
    u32v acc[BLOCK], next[BLOCK];
    char whole[WIDTH];
    poke(whole, peek_part(work->in[0] + at, rest));
    type.load(acc, whole);
    for (size_t k = 1; k < work->n; k++) {
        poke(whole, peek_part(work->in[k] + at, rest));
        type.load(next, whole);
        for (size_t v = 0; v < type.parts; v++)
            acc[v] = work->op(acc[v], next[v]);
    }
    for (size_t v = 0; work->mul && v < type.parts; v++)
        acc[v] = work->mul(acc[v], work->factor);
    u32v bits = type.pack(acc);
    if (work->quotient)
        bits = divide(work, type, bits);
    for (size_t o = 0; o < work->nout; o++)
        poke_part(work->out[o] + at, bits, rest);
}

INLINE void reduce(const struct work *work, const struct type type,
                   size_t groups, size_t at, size_t bytes)
{
    for (; bytes - at >= groups * WIDTH; at += groups * WIDTH)
        reduce_block(work, type, groups, at);
    for (; bytes - at >= WIDTH; at += WIDTH)
        reduce_block(work, type, 1, at);
    if (at < bytes)
        reduce_tail(work, type, at, bytes - at);
}

/* Two inputs, as with two ranks on a node. The constants let the compiler
 * unroll the loops. With two outputs, one of which is in the cache of another
 * core, one register at a time is fastest. */
INLINE void reduce_two(const struct work *work, const struct type type,
                       size_t bytes)
{
    const char *const in[] = {work->in[0], work->in[1]};
    char *const out[] = {work->out[0], work->out[work->nout - 1]};
    struct work two = {out,
                       1,
                       false,
                       in,
                       2,
                       work->op,
                       work->mul,
                       work->factor,
                       work->quotient,
                       work->by};
    if (work->nout == 1) {
        reduce(&two, type, BLOCK / type.parts, 0, bytes);
    } else {
        two.nout = 2;
        reduce(&two, type, 1, 0, bytes);
    }
}

/* How many bytes precede the first address that is aligned in all outputs;
 * `bytes` if their alignments differ. */
INLINE size_t before_stream(const struct work *work, size_t bytes)
{
    const size_t skip = -(uintptr_t)work->out[0] % WIDTH;
    for (size_t o = 1; o < work->nout; o++)
        if (-(uintptr_t)work->out[o] % WIDTH != skip)
            return bytes;
    return skip % 8 || skip > bytes ? bytes : skip;
}

INLINE void reduce_streaming(struct work *work, const struct type type,
                             size_t bytes)
{
    const size_t skip = before_stream(work, bytes);
    work->stream = false;
    reduce(work, type, 1, 0, skip);
    work->stream = true;
    reduce(work, type, BLOCK / type.parts, skip, bytes);
    end_stream();
}

INLINE u32v factor_f32(double scale)
{
    return (u32v)((float)scale - (f32v){0});
}

INLINE u32v factor_f64(double scale)
{
    return (u32v)(scale - (f64v){0});
}

INLINE u32v factor_none(double scale)
{
    (void)scale;
    return (u32v){0};
}

/* The kernel of a type and an operation, which is computed in the type `wide`.
 * two: the kernel has a loop for two inputs, which only sum and average need,
 * the operations that are used most. */
#define REDUCE(name, of, nparts, op, mul, factor, two, quotient)               \
    static TARGET void reduce_##name##_##of(const struct dt_exec_out *out,     \
                                            const void *const *in, size_t n,   \
                                            size_t bytes, double scale)        \
    {                                                                          \
        const struct divisor by = divisor_of(out->divisor);                    \
        struct work work = {(char *const *)out->at,                            \
                            out->n,                                            \
                            out->stream,                                       \
                            (const char *const *)in,                           \
                            n,                                                 \
                            op,                                                \
                            mul,                                               \
                            factor(scale),                                     \
                            quotient,                                          \
                            &by};                                              \
        const struct type type = {nparts, load_##of, pack_##of};               \
        if (work.stream)                                                       \
            reduce_streaming(&work, type, bytes);                              \
        else if (two && n == 2 && out->n <= 2)                                 \
            reduce_two(&work, type, bytes);                                    \
        else                                                                   \
            reduce(&work, type, BLOCK / type.parts, 0, bytes);                 \
    }
#define REDUCE_ALL(of, nparts, wide, mul, factor)                              \
    REDUCE(sum, of, nparts, sum_##wide, mul, factor, true, NULL)               \
    REDUCE(avg, of, nparts, sum_##wide, mul, factor, true, quotient_##wide)    \
    REDUCE(prod, of, nparts, prod_##wide, NULL, factor_none, false, NULL)      \
    REDUCE(min, of, nparts, min_##wide, NULL, factor_none, false, NULL)        \
    REDUCE(max, of, nparts, max_##wide, NULL, factor_none, false, NULL)

#define load_i8  load_plain
#define load_u8  load_plain
#define load_i32 load_plain
#define load_i64 load_plain
#define load_f32 load_plain
#define load_f64 load_plain
#define pack_i8  pack_plain
#define pack_u8  pack_plain
#define pack_i32 pack_plain
#define pack_i64 pack_plain

REDUCE_ALL(i8, 1, i8, NULL, factor_none)
REDUCE_ALL(u8, 1, u8, NULL, factor_none)
REDUCE_ALL(i32, 1, i32, NULL, factor_none)
REDUCE_ALL(i64, 1, i64, NULL, factor_none)
REDUCE_ALL(f16, 2, f32, prod_f32, factor_f32)
REDUCE_ALL(bf16, 2, f32, prod_f32, factor_f32)
REDUCE_ALL(f32, 1, f32, prod_f32, factor_f32)
REDUCE_ALL(f64, 1, f64, prod_f64, factor_f64)
REDUCE_ALL(f8e4m3, 4, f32, prod_f32, factor_f32)
REDUCE_ALL(f8e5m2, 4, f32, prod_f32, factor_f32)

/* The conversions of a type of `size` bytes to and from F32. The last elements,
 * fewer than a register, go through a padded copy. */
#define CASTS(of, size)                                                        \
    static TARGET void widen_##of(void *dst, const void *src, size_t count)    \
    {                                                                          \
        const char *from = src;                                                \
        char *to = dst, pad[WIDTH] = {0}, wide[WIDTH];                         \
        for (; count >= LANES32; count -= LANES32) {                           \
            poke(to, one_nan_f32(in_##of(from)));                              \
            from += LANES32 * (size), to += WIDTH;                             \
        }                                                                      \
        memcpy(pad, from, count *(size));                                      \
        poke(wide, one_nan_f32(in_##of(pad)));                                 \
        memcpy(to, wide, count * sizeof(float));                               \
    }                                                                          \
    static TARGET void narrow_##of(void *dst, const void *src, size_t count)   \
    {                                                                          \
        const char *from = src;                                                \
        char *to = dst, pad[WIDTH], wide[WIDTH] = {0};                         \
        for (; count >= LANES32; count -= LANES32) {                           \
            out_##of(to, one_nan_f32(peek(from)));                             \
            from += WIDTH, to += LANES32 * (size);                             \
        }                                                                      \
        memcpy(wide, from, count * sizeof(float));                             \
        out_##of(pad, one_nan_f32(peek(wide)));                                \
        memcpy(to, pad, count *(size));                                        \
    }

CASTS(f16, 2)
CASTS(bf16, 2)
CASTS(f8e4m3, 1)
CASTS(f8e5m2, 1)

#define ROW(of)                                                                \
    {                                                                          \
        [DT_OP_SUM] = reduce_sum_##of, [DT_OP_AVG] = reduce_avg_##of,          \
        [DT_OP_PROD] = reduce_prod_##of, [DT_OP_MIN] = reduce_min_##of,        \
        [DT_OP_MAX] = reduce_max_##of                                          \
    }
#define CAST_TABLE(direction)                                                  \
    {                                                                          \
        [DT_DTYPE_F16] = direction##_f16, [DT_DTYPE_BF16] = direction##_bf16,  \
        [DT_DTYPE_F8E4M3] = direction##_f8e4m3,                                \
        [DT_DTYPE_F8E5M2] = direction##_f8e5m2                                 \
    }

const struct dt_exec_kernels KERNELS = {
    .name = NAME,
    .reduce = {[DT_DTYPE_I8] = ROW(i8),
               [DT_DTYPE_U8] = ROW(u8),
               [DT_DTYPE_I32] = ROW(i32),
               [DT_DTYPE_I64] = ROW(i64),
               [DT_DTYPE_F16] = ROW(f16),
               [DT_DTYPE_BF16] = ROW(bf16),
               [DT_DTYPE_F32] = ROW(f32),
               [DT_DTYPE_F64] = ROW(f64),
               [DT_DTYPE_F8E4M3] = ROW(f8e4m3),
               [DT_DTYPE_F8E5M2] = ROW(f8e5m2)},
    .widen = CAST_TABLE(widen),
    .narrow = CAST_TABLE(narrow),
};
