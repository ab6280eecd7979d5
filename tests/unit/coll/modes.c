/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* modes.c - what a rank is to do, and whether it saw what it should. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

static _Atomic int wrong;

void expect(bool cond, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    if (cond || wrong++ >= 5)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fprintf(stderr, "rank %d: %s: %s\n", dt_rank(), text, dt_last_error());
}

const struct mode *begin_mode(const struct mode *modes, int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "all";
    const struct mode *mode = modes;
    while (mode->name && strcmp(mode->name, name) != 0)
        mode++;
    if (!mode->name) {
        fprintf(stderr, "%s: no mode %s\n", argv[0], name);
        exit(64);
    }
    if (mode->before)
        mode->before();
    if (dt_init() != DT_SUCCESS) {
        fprintf(stderr, "dt_init: %s\n", dt_last_error());
        exit(2);
    }
    return mode;
}

int end_mode(const struct mode *mode)
{
    if (mode->leaves)
        return wrong != 0;
    expect(dt_finalize() == DT_SUCCESS, "finalize");
    expect(dt_rank() == DT_ERR_NOT_INITIALIZED, "dt_rank after");
    return wrong != 0;
}
