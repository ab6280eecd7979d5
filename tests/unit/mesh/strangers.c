/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* strangers.c - places for connections that have proved nothing, and the lines
 * about those refused. */
#include "mesh/strangers.h"

#include <string.h>

#include "../tap.h"

static const uint8_t one[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 7},
                     two[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 8};

static void test_places(void)
{
    static const int args[64];
    struct dt_strangers_count count = {0};
    const void *close;
    for (int i = 0; i < DT_STRANGERS_OF_SOURCE; i++)
        dt_strangers_add(&count, one, one, 1000 + i, &args[i]);
    ok(!dt_strangers_place(&count, 64, 1000, &close),
       "a source has used up its places");
    ok(dt_strangers_place(&count, 64, 1000 + DT_STRANGERS_YIELD_MS, &close) &&
           close == &args[0],
       "but its oldest yields when it had its time");
    count = (struct dt_strangers_count){0};
    for (int i = 0; i < 63; i++)
        dt_strangers_add(&count, two, one, 1000 - i, &args[i]);
    ok(dt_strangers_place(&count, 64, 1000, &close) && !close,
       "another source has a place then");
    dt_strangers_add(&count, two, one, 900, &args[63]);
    ok(!dt_strangers_place(&count, 64, 1000, &close), "up to those of all");
    ok(dt_strangers_place(&count, 64, 2000, &close) && close == &args[63],
       "of which the oldest yields");
}

static void test_lines(void)
{
    static struct dt_strangers strangers;
    uint8_t ip[16];
    size_t lines = 0;
    const char *line = dt_strangers_refused(&strangers, one, "no proof", 5);
    ok(line &&
           !strcmp(line, "a connection from 10.0.0.7 was refused: no proof"),
       "the first of a source is reported: %s", line);
    for (int i = 0; i < 998; i++)
        lines += !!dt_strangers_refused(&strangers, one, "no proof", 6);
    ok(lines == 0, "more are not, for a minute");
    line = dt_strangers_refused(&strangers, two, "no proof", 7);
    ok(line && strstr(line, "10.0.0.8"), "but another source is");
    line = dt_strangers_refused(&strangers, one, "no proof",
                                5 + DT_STRANGERS_LINE_MS);
    ok(line && strstr(line, "999 connections from 10.0.0.7 were refused"),
       "then their number: %s", line);
    ok(!dt_strangers_total(&strangers), "all are reported");
    memcpy(ip, one, sizeof(ip));
    for (int i = 0; i < 256; i++) {
        ip[13] = (uint8_t)i;
        lines += !!dt_strangers_refused(&strangers, ip, "no proof",
                                        6 + DT_STRANGERS_LINE_MS);
    }
    ok(lines > 0 && lines <= DT_STRANGERS_SOURCES,
       "many sources make %zu lines", lines);
    line = dt_strangers_total(&strangers);
    ok(line && strstr(line, "1257 connections were refused in all"),
       "the total at the end: %s", line);
}

int main(void)
{
    test_places();
    test_lines();
    return tap_done();
}
