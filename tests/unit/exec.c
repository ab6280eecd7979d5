/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* exec.c - the corners of the arithmetic: rounding, NaN, zeros, overflow. */
#include <math.h>
#include <string.h>

#include "exec/exec.h"
#include "tap.h"

static uint16_t bf16_sum(uint16_t a, uint16_t b)
{
    uint16_t sum;
    dt_exec_reduce(&sum, &a, &b, 1, DT_DTYPE_BF16, DT_OP_SUM);
    return sum;
}

static void bf16(void)
{
    ok(bf16_sum(0x3f80, 0x3f80) == 0x4000, "bf16: 1 + 1 = 2");
    ok(bf16_sum(0x3f80, 0x3b80) == 0x3f80,
       "bf16: 1 + 1/256 is a tie, to even: 1");
    ok(bf16_sum(0x3f81, 0x3b80) == 0x3f82,
       "bf16: 1 + 1/128 + 1/256 is a tie, to even: up");
    ok(bf16_sum(0x7f7f, 0x7f7f) == 0x7f80, "bf16: too large is infinite");
    uint16_t nan = bf16_sum(0x7f80, 0xff80);
    ok((nan & 0x7f80) == 0x7f80 && (nan & 0x7f), "bf16: inf - inf is NaN");
    ok(bf16_sum(0x8000, 0x8000) == 0x8000, "bf16: -0 + -0 = -0");
}

static void order(void)
{
    float zeros[2] = {0.0f, -0.0f}, nan = NAN, one = 1, out;
    dt_exec_reduce(&out, &zeros[1], &zeros[0], 1, DT_DTYPE_F32, DT_OP_MIN);
    ok(signbit(out), "min of equal operands keeps the first");
    dt_exec_reduce(&out, &zeros[0], &zeros[1], 1, DT_DTYPE_F32, DT_OP_MAX);
    ok(!signbit(out), "so does max");
    dt_exec_reduce(&out, &nan, &one, 1, DT_DTYPE_F32, DT_OP_MIN);
    ok(isnan(out), "NaN wins a min");
    dt_exec_reduce(&out, &one, &nan, 1, DT_DTYPE_F32, DT_OP_MAX);
    ok(isnan(out), "and a max, from either side");
}

static void whole_numbers(void)
{
    int32_t a = INT32_MAX, b = 1, sum;
    dt_exec_reduce(&sum, &a, &b, 1, DT_DTYPE_I32, DT_OP_SUM);
    ok(sum == INT32_MIN, "i32 sums wrap");
    int64_t seven[2] = {7, -7};
    dt_exec_divide(seven, 2, DT_DTYPE_I64, 2);
    ok(seven[0] == 3 && seven[1] == -3, "i64 averages truncate to zero");
}

static void support(void)
{
    ok(dt_exec_supports(DT_DTYPE_BF16, DT_OP_AVG), "bf16 avg is there");
    ok(!dt_exec_supports(DT_DTYPE_F16, DT_OP_SUM), "f16 is not yet");
    ok(!dt_exec_supports((dt_dtype_t)-1, DT_OP_SUM) &&
           !dt_exec_supports(DT_DTYPE_F32, (dt_op_t)4),
       "nor is nonsense");
}

int main(void)
{
    bf16();
    order();
    whole_numbers();
    support();
    return tap_done();
}
