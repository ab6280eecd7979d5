/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* bench-check.c - dt-bench's inputs add up to what it expects, in any order,
 * and whatever goes wrong with them is counted. */
#include <math.h>
#include <string.h>

#include "measure/check.h"
#include "measure/element.h"
#include "../tap.h"

enum { PERIOD = 331, MOST_RANKS = 300 };

static unsigned char input[MOST_RANKS][PERIOD * 8], expected[PERIOD * 8];

static double combine(dt_op_t op, double a, double b)
{
    return op == DT_OP_MIN    ? fmin(a, b)
           : op == DT_OP_MAX  ? fmax(a, b)
           : op == DT_OP_PROD ? a * b
                              : a + b;
}

/* Is value a number of dtype? Whole ones may wrap in a product. */
static bool exact(dt_dtype_t dtype, double value)
{
    unsigned char bytes[8];
    if (!dtype_is_float(dtype))
        return value == trunc(value);
    number_store(bytes, dtype, value);
    return number_load(bytes, dtype) == value;
}

/* Reduce element i in steps, each of which is exact: from the first rank up,
 * or two halves that come together. */
static bool reduce(const struct check_kind *kind, size_t i, bool halves,
                   double *result)
{
    size_t size = dt_dtype_size(kind->dtype);
    double part[2] = {0, 0};
    bool all = true;
    for (int r = 0; r < kind->ranks; r++) {
        int half = halves && kind->ranks > 1 && r >= kind->ranks / 2;
        double value = number_load(&input[r][i * size], kind->dtype);
        bool begins = r == 0 || (half && r == kind->ranks / 2);
        part[half] = begins ? value : combine(kind->op, part[half], value);
        all &= exact(kind->dtype, part[half]);
    }
    *result = halves && kind->ranks > 1 ? combine(kind->op, part[0], part[1])
                                        : part[0];
    return all && exact(kind->dtype, *result);
}

static void make(const struct check_kind *kind)
{
    for (int r = 0; r < kind->ranks; r++)
        check_input(input[r], PERIOD, kind, r);
    check_result(expected, PERIOD, kind);
}

/* As libdt has it: whole numbers wrap, and their quotient is truncated. */
static bool agrees(const struct check_kind *kind, size_t i, double result)
{
    unsigned char bytes[8];
    size_t size = dt_dtype_size(kind->dtype);
    if (kind->op == DT_OP_AVG)
        result /= kind->ranks;
    if (!dtype_is_float(kind->dtype))
        result = trunc(result);
    number_store(bytes, kind->dtype, result + 0.0);
    return !memcmp(bytes, &expected[i * size], size);
}

static void test_kind(const struct check_kind *kind)
{
    size_t inexact = 0, wrong = 0;
    make(kind);
    for (int halves = 0; halves < 2; halves++)
        for (size_t i = 0; i < PERIOD; i++) {
            double result;
            inexact += !reduce(kind, i, halves, &result);
            wrong += !agrees(kind, i, result);
        }
    if (inexact || wrong)
        diag("%s %s, %d ranks: %zu inexact, %zu wrong", dtype_name(kind->dtype),
             op_name(kind->op), kind->ranks, inexact, wrong);
    ok(!inexact && !wrong, "%s %s, %d ranks: exact in any order",
       dtype_name(kind->dtype), op_name(kind->op), kind->ranks);
}

/* Without rank `lost`, or with it twice, how many elements show it? Each rank
 * counts somewhere. */
static void test_loss(const struct check_kind *kind)
{
    size_t size = dt_dtype_size(kind->dtype), unseen = 0;
    make(kind);
    for (int lost = 0; lost < kind->ranks; lost++) {
        size_t seen = 0;
        for (size_t i = 0; i < PERIOD; i++) {
            double result = 0;
            bool begun = false;
            for (int r = 0; r < kind->ranks; r++) {
                double value = number_load(&input[r][i * size], kind->dtype);
                if (r == lost)
                    continue;
                result = begun ? combine(kind->op, result, value) : value;
                begun = true;
            }
            seen += !agrees(kind, i, result);
        }
        unseen += !seen;
    }
    ok(!unseen, "%s %s, %d ranks: a lost contribution shows",
       dtype_name(kind->dtype), op_name(kind->op), kind->ranks);
}

static void test_numbers(void)
{
    static const unsigned bits[] = {1, 1, 4, 8, 2, 2, 4, 8, 1, 1};
    unsigned char bytes[8];
    bool back = true;
    for (int d = 0; d < NUMBER_DTYPES; d++) {
        dt_dtype_t dtype = (dt_dtype_t)d, found;
        back &= dt_dtype_size(dtype) == bits[d];
        back &= dtype_by_name(dtype_name(dtype), &found) && found == dtype;
        for (double value = 0; value <= 8; value++) {
            number_store(bytes, dtype, value);
            back &= number_load(bytes, dtype) == value;
        }
    }
    ok(back, "small numbers are the same in each type");
    uint16_t half = 0x3c00, brain = 0xbf80;
    uint8_t e4m3 = 0x7e, e5m2 = 0x01, nan = 0x7f;
    ok(number_load(&half, DT_DTYPE_F16) == 1, "half: 1");
    ok(number_load(&brain, DT_DTYPE_BF16) == -1, "bfloat16: -1");
    ok(number_load(&e4m3, DT_DTYPE_F8E4M3) == 448, "f8e4m3: the largest, 448");
    ok(number_load(&e5m2, DT_DTYPE_F8E5M2) == ldexp(1, -16),
       "f8e5m2: the smallest, 2^-16");
    ok(isnan(number_load(&nan, DT_DTYPE_F8E4M3)), "f8e4m3: NaN");
    float f = 0.15625f;
    number_store(bytes, DT_DTYPE_F32, 0.15625);
    ok(!memcmp(bytes, &f, sizeof(f)), "float: as the machine has it");
}

static void test_compare(void)
{
    enum { COUNT = 3 * PERIOD + 11, FIRST = 55 };
    static float table[PERIOD], buf[COUNT];
    const struct check_kind sum = {DT_DTYPE_F32, DT_OP_SUM, 4, 1};
    const struct check_kind avg = {DT_DTYPE_F32, DT_OP_AVG, 3, 1};
    check_result(table, PERIOD, &sum);
    check_tile(buf, COUNT, table, PERIOD, 4, FIRST);
    ok(buf[PERIOD] == buf[0] && buf[0] == table[FIRST], "a table repeats");
    ok(!check_compare(buf, COUNT, table, PERIOD, 4, FIRST, &sum),
       "what is right is not wrong");
    ok(check_compare(buf, COUNT, table, PERIOD, 4, FIRST + 1, &sum) > COUNT / 2,
       "what is one place off is wrong");
    buf[3] += 1;
    buf[COUNT - 1] += 1;
    buf[PERIOD] = NAN;
    ok(check_compare(buf, COUNT, table, PERIOD, 4, FIRST, &sum) == 3,
       "three wrong elements are counted, NaN and the last among them");
    float zero = -0.0f, wanted = 0;
    ok(!check_compare(&zero, 1, &wanted, 1, 4, 0, &sum), "-0 is 0");
    ok(check_compare(&zero, 1, &wanted, 1, 4, 0, NULL) == 1,
       "but other bits where they are only moved");
    float third = nextafterf(7, 8), seven = 7;
    ok(!check_compare(&third, 1, &seven, 1, 4, 0, &avg),
       "a quotient may be off by its last bit");
    ok(check_compare(&third, 1, &seven, 1, 4, 0, &sum) == 1, "a sum may not");
    third = nextafterf(nextafterf(nextafterf(7, 8), 8), 8);
    ok(check_compare(&third, 1, &seven, 1, 4, 0, &avg) == 1,
       "nor a quotient by more");
}

static void test_raw(void)
{
    static unsigned char a[PERIOD], b[PERIOD];
    check_raw(a, PERIOD, DT_DTYPE_U8, 1, 2);
    check_raw(b, PERIOD, DT_DTYPE_U8, 1, 3);
    ok(check_compare(a, PERIOD, b, PERIOD, 1, 0, NULL) > PERIOD / 2,
       "two sources are unlike");
    check_raw(b, PERIOD, DT_DTYPE_U8, 2, 2);
    ok(check_compare(a, PERIOD, b, PERIOD, 1, 0, NULL) > PERIOD / 2,
       "so is one in two checks");
}

int main(void)
{
    static const int ranks[] = {1, 2, 3, 4, 7, 8, 9, 16, 17, 300};
    test_numbers();
    for (int d = 0; d < NUMBER_DTYPES; d++)
        for (int o = 0; o < NUMBER_OPS; o++)
            for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
                const struct check_kind kind = {(dt_dtype_t)d, (dt_op_t)o,
                                                ranks[i], 5};
                test_kind(&kind);
                if (ranks[i] > 1 && ranks[i] < 20)
                    test_loss(&kind);
            }
    test_compare();
    test_raw();
    return tap_done();
}
