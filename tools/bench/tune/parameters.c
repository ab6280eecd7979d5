/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* parameters.c - measure the tuning parameters of this machine. */
#include "tune/parameters.h"

#include <time.h>

#include "measure/limit.h"
#include "report/output.h"
#include "pairwise/pairwise.h"
#include "tune/ways.h"

/* The buffer that is copied and added is larger than the first-level caches, as
 * boards in shared memory are. */
enum { BYTES = STREAM_BYTES, TIMES = 200, BATCHES = 5 };

/* ---- measuring ---- */

/* us for adding BYTES of floats, all ranks at the same time. */
static dt_result_t time_fold(const struct bench *bench, double *us,
                             struct dt_error *err)
{
    float *restrict to = (float *)(void *)bench->buffers.b;
    const float *restrict from = (const float *)(void *)bench->buffers.a;
    size_t n = BYTES / sizeof(*to);
    dt_result_t rc = DT_SUCCESS;
    for (int batch = 0; rc == DT_SUCCESS && batch < BATCHES; batch++) {
        rc = job_barrier(bench->job, err);
        double start = now_us();
        for (int i = 0; i < TIMES; i++) {
            for (size_t k = 0; k < n; k++)
                to[k] += from[k];
            __asm__ volatile("" ::"r"(to) : "memory");
        }
        double time = (now_us() - start) / TIMES;
        if (!batch || time < *us)
            *us = time;
    }
    return rc == DT_SUCCESS ? job_max(bench->job, us, 1, err) : rc;
}

/* us for a collective of one rank, which waits for nobody. */
static dt_result_t time_task(const struct job *job, double *us,
                             struct dt_error *err)
{
    dt_comm_t self;
    double word = 0, sum;
    dt_result_t rc = dt_comm_split(job->comm, job->rank, 0, &self);
    if (rc != DT_SUCCESS)
        return fail_in_libdt(err, rc);
    for (int batch = 0; rc == DT_SUCCESS && batch < BATCHES; batch++) {
        double start = now_us();
        for (int i = 0; rc == DT_SUCCESS && i < TIMES; i++)
            rc = dt_allreduce(&word, &sum, 1, DT_DTYPE_F64, DT_OP_SUM, self,
                              DT_STREAM_NONE);
        double time = (now_us() - start) / TIMES;
        if (!batch || time < *us)
            *us = time;
    }
    if (rc != DT_SUCCESS)
        fail_in_libdt(err, rc);
    dt_result_t end = dt_comm_destroy(self);
    if (rc == DT_SUCCESS && end != DT_SUCCESS)
        rc = fail_in_libdt(err, end);
    return rc == DT_SUCCESS ? job_max(job, us, 1, err) : rc;
}

/* GB/s from one rank of a node to another, all pairs at the same time; 0: no
 * node has two ranks. */
static dt_result_t rate_in_node(const struct bench *bench, double *rate,
                                struct dt_error *err)
{
    const struct job *job = bench->job;
    int peer = job_rank_of(job, job->node, job->local_rank ^ 1);
    double gbs = 0, ns = 0; /* per byte */
    dt_result_t rc = job_barrier(job, err);
    if (rc == DT_SUCCESS && peer >= 0)
        rc = stream(job, bench->buffers.b, peer, job->rank < peer, &gbs, err);
    if (gbs > 0)
        ns = 1 / gbs;
    if (rc == DT_SUCCESS)
        rc = job_max(job, &ns, 1, err);
    *rate = ns > 0 ? 1 / ns : 0;
    return rc;
}

static dt_result_t measure(const struct bench *bench, struct dt_tune *tune,
                           struct dt_error *err)
{
    struct limit limit;
    double fold = 0, task = 0, rate = 0;
    dt_result_t rc = limit_measure(bench, &limit, err);
    if (rc == DT_SUCCESS)
        rc = rate_in_node(bench, &rate, err);
    if (rc == DT_SUCCESS)
        rc = time_fold(bench, &fold, err);
    if (rc == DT_SUCCESS)
        rc = time_task(bench->job, &task, err);
    if (rc != DT_SUCCESS)
        return rc;
    tune->node_latency = limit.core_us * 1e-6;
    tune->net_latency = limit.link_us * 1e-6;
    tune->fold_byte = fold * 1e-6 / BYTES;
    tune->task = task * 1e-6;
    if (rate > 0)
        tune->node_byte = 1e-9 / rate;
    if (limit.link > 0)
        tune->net_byte = 1e-9 / limit.link;
    return DT_SUCCESS;
}

/* ---- the file ---- */

static void print_heading(FILE *file, const struct job *job)
{
    char day[32] = "";
    time_t now = time(NULL);
    struct tm parts;
    if (localtime_r(&now, &parts))
        strftime(day, sizeof(day), "%Y-%m-%d", &parts);
    fprintf(file,
            "# dt-bench %s, %s: %d rank%s of %d node%s, the first of them %s\n"
            "# seconds, and seconds per byte\n",
            PACKAGE_VERSION, day, job->size, job->size == 1 ? "" : "s",
            job->nodes, job->nodes == 1 ? "" : "s", job_node_name(job, 0));
}

static dt_result_t measure_host(const struct options *options,
                                const struct job *job, struct dt_tune *tune,
                                struct dt_error *err)
{
    struct options own = *options;
    struct bench bench;
    own.minbytes = own.maxbytes = BYTES;
    if (own.memory == MEMORY_CUDA)
        own.memory = MEMORY_PRIVATE;
    dt_result_t rc = bench_make(&bench, &own, job, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = measure(&bench, tune, err);
    bench_clear(&bench);
    return rc;
}

dt_result_t tune_run(const struct options *options, const struct job *job,
                     struct dt_error *err)
{
    struct dt_tune tune;
    struct ways *ways = NULL;
    struct output file;
    dt_tune_clear(&tune);
    dt_result_t rc = output_open(&file, options->tune, job, err);
    if (rc == DT_SUCCESS)
        rc = measure_host(options, job, &tune, err);
    if (rc == DT_SUCCESS && options->memory == MEMORY_CUDA)
        rc = ways_measure(options, job, &ways, err);
    if (rc == DT_SUCCESS)
        rc = output_begin(&file, err);
    if (rc == DT_SUCCESS && file.file) {
        print_heading(file.file, job);
        if (ways)
            ways_report(file.file, ways, &tune);
        rc = dt_tune_write(file.file, &tune, err);
    }
    ways_free(ways);
    return output_close(&file, rc, err);
}
