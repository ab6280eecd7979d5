/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* terminal.c - what the user sees: messages, JSON, and the progress of a long
 * run. */
#include "text/terminal.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ckpt/format/format.h"
#include "text/describe.h"

/* ---- progress ---- */

enum { WIDTH = 24 };
#define PAUSE 0.2 /* seconds */

/* There is one, since a terminal has one last line. */
static struct {
    char what[80];
    size_t total, done;
    double begin, last;
    bool on, shown;
} bar;

double clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void progress_start(const char *what, size_t total)
{
    bar.on = isatty(STDERR_FILENO);
    bar.total = total;
    bar.done = 0;
    bar.begin = bar.last = clock_seconds();
    snprintf(bar.what, sizeof(bar.what), "%s", what);
}

void progress_add(size_t bytes)
{
    static const char full[] = "########################";
    char done[SIZE_TEXT], total[SIZE_TEXT], rate[SIZE_TEXT];
    bar.done += bytes;
    double now = bar.on ? clock_seconds() : 0;
    if (!bar.on || now < bar.last + PAUSE)
        return;
    double part = bar.total ? (double)bar.done / (double)bar.total : 1;
    part = part > 1 ? 1 : part;
    fprintf(stderr, "\r\033[K%s [%-*.*s] %3.0f %%  %s of %s, %s/s", bar.what,
            WIDTH, (int)(part * WIDTH), full, 100 * part,
            size_text(done, bar.done), size_text(total, bar.total),
            size_text(rate, (uint64_t)((double)bar.done / (now - bar.begin))));
    fflush(stderr);
    bar.last = now;
    bar.shown = true;
}

void progress_clear(void)
{
    if (bar.shown)
        fputs("\r\033[K", stderr);
    bar.shown = false;
}

void progress_end(void)
{
    progress_clear();
    bar.on = false;
}

/* ---- messages and JSON ---- */

void note(const char *fmt, ...)
{
    char text[4096];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    for (char *at = text; *at; at++) /* it may quote foreign text */
        if ((unsigned char)*at < ' ' || *at == '\177')
            *at = '?';
    fflush(stdout);
    progress_clear();
    fprintf(stderr, "dt-ckpt: %s\n", text);
}

dt_result_t print_json(json_t *root, struct dt_error *err)
{
    if (!root)
        return dt_no_memory(err);
    int rc = json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(root);
    return rc ? dt_error_set(err, DT_ERR_IO, "the JSON could not be written")
              : DT_SUCCESS;
}
