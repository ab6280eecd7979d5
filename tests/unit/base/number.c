/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* number.c - numbers in text: limits, what is refused, and the locale. */
#include "base/number.h"

#include <errno.h>
#include <locale.h>
#include <string.h>

#include "../tap.h"

static void test_whole(void)
{
    static const struct {
        const char *text;
        int64_t min, max, value; /* -99: refused */
    } cases[] = {
        {"0", 0, 9, 0},
        {"007", 0, 9, 7},
        {"9", 0, 9, 9},
        {"10", 0, 9, -99},
        {"-1", 0, 9, -99},
        {"-1", -1, 9, -1},
        {"-2", -1, 9, -99},
        {"-0", 0, 9, -99},
        {"", 0, 9, -99},
        {NULL, 0, 9, -99},
        {"-", -9, 9, -99},
        {"+1", 0, 9, -99},
        {" 1", 0, 9, -99},
        {"1 ", 0, 9, -99},
        {"1x", 0, 9, -99},
        {"0x1", 0, 9, -99},
        {"\xd9\xa1", 0, 9, -99},
        {"9223372036854775807", 0, INT64_MAX, INT64_MAX},
        {"9223372036854775808", 0, INT64_MAX, -99},
        {"-9223372036854775807", INT64_MIN, 0, -INT64_MAX},
        {"18446744073709551616", 0, INT64_MAX, -99},
    };
    int wrong = 0;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t value = -99;
        errno = 77;
        bool good =
            dt_number_parse(cases[i].text, cases[i].min, cases[i].max, &value);
        if (value != cases[i].value || good == (value == -99) || errno != 77) {
            diag("case %zu, \"%s\"", i, cases[i].text);
            wrong++;
        }
    }
    ok(wrong == 0, "whole numbers within their limits, and nothing else");
}

static void test_scan(void)
{
    const char *text = "12ffg", *at = text;
    uint64_t value;
    ok(dt_number_scan(&at, 10, 12, &value) && value == 12 && at == text + 2,
       "a number inside a text ends at the first byte that is no digit");
    ok(dt_number_scan(&at, 16, 255, &value) && value == 255 && *at == 'g',
       "hexadecimal digits");
    ok(!dt_number_scan(&at, 16, 255, &value) && *at == 'g' && value == 255,
       "no digit: nothing changes");
    at = text;
    ok(!dt_number_scan(&at, 10, 11, &value) && at == text && value == 255,
       "too large: nothing changes");
    at = "ffffffffffffffff";
    ok(dt_number_scan(&at, 16, UINT64_MAX, &value) && value == UINT64_MAX,
       "the largest number");
    at = "10000000000000000";
    ok(!dt_number_scan(&at, 16, UINT64_MAX, &value), "one more");
    at = "18446744073709551615";
    ok(dt_number_scan(&at, 10, UINT64_MAX, &value) && value == UINT64_MAX,
       "the largest in decimal digits");
    at = "18446744073709551616";
    ok(!dt_number_scan(&at, 10, UINT64_MAX, &value), "one more");
}

static void test_sizes(void)
{
    static const struct {
        const char *text;
        uint64_t max, value; /* 1: refused */
    } cases[] = {
        {"8", 100, 8},
        {"100", 100, 100},
        {"101", 100, 1},
        {"64K", 1 << 20, 64 << 10},
        {"64k", 1 << 20, 64 << 10},
        {"1M", 1 << 20, 1 << 20},
        {"2M", 1 << 20, 1},
        {"3G", UINT64_MAX, 3ULL << 30},
        {"1T", UINT64_MAX, 1ULL << 40},
        {"16777215T", UINT64_MAX, 16777215ULL << 40},
        {"16777216T", UINT64_MAX, 1},
        {"7", 100, 1}, /* less than the least */
        {"1KB", UINT64_MAX, 1},
        {"K", UINT64_MAX, 1},
        {"-8", UINT64_MAX, 1},
        {"8 ", UINT64_MAX, 1},
        {"8.5K", UINT64_MAX, 1},
        {"", UINT64_MAX, 1},
        {NULL, UINT64_MAX, 1},
    };
    int wrong = 0;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t value = 1;
        dt_result_t rc = dt_number_read_size("", cases[i].text, 8, cases[i].max,
                                             &value, NULL);
        if (value != cases[i].value || (rc == DT_SUCCESS) == (value == 1)) {
            diag("case %zu, \"%s\"", i, cases[i].text);
            wrong++;
        }
    }
    ok(wrong == 0, "sizes with and without a suffix");
}

static void test_reals(void)
{
    static const char *const bad[] = {"",    "x",   " 1",   "1 ",   "+1", "inf",
                                      "nan", "0x1", "1,5",  "1e",   ".",  "2",
                                      "-1",  NULL,  "1e99", "1e999"};
    double value = 0;
    int wrong = 0;
    /* one with a decimal comma, if the machine has any */
    bool comma = setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
    ok(dt_number_read_real("", "2.5e-7", 1e-18, 1, &value, NULL) ==
               DT_SUCCESS &&
           value == 2.5e-7,
       "a number with fraction and exponent%s",
       comma ? ", where the locale has a decimal comma" : "");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        wrong += dt_number_read_real("", bad[i], 1e-18, 1.5, &value, NULL) ==
                 DT_SUCCESS;
    ok(wrong == 0, "what is no such number is refused");
    setlocale(LC_ALL, "C");
}

static void test_errors(void)
{
    struct dt_error err;
    int64_t value = 5;
    uint64_t bytes;
    double real;
    dt_result_t rc =
        dt_number_read("DT_TIMEOUT=", "soon", 1, 604800, &value, &err);
    ok(rc == DT_ERR_INVALID_ARG && value == 5, "an error changes nothing");
    ok(!strcmp(err.text,
               "DT_TIMEOUT=soon: expected a whole number from 1 to 604800"),
       "its text: %s", err.text);
    dt_number_read_size("-b ", "x", 1, 64, &bytes, &err);
    ok(!strcmp(err.text, "-b x: expected bytes from 1 to 64, such as 4096, "
                         "64K, 16M or 1G"),
       "that of a size: %s", err.text);
    dt_number_read_real("alpha ", "x", 1e-18, 1e6, &real, &err);
    ok(!strcmp(err.text, "alpha x: expected a number from 1e-18 to 1e+06"),
       "that of a number with a fraction: %s", err.text);
}

int main(void)
{
    test_whole();
    test_scan();
    test_sizes();
    test_reals();
    test_errors();
    return tap_done();
}
