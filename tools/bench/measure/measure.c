/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* measure.c - measure the time of one operation and verify its result. */
#include "measure/measure.h"

#include <stdlib.h>
#include <string.h>

#include "measure/element.h"

/* Without -n, as many iterations are timed as take ENOUGH_US, within bounds. */
enum { ENOUGH_US = 40000, FEWEST = 5, MOST = 2000 };

/* ---- memory ---- */

static dt_result_t get_memory(struct bench *bench, struct dt_error *err)
{
    size_t most = bench->options->iters ? bench->options->iters : MOST;
    dt_result_t rc = rows_plan(bench->options, bench->job->size, &bench->rows,
                               &bench->nrows, err);
    if (rc != DT_SUCCESS)
        return rc;
    bench->table = malloc((size_t)CHECK_PERIOD * sizeof(double));
    bench->sample = calloc(most, sizeof(*bench->sample));
    if (!bench->table || !bench->sample)
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "no memory for %zu iterations", most);
    return DT_SUCCESS;
}

dt_result_t bench_make(struct bench *bench, const struct options *options,
                       const struct job *job, struct dt_error *err)
{
    size_t most = 1;
    *bench = (struct bench){.options = options, .job = job};
    dt_result_t rc = job_agree(job, get_memory(bench, err), err);
    if (rc != DT_SUCCESS) {
        bench_clear(bench);
        return rc;
    }
    for (size_t i = 0; i < bench->nrows; i++)
        if (bench->rows[i].bytes > most)
            most = bench->rows[i].bytes;
    rc = buffers_make(&bench->buffers, job, most, options->memory, err);
    if (rc != DT_SUCCESS)
        bench_clear(bench);
    progress_start(job->rank == 0, PROGRESS_US);
    return rc;
}

void bench_clear(struct bench *bench)
{
    buffers_clear(&bench->buffers);
    free(bench->table);
    free(bench->sample);
    free(bench->rows);
    *bench = (struct bench){0};
}

/* ---- time ---- */

/* With GPU memory this only enqueues the call on the stream. */
static dt_result_t run_one(const struct bench *bench, const struct call *call,
                           struct dt_error *err)
{
    struct call real = *call;
    real.send = buffers_place(&bench->buffers, call->send);
    real.recv = buffers_place(&bench->buffers, call->recv);
    dt_result_t rc = bench->options->operation->run(&real);
    return rc == DT_SUCCESS ? rc : fail_in_libdt(err, rc);
}

static dt_result_t run_through(const struct bench *bench,
                               const struct call *call, struct dt_error *err)
{
    dt_result_t rc = run_one(bench, call, err);
    return rc == DT_SUCCESS ? buffers_finish(&bench->buffers, err) : rc;
}

/* Warm up. The shortest of these iterations decides how many are timed. */
static dt_result_t warm_up(const struct bench *bench, const struct call *call,
                           size_t *iters, struct dt_error *err)
{
    double shortest = 0;
    size_t n = bench->options->warmups;
    if (!n && !bench->options->iters)
        n = 1;
    for (size_t i = 0; i < n; i++) {
        double start = now_us();
        dt_result_t rc = run_through(bench, call, err);
        double time = now_us() - start;
        if (rc != DT_SUCCESS)
            return rc;
        if (!i || time < shortest)
            shortest = time;
    }
    *iters = bench->options->iters;
    if (*iters)
        return DT_SUCCESS;
    dt_result_t rc = job_max(bench->job, &shortest, 1, err);
    double enough = ENOUGH_US / (shortest > 0.01 ? shortest : 0.01);
    *iters = enough < FEWEST ? FEWEST : enough > MOST ? MOST : (size_t)enough;
    return rc;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of each iteration, the time of the slowest rank. */
static dt_result_t look_closer(const struct bench *bench, size_t n,
                               struct timing *timing, struct dt_error *err)
{
    double sum = 0;
    dt_result_t rc = job_max(bench->job, bench->sample, n, err);
    if (rc != DT_SUCCESS)
        return rc;
    for (size_t i = 0; i < n; i++)
        sum += bench->sample[i];
    if (bench->options->blocking)
        timing->time_us = sum / (double)n;
    qsort(bench->sample, n, sizeof(*bench->sample), compare);
    timing->detailed = bench->options->stats;
    timing->min_us = bench->sample[0];
    timing->median_us = bench->sample[(n - 1) / 2];
    timing->p99_us = bench->sample[(n * 99 + 99) / 100 - 1];
    return DT_SUCCESS;
}

static dt_result_t time_batch(const struct bench *bench,
                              const struct call *call, struct timing *timing,
                              struct dt_error *err)
{
    size_t n = timing->iters;
    bool each = bench->options->stats || bench->options->blocking;
    dt_result_t rc = job_barrier(bench->job, err);
    double start = now_us(), before = start;
    for (size_t i = 0; rc == DT_SUCCESS && i < n; i++) {
        if (bench->options->blocking) {
            rc = job_barrier(bench->job, err);
            before = now_us();
        }
        if (rc == DT_SUCCESS)
            rc = (each ? run_through : run_one)(bench, call, err);
        if (each) {
            double after = now_us();
            bench->sample[i] = after - before;
            before = after;
        }
    }
    if (rc == DT_SUCCESS)
        rc = buffers_finish(&bench->buffers, err);
    timing->time_us = (now_us() - start) / (double)n;
    if (rc == DT_SUCCESS)
        rc = job_max(bench->job, &timing->time_us, 1, err);
    if (rc == DT_SUCCESS && each)
        rc = look_closer(bench, n, timing, err);
    return rc;
}

/* In place, sums that are added up again and again would soon overflow to
 * infinity, which is slow on some processors; zeros stay zeros. */
static dt_result_t fill_for_time(const struct bench *bench,
                                 const struct row *row, const struct call *call,
                                 bool inside, struct dt_error *err)
{
    verify_fill(bench, call, 0);
    if (inside && bench->options->operation->data == DATA_REDUCED &&
        dtype_is_float(row->dtype))
        memset(bench->buffers.b, 0, row->bytes);
    return buffers_load(&bench->buffers, row->bytes, err);
}

static dt_result_t check(const struct bench *bench, const struct row *row,
                         const struct call *call, struct timing *timing,
                         struct dt_error *err)
{
    const struct buffers *buffers = &bench->buffers;
    dt_result_t rc = DT_SUCCESS;
    timing->wrong = bench->options->checks ? 0 : -1;
    for (size_t i = 1; rc == DT_SUCCESS && i <= bench->options->checks; i++) {
        verify_fill(bench, call, i);
        rc = buffers_load(buffers, row->bytes, err);
        if (rc == DT_SUCCESS)
            rc = run_through(bench, call, err);
        if (rc == DT_SUCCESS)
            rc = buffers_fetch(buffers, row->bytes, err);
        if (rc == DT_SUCCESS)
            timing->wrong += (double)verify_count(bench, call, i);
        /* A rank that is still in the call must not see the next pattern. */
        if (rc == DT_SUCCESS)
            rc = job_barrier(bench->job, err);
    }
    if (rc == DT_SUCCESS && bench->options->checks)
        rc = job_sum(bench->job, &timing->wrong, 1, err);
    return rc;
}

static dt_result_t measure_one(const struct bench *bench, const struct row *row,
                               bool inside, struct timing *timing,
                               struct dt_error *err)
{
    const struct operation *operation = bench->options->operation;
    struct call call;
    verify_aim(bench, row, inside, &call);
    dt_result_t rc = fill_for_time(bench, row, &call, inside, err);
    if (rc == DT_SUCCESS)
        rc = warm_up(bench, &call, &timing->iters, err);
    if (rc == DT_ERR_UNSUPPORTED)
        return DT_SUCCESS;
    if (rc == DT_SUCCESS)
        rc = time_batch(bench, &call, timing, err);
    if (rc == DT_SUCCESS)
        rc = check(bench, row, &call, timing, err);
    if (rc != DT_SUCCESS)
        return rc;
    timing->measured = true;
    if (timing->time_us > 0)
        timing->algbw = (double)row->bytes / timing->time_us / 1e3;
    timing->busbw = timing->algbw * operation_bus(operation, bench->job->size);
    return DT_SUCCESS;
}

dt_result_t measure_row(struct bench *bench, const struct row *row,
                        struct result *result, struct dt_error *err)
{
    const struct options *options = bench->options;
    dt_result_t rc = DT_SUCCESS;
    *result = (struct result){.row = *row};
    if (options->outside && options->operation->outside)
        rc = measure_one(bench, row, false, &result->outside, err);
    if (rc == DT_SUCCESS && options->inside && options->operation->inside)
        rc = measure_one(bench, row, true, &result->inside, err);
    return rc;
}
