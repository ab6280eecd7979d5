/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* streams.c - the standard streams of a command line tool. */
#include "common/streams.h"

#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#include "common/progress.h"

void note(FILE *out, const char *fmt, ...)
{
    char text[4096];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    for (char *at = text; *at; at++) /* it may quote foreign text */
        if ((unsigned char)*at < ' ' || *at == '\177')
            *at = '?';
    if (out == stderr) {
        fflush(stdout);
        progress_clear();
    }
    fprintf(out, "%s: %s\n", program, text);
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
