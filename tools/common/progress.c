/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* progress.c - the progress line of a long run, on stderr. */
#include "common/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/printable.h"

static struct {
    double pause, last; /* us */
    bool on, shown;
} line;

double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

void progress_start(bool on, double pause_us)
{
    line.on = on && isatty(STDERR_FILENO);
    line.pause = pause_us;
    line.last = now_us();
}

bool progress_due(void)
{
    return line.on && now_us() >= line.last + line.pause;
}

void progress_show(const char *fmt, ...)
{
    char text[512], shown[4 * sizeof(text)];
    va_list args;
    if (!progress_due())
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    dt_printable(shown, sizeof(shown), text);
    fprintf(stderr, "\r\033[K%s", shown);
    fflush(stderr);
    line.last = now_us();
    line.shown = true;
}

void progress_clear(void)
{
    if (line.shown)
        fputs("\r\033[K", stderr);
    line.shown = false;
}

void progress_end(void)
{
    progress_clear();
    line.on = false;
}
