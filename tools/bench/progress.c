/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* progress.c - the progress line of a long run. */
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

enum { PAUSE_US = 500000 };

double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

void progress_start(struct progress *progress, bool rank0)
{
    *progress = (struct progress){.on = rank0 && isatty(STDERR_FILENO),
                                  .last = now_us()};
}

void progress_show(struct progress *progress, const char *fmt, ...)
{
    va_list args;
    if (!progress->on || now_us() < progress->last + PAUSE_US)
        return;
    fputs("\r\033[K", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fflush(stderr);
    progress->last = now_us();
    progress->shown = true;
}

void progress_clear(struct progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
    progress->shown = false;
}
