/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* main.c - are the kernels right on this GPU, and how fast are they?
 *
 *   dt-device check|times [MIB [PROCESSES]]
 *
 * MIB is the size of long buffers. Nobody launches this: it forks its
 * processes, at most so many, which share one GPU. Exits 77 where there is
 * none. */
#include <signal.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device.h"

#define LIMIT_SECONDS 240 /* of one job of processes */
#define NO_GPU        77

void fail(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "dt-device: ");
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    _exit(1);
}

void need(dt_result_t rc, const struct dt_error *err)
{
    if (rc != DT_SUCCESS)
        fail("%s", err->text);
}

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void meet(struct device *d)
{
    atomic_fetch_add(&d->area->arrived, 1);
    d->met++;
    while (atomic_load(&d->area->arrived) < d->met * d->size) {
        if (atomic_load(&d->area->gone))
            fail("another process has failed");
        sched_yield();
    }
}

char *device_memory(struct device *d, size_t len)
{
    struct dt_error err;
    struct dt_gpu_handle handle;
    void *ptr;
    need(d->gpu->ops->share_alloc(d->gpu, 0, len, &ptr, &handle, &err), &err);
    return ptr;
}

void finish(struct device *d)
{
    struct dt_error err;
    need(d->gpu->ops->finish(d->gpu, 0, d->stream, &err), &err);
}

void move(struct device *d, void *dst, const void *src, size_t len)
{
    struct dt_error err;
    const struct dt_gpu_copy copy = {
        .dst = dst, .src = src, .len = len, .rows = 1};
    need(d->gpu->ops->copy(d->gpu, 0, &copy, d->stream, &err), &err);
    finish(d);
}

/* ---- times ---- */

static double time_batch(struct device *d, variant_fn *fn, void *context,
                         size_t variant, size_t repeats)
{
    meet(d);
    double start = now();
    for (size_t i = 0; i < repeats; i++)
        fn(d, context, variant);
    finish(d);
    return (now() - start) / (double)repeats;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median(double seconds[BATCHES])
{
    qsort(seconds, BATCHES, sizeof(*seconds), by_value);
    return seconds[BATCHES / 2];
}

/* The median of the slowest rank's. */
static double settle(const struct device *d, size_t variant)
{
    double slowest[BATCHES] = {0};
    for (size_t i = 0; i < BATCHES; i++)
        for (size_t r = 0; r < d->size; r++)
            if (d->area->seconds[r][variant][i] > slowest[i])
                slowest[i] = d->area->seconds[r][variant][i];
    return median(slowest);
}

void measure(struct device *d, variant_fn *fn, void *context, size_t variants,
             double *medians)
{
    double most = 0;
    for (size_t v = 0; v < variants; v++) {
        double t = time_batch(d, fn, context, v, 2); /* it warms up, too */
        most = t > most ? t : most;
    }
    if (d->rank == 0) {
        const double enough = d->bytes < (size_t)64 << 20 ? 0.01 : 0.1;
        d->area->repeats = (size_t)(enough / (most + 1e-9)) + 1;
        if (d->area->repeats > 1000)
            d->area->repeats = 1000;
    }
    meet(d);
    for (size_t i = 0; i < BATCHES; i++)
        for (size_t v = 0; v < variants; v++)
            d->area->seconds[d->rank][v][i] =
                time_batch(d, fn, context, v, d->area->repeats);
    meet(d);
    for (size_t v = 0; v < variants; v++)
        medians[v] = settle(d, v);
    meet(d);
}

void row(const struct device *d, const char *what, double value, double limit,
         const char *unit, const char *wanted)
{
    if (d->rank)
        return;
    printf("%zu  %-42s %10.2f %10.2f %-4s %6.2f  %s\n", d->size, what, value,
           limit, unit, value / limit, wanted);
    fflush(stdout);
}

/* ---- jobs ---- */

typedef void part_fn(struct device *d);

static int rank_main(struct device *d, part_fn *part)
{
    struct dt_error err = {""};
    int count = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dt_result_t rc = dt_gpu_load(&d->gpu, &err);
    if (rc == DT_SUCCESS && d->gpu)
        rc = d->gpu->ops->devices(d->gpu, &count, &err);
    if (rc != DT_SUCCESS || !d->gpu || !count) {
        fprintf(stderr, "dt-device: %s\n",
                err.text[0] ? err.text : "no sign of a GPU");
        return NO_GPU;
    }
    need(d->gpu->ops->stream_create(d->gpu, 0, &d->stream, &err), &err);
    part(d);
    meet(d);
    d->gpu->ops->stream_destroy(d->gpu, d->stream);
    dt_gpu_unload(d->gpu);
    return 0;
}

/* Wait for all; the first bad code. */
static int wait_all(struct area *area, const pid_t *pids, size_t n)
{
    int code = 0;
    double end = now() + LIMIT_SECONDS;
    for (size_t left = n; left;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid > 0) {
            int c = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
            left--;
            code = code ? code : c;
            if (c)
                atomic_store(&area->gone, 1);
            continue;
        }
        if (now() > end) {
            fprintf(stderr, "dt-device: not over after %d s\n", LIMIT_SECONDS);
            for (size_t i = 0; i < n; i++)
                kill(pids[i], SIGKILL);
            end = now() + LIMIT_SECONDS;
            code = code ? code : 1;
        }
        usleep(1000);
    }
    return code;
}

static int run(part_fn *part, size_t n, size_t bytes)
{
    pid_t pids[RANKS];
    struct area *area = mmap(NULL, sizeof(*area), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED)
        fail("no memory");
    fflush(stdout);
    for (size_t r = 0; r < n; r++) {
        pids[r] = fork();
        if (pids[r] < 0)
            fail("fork");
        if (pids[r] == 0) {
            struct device d = {
                .rank = r, .size = n, .bytes = bytes, .area = area};
            exit(rank_main(&d, part));
        }
    }
    int code = wait_all(area, pids, n);
    munmap(area, sizeof(*area));
    return code;
}

int main(int argc, char **argv)
{
    const size_t mib = argc > 2 ? strtoul(argv[2], NULL, 10) : 256;
    const size_t most = argc > 3 ? strtoul(argv[3], NULL, 10) : RANKS;
    const size_t bytes = mib << 20;
    int code = 64;
    if (argc > 1 && mib && !strcmp(argv[1], "check")) {
        code = run(check_kernels, 1, bytes);
        for (size_t n = 1; !code && n <= most && n <= RANKS; n *= 2)
            code = run(check_exchange, n, bytes);
    } else if (argc > 1 && mib && !strcmp(argv[1], "times")) {
        printf("P  %-42s %10s %10s %-4s %6s  %s\n", "what, by P processes",
               "measured", "limit", "", "ratio", "wanted");
        code = run(time_kernels, 1, bytes);
        code = code ? code : run(time_launch, 1, bytes);
        for (size_t n = 2; !code && n <= most && n <= RANKS; n *= 2)
            code = run(time_exchange, n, bytes);
    } else {
        fprintf(stderr, "usage: dt-device check|times [MIB [PROCESSES]]\n");
    }
    if (code == NO_GPU)
        printf("no GPU: nothing was measured\n");
    return code;
}
