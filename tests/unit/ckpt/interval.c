/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* interval.c - when it is time for a checkpoint: the arithmetic. */
#include <math.h>
#include <string.h>

#include "ckpt/interval.h"
#include "ckpt/tier.h"
#include "../tap.h"

static void test_parse(void)
{
    static const struct {
        const char *text;
        double seconds; /* -1: refused */
    } cases[] = {
        {"auto", 0},        {"90s", 90},
        {"10m", 600},       {"2h", 7200},
        {"1d", 86400},      {"10", 600},
        {"1:30", 90},       {"01:30:00", 5400},
        {"1-2", 93600},     {"1-2:30", 95400},
        {"1-0:0:5", 86405}, {"", -1},
        {"0", -1},          {"0s", -1},
        {"-5", -1},         {"10x", -1},
        {"m", -1},          {"10m5", -1},
        {"1:2:3:4", -1},    {"1-", -1},
        {"1:", -1},         {"automatic", -1},
        {"1-2-3", -1},      {" 5m", -1},
        {"5m ", -1},        {"9999d", -1},
        {"1.5h", -1},       {"99999999999999999999", -1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        double seconds = -1;
        struct dt_error err = {0};
        dt_result_t rc = dt_interval_parse(cases[i].text, "X", &seconds, &err);
        ok(seconds == cases[i].seconds &&
               rc == (seconds < 0 ? DT_ERR_INVALID_ARG : DT_SUCCESS),
           "\"%s\" is %g seconds%s%s", cases[i].text, cases[i].seconds,
           *err.text ? ": " : "", err.text);
    }
}

static void test_young(void)
{
    ok(fabs(dt_interval_mtbf(0, 1) - 264 * 86400.) < 1, "one node");
    ok(fabs(dt_interval_mtbf(3, 2048) - 264 * 86400. / 2048 / 4) < 1,
       "2048 nodes after 3 restarts");
    ok(fabs(dt_interval_young(2, 10000) - 200) < 1e-6, "sqrt(2 * 2 * 10000)");
    ok(dt_interval_young(100, 10) == 100, "no less than the cost");
}

static void test_steps(void)
{
    struct dt_pace pace = {.step_s = 2, .left_s = -1};
    ok(dt_interval_steps(600, &pace, 0) == 300, "600 s of 2 s");
    ok(dt_interval_steps(600, &pace, 590) == 5, "590 of them over");
    ok(dt_interval_steps(600, &pace, 700) == 1, "more than all over");
    ok(dt_interval_steps(DT_INTERVAL_NEVER, &pace, 0) == INT64_MAX, "never");
    ok(dt_interval_last(&pace, 5) == INT64_MAX, "no limit of time");
    pace.left_s = 1000;
    ok(dt_interval_last(&pace, 20) == 449,
       "1000 s left: 2 * 20 and 60 s before the end");
    pace.left_s = 10;
    ok(dt_interval_last(&pace, 20) == 0, "at once");
    pace.step_s = 0;
    ok(dt_interval_steps(600, &pace, 0) == INT64_MAX &&
           dt_interval_last(&pace, 5) == INT64_MAX,
       "unknown steps");
    pace.step_s = 1e-300;
    ok(dt_interval_steps(600, &pace, 0) == INT64_MAX, "too many to count");
}

static void test_keep(void)
{
    struct dt_keep keep = {0};
    struct dt_error err = {0};
    double rate = 0;
    ok(dt_tier_parse_keep("3", "X", &keep, &err) == DT_SUCCESS &&
           keep.newest == 3 && keep.every == 0,
       "keep 3");
    ok(dt_tier_parse_keep("2,every:1000", "X", &keep, &err) == DT_SUCCESS &&
           keep.newest == 2 && keep.every == 1000,
       "keep 2,every:1000");
    static const char *const bad[] = {"",          "-1",       "x",
                                      "3,",        "3,every:", "3,every:0",
                                      "3,5",       "3 ",       "99999999999",
                                      "3,every:5x"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ok(dt_tier_parse_keep(bad[i], "X", &keep, &err) == DT_ERR_INVALID_ARG &&
               keep.newest == 2,
           "keep is not \"%s\": %s", bad[i], err.text);
    ok(dt_tier_parse_rate("500", "X", &rate, &err) == DT_SUCCESS &&
           rate == 500e6 &&
           dt_tier_parse_rate("5M", "X", &rate, &err) == DT_ERR_INVALID_ARG &&
           dt_tier_parse_rate("-1", "X", &rate, &err) == DT_ERR_INVALID_ARG,
       "a rate: %s", err.text);
}

int main(void)
{
    test_parse();
    test_young();
    test_steps();
    test_keep();
    return tap_done();
}
