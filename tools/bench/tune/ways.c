/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ways.c - measure each collective on GPU memory by each available way.
 *
 * A communicator goes the way that DT_GPU_WAY names at its first call on GPU
 * memory. So there is one communicator for each way, and they take turns. */
#include "tune/ways.h"

#include <stdlib.h>
#include <string.h>

#include "tune/choice.h"
#include "measure/measure.h"

/* Turns, of which the median counts; how long one is; iterations in it. */
enum { TURNS = 5, TURN_US = 8000, MOST = 500 };

#define VARIABLE "DT_GPU_WAY"

static const enum dt_coll operations[] = {
    DT_COLL_ALLREDUCE, DT_COLL_REDUCE,         DT_COLL_BCAST,
    DT_COLL_ALLGATHER, DT_COLL_REDUCE_SCATTER, DT_COLL_ALLTOALL};
#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

/* Communicators of the same ranks, and what was measured on them. */
struct scope {
    const char *name, *words;
    size_t had;                   /* ways; less than two: nothing is measured */
    struct job job[DT_TUNE_WAYS]; /* comm is NULL: not to be had, and why */
    char why[DT_TUNE_WAYS][128];
    struct contest *contest; /* [OPERATIONS][nrows] */
};

struct ways {
    struct scope scope[DT_TUNE_SCOPES];
    size_t nrows;
};

/* ---- communicators ---- */

/* All ranks of a scope have it, or none. */
static dt_result_t open_way(struct scope *scope, enum dt_tune_way way,
                            const struct bench *bench, int color,
                            struct dt_error *err)
{
    const struct job *world = bench->job;
    struct job *job = &scope->job[way];
    struct dt_error why = {""};
    char value[32];
    const char *reason;
    snprintf(value, sizeof(value), "strict,%s", dt_tune_way_name(way));
    dt_result_t rc = dt_comm_split(world->comm, color, world->rank, &job->comm);
    if (rc != DT_SUCCESS)
        return fail_in_libdt(err, rc);
    job->rank = dt_comm_rank(job->comm);
    job->size = dt_comm_size(job->comm);
    setenv(VARIABLE, value, 1);
    rc = dt_barrier(job->comm, buffers_stream(&bench->buffers));
    if (rc != DT_SUCCESS)
        fail_in_libdt(&why, rc);
    rc = job_agree(world, rc, err);
    if (rc == DT_SUCCESS) {
        scope->had++;
        return buffers_finish(&bench->buffers, err);
    }
    if (why.text[0])
        *err = why;
    if (rc != DT_ERR_UNSUPPORTED)
        return rc;
    reason = strstr(why.text, value);
    reason = reason ? reason + strlen(value) + 2 : "another node has it not";
    snprintf(scope->why[way], sizeof(scope->why[way]), "%s", reason);
    rc = dt_comm_destroy(job->comm);
    job->comm = NULL;
    return rc == DT_SUCCESS ? rc : fail_in_libdt(err, rc);
}

static dt_result_t open_ways(struct scope *scope, const struct bench *bench,
                             int color, struct dt_error *err)
{
    const char *given = getenv(VARIABLE);
    char *before = given ? strdup(given) : NULL;
    dt_result_t rc = DT_SUCCESS;
    for (enum dt_tune_way w = 0; rc == DT_SUCCESS && w < DT_TUNE_WAYS; w++)
        rc = open_way(scope, w, bench, color, err);
    if (before)
        setenv(VARIABLE, before, 1);
    else
        unsetenv(VARIABLE);
    free(before);
    return rc;
}

static dt_result_t close_ways(struct scope *scope, dt_result_t rc,
                              struct dt_error *err)
{
    for (enum dt_tune_way w = 0; w < DT_TUNE_WAYS; w++) {
        dt_comm_t comm = scope->job[w].comm;
        scope->job[w].comm = NULL;
        if (comm && rc == DT_SUCCESS) {
            rc = dt_comm_destroy(comm);
            if (rc != DT_SUCCESS)
                fail_in_libdt(err, rc);
        }
    }
    return rc;
}

/* ---- time ---- */

/* us for one of n, on the slowest rank. */
static dt_result_t take_turn(const struct bench *bench, const struct call *call,
                             size_t n, double *us, struct dt_error *err)
{
    dt_result_t rc = job_barrier(bench->job, err);
    double start = now_us();
    for (size_t i = 0; rc == DT_SUCCESS && i < n; i++) {
        rc = bench->options->operation->run(call);
        if (rc != DT_SUCCESS)
            fail_in_libdt(err, rc);
    }
    if (rc == DT_SUCCESS)
        rc = buffers_finish(&bench->buffers, err);
    *us = (now_us() - start) / (double)n;
    return rc == DT_SUCCESS ? job_max(bench->job, us, 1, err) : rc;
}

static dt_result_t warm_up(const struct bench *bench, const struct call *call,
                           size_t *n, struct dt_error *err)
{
    size_t warmups = bench->options->warmups ? bench->options->warmups : 1;
    double us = 0;
    dt_result_t rc = take_turn(bench, call, warmups, &us, err);
    if (rc == DT_SUCCESS) /* those had NCCL to connect */
        rc = take_turn(bench, call, 1, &us, err);
    double enough = us > 0 ? TURN_US / us : MOST;
    *n = enough < 1 ? 1 : enough > MOST ? MOST : (size_t)enough;
    if (bench->options->iters)
        *n = bench->options->iters;
    return rc;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The call of this row among the ranks of job; rows fit all ranks, and so any
 * part of them. */
static struct call aim(const struct bench *bench, const struct row *row,
                       const struct job *job)
{
    const struct operation *operation = bench->options->operation;
    struct bench part = *bench;
    struct row own = *row;
    struct call call;
    size_t parts = operation->split ? (size_t)job->size : 1;
    part.job = job;
    own.root = 0;
    own.count = row->bytes / parts / dt_dtype_size(row->dtype);
    verify_aim(&part, &own, !operation->outside, &call);
    call.send = buffers_place(&bench->buffers, call.send);
    call.recv = buffers_place(&bench->buffers, call.recv);
    return call;
}

static dt_result_t compete(const struct bench *bench, const struct row *row,
                           const struct scope *scope, struct contest *contest,
                           struct dt_error *err)
{
    double us[DT_TUNE_WAYS][TURNS];
    size_t n[DT_TUNE_WAYS] = {0};
    struct call call[DT_TUNE_WAYS];
    dt_result_t rc = DT_SUCCESS;
    *contest = (struct contest){.bytes = row->bytes};
    for (enum dt_tune_way w = 0; rc == DT_SUCCESS && w < DT_TUNE_WAYS; w++)
        if (scope->job[w].comm) {
            call[w] = aim(bench, row, &scope->job[w]);
            rc = warm_up(bench, &call[w], &n[w], err);
        }
    for (int turn = 0; turn < TURNS; turn++)
        for (enum dt_tune_way w = 0; rc == DT_SUCCESS && w < DT_TUNE_WAYS; w++)
            if (n[w])
                rc = take_turn(bench, &call[w], n[w], &us[w][turn], err);
    for (enum dt_tune_way w = 0; rc == DT_SUCCESS && w < DT_TUNE_WAYS; w++)
        if (n[w]) {
            qsort(us[w], TURNS, sizeof(us[w][0]), compare);
            contest->us[w] = us[w][TURNS / 2];
        }
    return rc;
}

static dt_result_t measure_scope(struct bench *bench, struct scope *scope,
                                 int color, struct dt_error *err)
{
    struct options own = *bench->options;
    struct bench mine = *bench;
    char text[32];
    dt_result_t rc = open_ways(scope, bench, color, err);
    mine.options = &own;
    for (size_t o = 0; rc == DT_SUCCESS && scope->had > 1 && o < OPERATIONS;
         o++) {
        own.operation = operation_by_name(dt_name_coll(operations[o]));
        for (size_t i = 0; rc == DT_SUCCESS && i < bench->nrows; i++) {
            const struct row *row = &bench->rows[i];
            progress_show("%s, %s, %s", scope->words,
                          dt_name_coll(operations[o]),
                          size_text(text, row->bytes));
            rc = compete(&mine, row, scope,
                         &scope->contest[o * bench->nrows + i], err);
        }
    }
    progress_clear();
    return close_ways(scope, rc, err);
}

/* ---- all ---- */

static dt_result_t make(struct ways **out, const struct bench *bench,
                        struct dt_error *err)
{
    struct ways *ways = calloc(1, sizeof(*ways));
    bool made = ways != NULL;
    *out = ways;
    for (int s = 0; made && s < DT_TUNE_SCOPES; s++) {
        struct contest **contest = &ways->scope[s].contest;
        *contest = calloc(OPERATIONS * bench->nrows, sizeof(**contest));
        made = *contest != NULL;
    }
    if (!made)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for %zu times",
                            OPERATIONS * bench->nrows);
    ways->nrows = bench->nrows;
    ways->scope[DT_TUNE_NODE].name = "node";
    ways->scope[DT_TUNE_NODE].words = "inside a node";
    ways->scope[DT_TUNE_NET].name = "net";
    ways->scope[DT_TUNE_NET].words = "between nodes";
    return DT_SUCCESS;
}

dt_result_t ways_measure(const struct options *options, const struct job *job,
                         struct ways **ways, struct dt_error *err)
{
    struct options own = *options;
    struct bench bench;
    own.operation = operation_by_name("alltoall"); /* whose rows suit all */
    own.dtypes = 1U << DT_DTYPE_F32;
    own.ops = 1U << DT_OP_SUM;
    own.stepbytes = 0;
    own.stepfactor = options->stepfactor ? options->stepfactor : 2;
    *ways = NULL;
    dt_result_t rc = bench_make(&bench, &own, job, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = job_agree(job, make(ways, &bench, err), err);
    if (rc == DT_SUCCESS && job->nodes < job->size)
        rc = measure_scope(&bench, &(*ways)->scope[DT_TUNE_NODE], job->node,
                           err);
    if (rc == DT_SUCCESS && job->nodes > 1)
        rc = measure_scope(&bench, &(*ways)->scope[DT_TUNE_NET], 0, err);
    bench_clear(&bench);
    return rc;
}

void ways_free(struct ways *ways)
{
    if (!ways)
        return;
    for (int s = 0; s < DT_TUNE_SCOPES; s++)
        free(ways->scope[s].contest);
    free(ways);
}

/* ---- the file ---- */

static void print_times(FILE *file, const struct scope *scope,
                        const struct contest *contest, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fprintf(file, "# %12zu", contest[i].bytes);
        for (enum dt_tune_way w = 0; w < DT_TUNE_WAYS; w++)
            if (scope->why[w][0])
                fprintf(file, " %10s", "-");
            else
                fprintf(file, " %10.2f", contest[i].us[w]);
        fputc('\n', file);
    }
}

static void print_scope(FILE *file, const struct scope *scope, size_t n)
{
    fprintf(file, "#\n# GPU memory, %s: bytes, and us by", scope->words);
    for (enum dt_tune_way w = 0; w < DT_TUNE_WAYS; w++)
        fprintf(file, " %s", dt_tune_way_name(w));
    fputc('\n', file);
    for (enum dt_tune_way w = 0; w < DT_TUNE_WAYS; w++)
        if (scope->why[w][0])
            print_line(file, "# without %s: %s", dt_tune_way_name(w),
                       scope->why[w]);
    for (size_t o = 0; scope->had > 1 && o < OPERATIONS; o++) {
        fprintf(file, "# gpu_%s_%s\n", scope->name,
                dt_name_coll(operations[o]));
        print_times(file, scope, &scope->contest[o * n], n);
    }
}

void ways_report(FILE *file, const struct ways *ways, struct dt_tune *tune)
{
    for (int s = 0; s < DT_TUNE_SCOPES; s++) {
        const struct scope *scope = &ways->scope[s];
        if (scope->had)
            print_scope(file, scope, ways->nrows);
        for (size_t o = 0; scope->had > 1 && o < OPERATIONS; o++)
            tune->gpu[s][operations[o]] =
                choose(&scope->contest[o * ways->nrows], ways->nrows);
    }
}
