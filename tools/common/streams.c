/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* streams.c - the standard streams of a command line tool. */
#include "common/streams.h"

#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/printable.h"
#include "common/progress.h"

enum { LINE = 8192 }; /* bytes; more than two paths have */

static void put(FILE *out, const char *before, const char *fmt, va_list args)
{
    char text[LINE], shown[4 * LINE]; /* an escape has four characters */
    vsnprintf(text, sizeof(text), fmt, args);
    dt_printable(shown, sizeof(shown), text);
    fprintf(out, "%s%s\n", before, shown);
}

void print_line(FILE *out, const char *fmt, ...)
{
    va_list args;
    progress_clear();
    va_start(args, fmt);
    put(out, "", fmt, args);
    va_end(args);
}

void note(FILE *out, const char *fmt, ...)
{
    char before[64];
    va_list args;
    if (out == stderr) {
        fflush(stdout);
        progress_clear();
    }
    snprintf(before, sizeof(before), "%s: ", program);
    va_start(args, fmt);
    put(out, before, fmt, args);
    va_end(args);
}

void streams_fill(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0) /* then open() returns it: the lowest */
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

bool streams_flush(void)
{
    bool lost = fflush(stdout) || ferror(stdout);
    if (lost)
        note(stderr, "the output could not be written");
    return !lost;
}
