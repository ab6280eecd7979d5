/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fashion_log.c - progress lines and the CSV file. */
#include "fashion_log.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CSV_EVERY  20 /* steps */
#define LINE_EVERY 200

static double now(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int log_open(struct log *log, const char *path, bool active, bool quiet,
             int restart)
{
    *log = (struct log){.active = active, .quiet = quiet, .restart = restart};
    if (!active)
        return 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    log->terminal = isatty(STDOUT_FILENO);
    log->shown_at = now(CLOCK_MONOTONIC);
    if (!path)
        return 0;
    log->csv = fopen(path, "ae");
    if (!log->csv)
        return -1;
    if (fseek(log->csv, 0, SEEK_END) == 0 && ftell(log->csv) == 0)
        fputs("time,restart,event,epoch,step,value,note\n", log->csv);
    return 0;
}

void log_close(struct log *log)
{
    if (log->line_open)
        putchar('\n');
    if (log->csv)
        fclose(log->csv);
    *log = (struct log){0};
}

void log_event(struct log *log, const char *event, int64_t epoch, int64_t step,
               double value, const char *note)
{
    if (!log->csv)
        return;
    fprintf(log->csv, "%.3f,%d,%s,%lld,%lld,%.6g,%s\n", now(CLOCK_REALTIME),
            log->restart, event, (long long)epoch, (long long)step, value,
            note);
    if (fflush(log->csv) == 0)
        return;
    int error = errno;
    fclose(log->csv);
    log->csv = NULL;
    log_warn(log, "no more metrics: %s", strerror(error));
}

void log_step(struct log *log, int64_t epoch, int64_t step, double loss,
              size_t samples)
{
    log->loss += loss;
    log->samples += samples;
    log->shown += samples;
    if (!log->active || step % CSV_EVERY)
        return;

    double mean = log->loss / (double)log->samples;
    log_event(log, "loss", epoch, step, mean, "");
    log->loss = 0;
    log->samples = 0;
    if (log->quiet || (!log->terminal && step % LINE_EVERY))
        return;

    double t = now(CLOCK_MONOTONIC);
    printf("%sepoch %3lld  step %6lld  loss %.4f  %8.0f images/s%s",
           log->terminal ? "\r" : "", (long long)epoch + 1, (long long)step,
           mean, (double)log->shown / (t - log->shown_at),
           log->terminal ? "\033[K" : "\n");
    fflush(stdout);
    log->line_open = log->terminal;
    log->shown = 0;
    log->shown_at = t;
}

static void say(struct log *log, FILE *to, const char *fmt, va_list ap)
{
    if (log->line_open)
        fputs("\r\033[K", stdout);
    log->line_open = false;
    vfprintf(to, fmt, ap);
    putc('\n', to);
    fflush(to);
}

void log_progress(struct log *log, const char *fmt, ...)
{
    if (!log->active || log->quiet)
        return;
    va_list ap;
    va_start(ap, fmt);
    say(log, stdout, fmt, ap);
    va_end(ap);
}

void log_result(struct log *log, const char *fmt, ...)
{
    if (!log->active)
        return;
    va_list ap;
    va_start(ap, fmt);
    say(log, stdout, fmt, ap);
    va_end(ap);
}

void log_warn(struct log *log, const char *fmt, ...)
{
    if (!log->active)
        return;
    va_list ap;
    fflush(stdout);
    fputs("fashion: warning: ", stderr);
    va_start(ap, fmt);
    say(log, stderr, fmt, ap);
    va_end(ap);
}
