/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tap.h - the Test Anything Protocol for a program of unit tests:
 * ok(...) per fact, `return tap_done();` at the end of main. */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static struct {
    int run, failed;
    bool wrong; /* the last one failed */
} tap;

/* Print one result; name is a printf format. Returns cond. */
__attribute__((format(printf, 2, 3), unused)) static bool
ok(bool cond, const char *name, ...)
{
    va_list ap;
    printf("%sok %d - ", cond ? "" : "not ", ++tap.run);
    va_start(ap, name);
    vprintf(name, ap);
    va_end(ap);
    putchar('\n');
    fflush(stdout);
    if (!cond) {
        fprintf(stderr, "# failed: %d - ", tap.run);
        va_start(ap, name);
        vfprintf(stderr, name, ap);
        va_end(ap);
        putc('\n', stderr);
    }
    tap.wrong = !cond;
    tap.failed += !cond;
    return cond;
}

/* Explain the last result: of a failure on standard error, where prove does not
 * hide it. */
__attribute__((format(printf, 1, 2), unused)) static void diag(const char *fmt,
                                                               ...)
{
    FILE *to = tap.wrong ? stderr : stdout;
    va_list ap;
    fputs("# ", to);
    va_start(ap, fmt);
    vfprintf(to, fmt, ap);
    va_end(ap);
    putc('\n', to);
}

__attribute__((unused)) static int skip_all(const char *why)
{
    printf("1..0 # SKIP %s\n", why);
    return 0;
}

__attribute__((unused)) static int tap_done(void)
{
    printf("1..%d\n", tap.run);
    return tap.failed != 0;
}

#endif
