/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* log.c - lines of the plugin, one each. */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>

#include <slurm/spank.h>

#include "base/printable.h"

enum { LINE = 1024 };

void dt_log_error(const char *text)
{
    char line[LINE];
    dt_printable(line, sizeof(line), text);
    slurm_error("dt: %s", line);
}

void dt_log_note(const char *format, ...)
{
    char text[LINE], line[LINE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    dt_printable(line, sizeof(line), text);
    slurm_info("dt: note: %s", line);
}
