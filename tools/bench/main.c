/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* main.c - dt-bench: measures the collectives and verifies their results. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "measure/gpu_memory.h"
#include "report/output.h"
#include "pairwise/pairwise.h"
#include "report/report.h"
#include "tune/parameters.h"

const char program[] = "dt-bench";

enum { WRONG = 1, FAILED = 1, USAGE = 64 };

/* ---- the table ---- */

static dt_result_t measure_rows(struct bench *bench, struct report *report,
                                struct dt_error *err)
{
    bool table = bench->job->rank == 0 && !bench->options->json;
    char text[32];
    for (size_t i = 0; i < bench->nrows; i++) {
        struct result *result = &report->result[i];
        const struct row *row = &bench->rows[i];
        progress_show("%s, %zu of %zu", size_text(text, row->bytes), i + 1,
                      bench->nrows);
        dt_result_t rc = measure_row(bench, row, result, err);
        if (rc == DT_SUCCESS && report->limit)
            rc = limit_row(bench, report->limit, row, &result->limit_us, err);
        if (rc != DT_SUCCESS)
            return rc;
        report->n++;
        if (!table)
            continue;
        progress_clear();
        table_row(stdout, report, result);
    }
    progress_clear();
    return DT_SUCCESS;
}

static dt_result_t conclude(const struct report *report,
                            const struct output *svg, struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    if (report->job->rank != 0)
        return DT_SUCCESS;
    if (report->options->json)
        rc = json_print(stdout, report, err);
    else
        table_foot(stdout, report);
    if (rc != DT_SUCCESS || !svg->file)
        return rc;
    rc = output_begin(svg, err);
    if (rc == DT_SUCCESS)
        plot_print(svg->file, report);
    return rc;
}

static dt_result_t measure_all(struct bench *bench, int *status,
                               struct dt_error *err)
{
    const struct options *options = bench->options;
    struct limit limit = {0};
    struct output svg = {0};
    struct report report = {.options = options,
                            .job = bench->job,
                            .limit = options->limit ? &limit : NULL};
    dt_result_t rc = DT_SUCCESS;
    report.result = calloc(bench->nrows + 1, sizeof(*report.result));
    if (!report.result)
        rc = dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for the results");
    rc = job_agree(bench->job, rc, err);
    if (rc == DT_SUCCESS)
        rc = output_open(&svg, options->svg, bench->job, err);
    if (rc == DT_SUCCESS && options->limit)
        rc = limit_measure(bench, &limit, err);
    if (rc == DT_SUCCESS && bench->job->rank == 0 && !options->json)
        table_head(stdout, &report);
    if (rc == DT_SUCCESS)
        rc = measure_rows(bench, &report, err);
    if (rc == DT_SUCCESS)
        rc = conclude(&report, &svg, err);
    rc = output_close(&svg, rc, err);
    if (rc == DT_SUCCESS && !report_measured(&report))
        rc = dt_error_set(
            err, DT_ERR_UNSUPPORTED,
            "this libdt supports none of the requested types and operations");
    if (rc == DT_SUCCESS && report_wrong(&report) > 0)
        *status = WRONG;
    free(report.result);
    return rc;
}

static dt_result_t run_table(const struct options *options,
                             const struct job *job, int *status,
                             struct dt_error *err)
{
    struct bench bench;
    dt_result_t rc = bench_make(&bench, options, job, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = measure_all(&bench, status, err);
    bench_clear(&bench);
    return rc;
}

/* ---- the process ---- */

/* An error that all ranks see is printed by one of them: rank 0, or, when a
 * rank was lost, the leader of each node, as rank 0 may be the lost one. */
static int complain(const struct job *job, dt_result_t rc,
                    const struct dt_error *err)
{
    bool lost = rc == DT_ERR_PROC_FAILED;
    if (rc == DT_ERR_UNSUPPORTED && job->rank != 0)
        return FAILED;
    if (lost ? dt_local_rank() <= 0 : err->text[0] != '\0')
        note(stderr, "rank %d: %s", dt_rank(), err->text);
    return FAILED;
}

static int run_job(const struct options *options)
{
    struct dt_error err = {""};
    struct job job;
    int status = 0;
    dt_result_t rc = job_make(&job, &err);
    if (rc != DT_SUCCESS)
        return complain(&job, rc, &err);
    interrupt_speaks(job.rank == 0);
    if (options_check(options, job.size, &err) != DT_SUCCESS) {
        if (job.rank == 0)
            note(stderr, "%s", err.text);
        status = USAGE;
    } else if (options->pairwise) {
        rc = pairwise_run(options, &job, &err);
    } else if (options->tune) {
        rc = tune_run(options, &job, &err);
    } else {
        rc = run_table(options, &job, &status, &err);
    }
    if (rc != DT_SUCCESS)
        status = complain(&job, rc, &err);
    job_clear(&job);
    return status;
}

/* The rank as the launcher gives it, before dt_init(); -1: unknown. */
static int rank_of_launcher(void)
{
    static const char *const names[] = {"PMIX_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        int64_t rank;
        if (dt_number_parse(getenv(names[i]), 0, INT_MAX, &rank))
            return (int)rank;
    }
    return -1;
}

/* Print a usage error, the help or the version once per job. If the launcher
 * does not give the rank, join the job to learn it. */
static int say_once(const struct options *options, const struct dt_error *err)
{
    int rank = rank_of_launcher();
    bool joined = rank < 0 && dt_init() == DT_SUCCESS;
    if (joined)
        rank = dt_rank();
    if (rank <= 0) {
        if (err->text[0])
            note(stderr, "%s", err->text);
        else if (options->help)
            options_help(stdout);
        else
            puts("dt-bench " PACKAGE_VERSION);
    }
    if (joined)
        dt_finalize();
    return err->text[0] ? USAGE : 0;
}

static int run(const struct options *options)
{
    struct dt_error err = {""};
    bool gpu = options->memory == MEMORY_CUDA;
    if (gpu && gpu_find(&err) != DT_SUCCESS) {
        note(stderr, "%s", err.text);
        return FAILED;
    }
    dt_result_t rc = dt_init();
    if (rc != DT_SUCCESS) {
        note(stderr, "%s", dt_last_error());
        return FAILED;
    }
    int status = run_job(options), rank = dt_rank();
    rc = dt_finalize();
    if (rc != DT_SUCCESS && !status) {
        note(stderr, "rank %d: dt_finalize: %s", rank, dt_last_error());
        status = FAILED;
    }
    return status;
}

int main(int argc, char **argv)
{
    struct options options;
    struct dt_error err = {""};
    interrupt_arm();
    dt_result_t rc = options_parse(&options, argc, argv, &err);
    int status = rc != DT_SUCCESS || options.help || options.version
                     ? say_once(&options, &err)
                     : run(&options);
    return streams_flush() ? status : FAILED;
}
