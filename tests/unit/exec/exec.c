/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* exec.c - all kernels that this machine can run against exact arithmetic,
 * bit by bit: every type, operation and pair of types; every length, place
 * and number of inputs; all that is near a rounding. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exact.h"
#include "exec/exec.h"
#include "exec/kernels.h"
#include "../tap.h"

#define NTYPES DT_EXEC_NDTYPES
#define NOPS   DT_EXEC_NOPS

enum { MOST_INPUTS = 20 };
/* an element more than the parts that a cast works in, and room to misplace */
enum { MANY = 4099, ROOM = MANY * 8 + 64 };

static const char *const type_name[NTYPES] = {
    "i8", "u8", "i32", "i64", "f16", "bf16", "f32", "f64", "f8e4m3", "f8e5m2"};
static const char *const op_name[NOPS] = {"sum", "min", "max", "avg", "prod"};

static uint32_t random32(void)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) ^ (uint32_t)(state >> 13);
}

/* Elements of a type: some any bits at all, the others of about one size, so
 * that most sums are rounded and few are NaN. */
static void fill(char *buf, size_t count, dt_dtype_t dtype)
{
    static const double special[] = {0.0,       -0.0, 1.0,  -1.0,   INFINITY,
                                     -INFINITY, NAN,  1e-7, -1e-40, 3e38};
    size_t size = dt_dtype_size(dtype);
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = (uint64_t)random32() << 32 | random32();
        uint32_t kind = random32() % 16;
        double x = (double)(int32_t)random32() / (1 << 30);
        memcpy(buf + i * size, &bits, size);
        if (kind < 4 || !dt_exec_is_float(dtype))
            continue;
        if (kind == 4)
            x = special[random32() % 10];
        exact_cast(buf + i * size, dtype, &x, DT_DTYPE_F64, 1);
    }
}

/* where two results first differ, told of; count if nowhere */
static size_t differ(const void *got, const void *expected, size_t count,
                     dt_dtype_t dtype)
{
    size_t size = dt_dtype_size(dtype);
    for (size_t i = 0; i < count; i++) {
        const char *a = (const char *)got + i * size;
        const char *b = (const char *)expected + i * size;
        uint64_t x = 0, y = 0;
        memcpy(&x, a, size);
        memcpy(&y, b, size);
        if (x != y) {
            diag("element %zu of %zu: %#llx instead of %#llx", i, count,
                 (unsigned long long)x, (unsigned long long)y);
            return i;
        }
    }
    return count;
}

/* ---- folds ---- */

static char input[MOST_INPUTS][ROOM], output[ROOM], expected[ROOM];

/* what an average is divided by; 0: it is not */
static const size_t divisors[] = {
    0,   1,   2,   3,     7,     64,      128,
    200, 256, 300, 65536, 65537, 1 << 24, (size_t)1 << 31};
#define NDIVISORS (sizeof(divisors) / sizeof(divisors[0]))

/* Into several places at once, the last of which may be an input; aligned for
 * writing past the caches, all alike, or anyhow; and divided. */
static bool fold_to_is_exact(const void *const *in, size_t n, size_t count,
                             dt_dtype_t dtype, dt_op_t op, double scale)
{
    static _Alignas(64) char places[3][ROOM + 64];
    const size_t bytes = count * dt_dtype_size(dtype), nout = random32() % 4;
    const size_t kind = random32() % 3, alike = random32() % 9 * 8;
    void *at[4] = {NULL};
    for (size_t o = 0; o < nout; o++) {
        size_t skip = kind == 0 ? 64 : kind == 1 ? alike + 8 : 1 + 7 * o;
        at[o] = places[o] + skip;
        places[o][skip - 1] = places[o][skip + bytes] = 77;
    }
    at[nout] = (void *)(uintptr_t)in[random32() % n];
    const struct dt_exec_out out = {
        .at = at,
        .n = nout + 1,
        .stream = random32() % 2,
        .divisor = op == DT_OP_AVG ? divisors[random32() % NDIVISORS] : 7};
    if (op == DT_OP_AVG && out.divisor)
        exact_divide(expected, count, dtype, out.divisor);
    dt_exec_reduce_to(&out, in, n, count, dtype, op, scale);
    bool exact = differ(at[nout], expected, count, dtype) == count;
    for (size_t o = 0; o < nout; o++)
        exact = exact && differ(at[o], expected, count, dtype) == count &&
                ((char *)at[o])[-1] == 77 && ((char *)at[o])[bytes] == 77;
    return exact;
}

/* n inputs of count elements, all anywhere; the result also over an input */
static bool fold_is_exact(size_t n, size_t count, dt_dtype_t dtype, dt_op_t op)
{
    size_t bytes = count * dt_dtype_size(dtype);
    const void *in[MOST_INPUTS];
    bool scaled = dt_exec_is_float(dtype) &&
                  (op == DT_OP_SUM || op == DT_OP_AVG) && random32() % 2;
    double scale = scaled ? (double)random32() / (1u << 30) : 1;
    char *dst = output + 1 + random32() % 60, *before = dst - 1;
    for (size_t k = 0; k < n; k++) {
        char *place = input[k] + random32() % 64;
        fill(place, count, dtype);
        in[k] = place;
    }
    exact_fold(expected, in, n, count, dtype, op, scale);
    *before = dst[bytes] = 77;
    dt_exec_reduce_n(dst, in, n, count, dtype, op, scale);
    bool exact = differ(dst, expected, count, dtype) == count &&
                 *before == 77 && dst[bytes] == 77;
    exact = exact && fold_to_is_exact(in, n, count, dtype, op, scale);
    if (!exact)
        diag("%s of %zu inputs of %zu elements, scale %a", op_name[op], n,
             count, scale);
    return exact;
}

static void folds(const char *set, dt_dtype_t dtype)
{
    bool exact = true;
    for (dt_op_t op = 0; op < NOPS; op++) {
        for (size_t count = 0; exact && count <= 100; count++)
            exact = fold_is_exact(1 + count % 4, count, dtype, op);
        for (size_t n = 1; exact && n <= MOST_INPUTS; n++)
            exact = fold_is_exact(n, 130 + n, dtype, op);
        exact = exact && fold_is_exact(2, MANY, dtype, op);
    }
    ok(exact, "%s: %s: every operation, length, place, number of inputs", set,
       type_name[dtype]);
}

/* every pair of codes of a type of 8 bits */
static void all_pairs(const char *set, dt_dtype_t dtype)
{
    static unsigned char a[65536], b[65536], got[65536], want[65536];
    const void *const in[] = {a, b};
    bool exact = true;
    for (size_t i = 0; i < 65536; i++) {
        a[i] = (unsigned char)i;
        b[i] = (unsigned char)(i >> 8);
    }
    for (dt_op_t op = 0; op < NOPS; op++) {
        exact_fold(want, in, 2, 65536, dtype, op, 1);
        dt_exec_reduce(got, a, b, 65536, dtype, op);
        exact = exact && differ(got, want, 65536, dtype) == 65536;
    }
    ok(exact, "%s: %s: every operation on every pair", set, type_name[dtype]);
}

/* ---- casts ---- */

/* Numbers of `wide` at, between and next to those of a type: each code as it
 * is, the middle to the next code, and the neighbours of that middle. */
static size_t near_roundings(void *wide, dt_dtype_t wide_type, dt_dtype_t dtype)
{
    uint32_t ncodes = 1u << (8 * dt_dtype_size(dtype));
    size_t count = 0;
    for (uint32_t code = 0; code < ncodes; code++) {
        uint32_t next = code + 1;
        double x, y;
        exact_cast(&x, DT_DTYPE_F64, &code, dtype, 1);
        exact_cast(&y, DT_DTYPE_F64, &next, dtype, 1);
        double middle = x + (y - x) / 2;
        double of[4] = {x, middle, nextafter(middle, x), nextafter(middle, y)};
        if (wide_type == DT_DTYPE_F32) {
            of[2] = nextafterf((float)middle, (float)x);
            of[3] = nextafterf((float)middle, (float)y);
        }
        for (size_t i = 0; i < 4; i++)
            exact_cast((char *)wide + count++ * dt_dtype_size(wide_type),
                       wide_type, &of[i], DT_DTYPE_F64, 1);
    }
    return count;
}

static void roundings(const char *set, dt_dtype_t dtype)
{
    static uint64_t wide[4 * 65536], got[4 * 65536], want[4 * 65536];
    bool exact = true;
    for (dt_dtype_t from = DT_DTYPE_F32; from <= DT_DTYPE_F64; from++) {
        size_t count = near_roundings(wide, from, dtype);
        exact_cast(want, dtype, wide, from, count);
        dt_exec_cast(got, dtype, wide, from, count);
        exact = exact && differ(got, want, count, dtype) == count;
    }
    ok(exact, "%s: %s: every number, and what is near a rounding to one", set,
       type_name[dtype]);
}

static void casts(const char *set, dt_dtype_t from)
{
    bool exact = true;
    for (dt_dtype_t to = 0; to < NTYPES; to++) {
        if (!dt_exec_is_float(to) || to == from)
            continue;
        for (size_t count = 0; count <= 100; count++) {
            size_t some = count == 100 ? MANY : count;
            size_t bytes = some * dt_dtype_size(to);
            char *src = input[0] + count % 8, *dst = output + count % 7;
            fill(src, some, from);
            exact_cast(expected, to, src, from, some);
            dst[bytes] = 77;
            dt_exec_cast(dst, to, src, from, some);
            exact = exact && differ(dst, expected, some, to) == some &&
                    dst[bytes] == 77;
        }
    }
    dt_exec_cast(output, from, input[0], from, MANY);
    exact = exact && !memcmp(output, input[0], MANY * dt_dtype_size(from));
    ok(exact, "%s: %s to every floating-point type", set, type_name[from]);
}

/* ---- quotients ---- */

static void quotients(const char *set, dt_dtype_t dtype)
{
    bool exact = true;
    for (size_t i = 1; i < NDIVISORS; i++)
        for (size_t count = 0; count <= 40; count++) {
            size_t some = count == 40 ? MANY : count;
            char *buf = output + count % 8;
            fill(buf, some, dtype);
            memcpy(expected, buf, some * dt_dtype_size(dtype));
            exact_divide(expected, some, dtype, divisors[i]);
            dt_exec_divide(buf, some, dtype, divisors[i]);
            exact = exact && differ(buf, expected, some, dtype) == some;
        }
    ok(exact, "%s: %s: quotients", set, type_name[dtype]);
}

/* ---- a few by hand, so that the exact arithmetic is no law to itself ---- */

static unsigned sum_of(unsigned a, unsigned b, dt_dtype_t dtype)
{
    unsigned sum = 0;
    dt_exec_reduce(&sum, &a, &b, 1, dtype, DT_OP_SUM);
    return sum;
}

static void by_hand(const char *set)
{
    static const struct {
        dt_dtype_t dtype;
        unsigned a, b, sum;
        const char *name;
    } sums[] = {
        {DT_DTYPE_BF16, 0x3f80, 0x3f80, 0x4000, "1 + 1"},
        {DT_DTYPE_BF16, 0x3f80, 0x3b80, 0x3f80, "1 + 1/256, a tie"},
        {DT_DTYPE_BF16, 0x3f81, 0x3b80, 0x3f82, "a tie upward"},
        {DT_DTYPE_BF16, 0x7f7f, 0x7f7f, 0x7f80, "too large"},
        {DT_DTYPE_BF16, 0x7f80, 0xff80, 0x7fc0, "inf - inf"},
        {DT_DTYPE_BF16, 0x8000, 0x8000, 0x8000, "-0 + -0"},
        {DT_DTYPE_BF16, 0x0001, 0x0001, 0x0002, "the least number twice"},
        {DT_DTYPE_F16, 0x3c00, 0x1000, 0x3c00, "1 + 1/2048, a tie"},
        {DT_DTYPE_F16, 0x7bff, 0x4c00, 0x7c00, "65504 + 16, a tie"},
        {DT_DTYPE_F16, 0x0001, 0x8001, 0x0000, "the least number less itself"},
        {DT_DTYPE_F8E4M3, 0x7e, 0x58, 0x7e, "448 + 16, a tie"},
        {DT_DTYPE_F8E4M3, 0x7e, 0x59, 0x7f, "448 + 18 has no code"},
        {DT_DTYPE_F8E4M3, 0xfe, 0xfe, 0x7f, "nor has -448 - 448"},
        {DT_DTYPE_F8E5M2, 0x7b, 0x7b, 0x7c, "57344 twice"},
        {DT_DTYPE_F32, 0xffc12345, 0x7f812345, 0x7fc00000, "NaN + NaN"},
    };
    bool right = true;
    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
        unsigned sum = sum_of(sums[i].a, sums[i].b, sums[i].dtype);
        if (sum != sums[i].sum)
            diag("%s: %s: %#x", type_name[sums[i].dtype], sums[i].name, sum);
        right = right && sum == sums[i].sum;
    }
    float zeros[2] = {0.0f, -0.0f}, out;
    dt_exec_reduce(&out, &zeros[1], &zeros[0], 1, DT_DTYPE_F32, DT_OP_MIN);
    right = right && signbit(out);
    dt_exec_reduce(&out, &zeros[0], &zeros[1], 1, DT_DTYPE_F32, DT_OP_MAX);
    ok(right && !signbit(out), "%s: sums known by hand, and equal operands",
       set);
}

static void one_set(const char *set)
{
    by_hand(set);
    for (dt_dtype_t dtype = 0; dtype < NTYPES; dtype++) {
        folds(set, dtype);
        quotients(set, dtype);
        if (dt_dtype_size(dtype) == 1)
            all_pairs(set, dtype);
        if (dt_exec_is_float(dtype))
            casts(set, dtype);
        if (dt_exec_is_float(dtype) && dt_dtype_size(dtype) <= 2)
            roundings(set, dtype);
    }
}

int main(void)
{
    static const char *const sets[] = {"avx512", "avx2", "neon", "portable"};
    const char *best = dt_exec_name();
    bool first = true;
    ok(dt_exec_supports(DT_DTYPE_F8E5M2, DT_OP_PROD) &&
           !dt_exec_supports((dt_dtype_t)-1, DT_OP_SUM) &&
           !dt_exec_supports(DT_DTYPE_F32, (dt_op_t)NOPS) &&
           !dt_exec_use("abacus"),
       "nonsense is not supported");
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        if (!dt_exec_use(sets[i]))
            continue;
        ok(!strcmp(best, sets[i]) == first, "%s: the best that can is used",
           sets[i]);
        first = false;
        one_set(sets[i]);
    }
    return tap_done();
}
