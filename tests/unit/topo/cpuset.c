/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* cpuset.c - sets of CPUs: parsed, printed, joined. */
#include <string.h>

#include "dt_topo.h"
#include "../tap.h"

static void round_trip(const char *text, const char *want, size_t count)
{
    dt_cpuset_t set;
    struct dt_error err = {""};
    char printed[256] = "";
    bool good = dt_cpuset_parse(text, &set, &err) == DT_SUCCESS &&
                !strcmp(dt_cpuset_print(&set, printed, 256), want) &&
                dt_cpuset_count(&set) == count;
    if (!ok(good, "\"%s\" is \"%s\"", text, want))
        diag("\"%s\" %s", printed, err.text);
}

static void refused(const char *text)
{
    dt_cpuset_t set;
    struct dt_error err = {""};
    dt_cpuset_parse("7", &set, NULL);
    bool good = dt_cpuset_parse(text, &set, &err) == DT_ERR_INVALID_ARG &&
                *err.text && dt_cpuset_has(&set, 7);
    ok(good, "\"%s\" is refused: %s", text, err.text);
}

int main(void)
{
    round_trip("", "", 0);
    round_trip("0", "0", 1);
    round_trip("0-3,8", "0-3,8", 5);
    round_trip("8,0-3", "0-3,8", 5);
    round_trip("1,2,3", "1-3", 3);
    round_trip("0-4095", "0-4095", 4096);
    round_trip("63-64,4095", "63-64,4095", 3);
    static const char *const bad[] = {"-",
                                      "1-",
                                      "3-1",
                                      "4096",
                                      "0-4096",
                                      "1,,2",
                                      ",1",
                                      "1,",
                                      " 1",
                                      "0x1",
                                      "a",
                                      "1-2-3",
                                      "99999999999999999999",
                                      "0-3;4"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        refused(bad[i]);

    dt_cpuset_t a, b, c;
    char text[64];
    dt_cpuset_parse("0-63", &a, NULL);
    dt_cpuset_parse("60-70", &b, NULL);
    dt_cpuset_and(&c, &a, &b);
    ok(!strcmp(dt_cpuset_print(&c, text, 64), "60-63"), "and");
    dt_cpuset_or(&c, &c, &b);
    ok(!strcmp(dt_cpuset_print(&c, text, 64), "60-70"), "or, in place");
    ok(dt_cpuset_equal(&b, &c) && !dt_cpuset_equal(&a, &c), "equal");
    dt_cpuset_remove(&c, 65);
    dt_cpuset_add(&c, 4096);
    ok(!strcmp(dt_cpuset_print(&c, text, 64), "60-64,66-70") &&
           !dt_cpuset_has(&c, 4096) && !dt_cpuset_has(&c, 65),
       "add and remove keep to the limit");
    ok(!strcmp(dt_cpuset_print(&c, text, 8), "60-64"),
       "printing cuts between ranges, never inside a number");
    return tap_done();
}
