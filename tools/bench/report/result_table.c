/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* result_table.c - the results in the columns of nccl-tests. */
#include <string.h>

#include "measure/element.h"
#include "report/report.h"

double report_wrong(const struct report *report)
{
    double sum = 0;
    for (size_t i = 0; i < report->n; i++) {
        const struct result *r = &report->result[i];
        sum += r->outside.wrong > 0 ? r->outside.wrong : 0;
        sum += r->inside.wrong > 0 ? r->inside.wrong : 0;
    }
    return sum;
}

size_t report_measured(const struct report *report)
{
    size_t n = 0;
    for (size_t i = 0; i < report->n; i++)
        n += (size_t)report->result[i].outside.measured +
             report->result[i].inside.measured;
    return n;
}

double report_busbw(const struct report *report)
{
    double sum = 0;
    size_t n = report_measured(report);
    for (size_t i = 0; i < report->n; i++)
        sum += report->result[i].outside.busbw + report->result[i].inside.busbw;
    return n ? sum / (double)n : 0;
}

double report_share(const struct result *result, const struct timing *timing)
{
    return timing->time_us > 0 ? result->limit_us / timing->time_us : 0;
}

/* ---- header ---- */

static void print_ranks(FILE *out, const struct job *job)
{
    for (int r = 0; r < job->size; r++) {
        const struct place *place = &job->place[r];
        fprintf(out, "#  Rank %3d Pid %7d on %12s CPUs %s", r, place->pid,
                place->host, place->cpus);
        if (place->gpus[0])
            fprintf(out, " GPUs %s", place->gpus);
        if (place->nics[0])
            fprintf(out, " NICs %s", place->nics);
        fputc('\n', out);
    }
}

static void print_request(FILE *out, const struct options *options)
{
    char from[32], to[32], step[32];
    if (options->operation->data != DATA_NONE) {
        fprintf(out, "# %s to %s, ", size_text(from, options->minbytes),
                size_text(to, options->maxbytes));
        if (options->stepfactor)
            fprintf(out, "each %zu times the one before; ",
                    options->stepfactor);
        else
            fprintf(out, "in steps of %s; ",
                    size_text(step, options->stepbytes));
        fprintf(out, "%s memory\n", memory_name(options->memory));
    }
    fprintf(out, "# %zu iterations to warm up, ", options->warmups);
    if (options->iters)
        fprintf(out, "%zu timed", options->iters);
    else
        fputs("as many timed as take 40 ms", out);
    fprintf(out, "%s, %zu checked; the time is that of the slowest rank\n",
            options->blocking ? ", each after a barrier" : "", options->checks);
}

static void print_groups(FILE *out, const struct report *report)
{
    const struct options *options = report->options;
    int extra = (options->stats ? 27 : 0) + (report->limit ? 8 : 0);
    fprintf(out, "#%51s", "");
    if (options->outside && options->operation->outside)
        fprintf(out, "%*s%*s", 22, "out-of-place", 13 + extra, "");
    if (options->inside && options->operation->inside)
        fprintf(out, "%*s", 20, "in-place");
    fputc('\n', out);
}

static void print_titles(FILE *out, const struct report *report, bool units)
{
    const struct options *options = report->options;
    int forms = (options->outside && options->operation->outside) +
                (options->inside && options->operation->inside);
    fprintf(out, units ? "#%11s %12s %8s %8s %6s " : "#%11s %12s %8s %8s %6s ",
            units ? "(B)" : "size", units ? "(elements)" : "count",
            units ? "" : "type", units ? "" : "redop", units ? "" : "root");
    for (int i = 0; i < forms; i++) {
        fprintf(out, " %9s %7s %7s", units ? "(us)" : "time",
                units ? "(GB/s)" : "algbw", units ? "(GB/s)" : "busbw");
        if (options->stats)
            fprintf(out, " %8s %8s %8s", units ? "(us)" : "min",
                    units ? "(us)" : "median", units ? "(us)" : "p99");
        if (report->limit)
            fprintf(out, " %7s", units ? "(%)" : "limit");
        fprintf(out, " %7s", units ? "" : "#wrong");
    }
    fputc('\n', out);
}

void table_head(FILE *out, const struct report *report)
{
    const struct job *job = report->job;
    fprintf(out, "# dt-bench %s: %s on %d rank%s of %d node%s\n",
            PACKAGE_VERSION, report->options->operation->name, job->size,
            job->size == 1 ? "" : "s", job->nodes, job->nodes == 1 ? "" : "s");
    print_request(out, report->options);
    fputs("#\n", out);
    print_ranks(out, job);
    fputs("#\n", out);
    if (report->limit) {
        limit_print(out, report->limit);
        fputs("#\n", out);
    }
    print_groups(out, report);
    print_titles(out, report, false);
    print_titles(out, report, true);
    fflush(out);
}

/* ---- rows ---- */

static void print_time(FILE *out, double us, int width)
{
    fprintf(out, " %*.*f", width, us < 100 ? 2 : us < 10000 ? 1 : 0, us);
}

static void print_timing(FILE *out, const struct report *report,
                         const struct result *result,
                         const struct timing *timing)
{
    bool stats = report->options->stats;
    if (!timing->measured) {
        fprintf(out, " %9s %7s %7s", "N/A", "N/A", "N/A");
        fprintf(out, "%*s %7s", (stats ? 27 : 0) + (report->limit ? 8 : 0), "",
                "N/A");
        return;
    }
    print_time(out, timing->time_us, 9);
    fprintf(out, " %7.2f %7.2f", timing->algbw, timing->busbw);
    if (stats) {
        print_time(out, timing->min_us, 8);
        print_time(out, timing->median_us, 8);
        print_time(out, timing->p99_us, 8);
    }
    if (report->limit)
        fprintf(out, " %7.1f", 100 * report_share(result, timing));
    if (timing->wrong < 0)
        fprintf(out, " %7s", "N/A");
    else
        fprintf(out, " %7.0f", timing->wrong);
}

void table_row(FILE *out, const struct report *report,
               const struct result *result)
{
    const struct options *options = report->options;
    const struct operation *operation = options->operation;
    const struct row *row = &result->row;
    fprintf(out, "%12zu %12zu %8s %8s %6d ", row->bytes, row->count,
            operation->data == DATA_NONE ? "none" : dtype_name(row->dtype),
            operation->data == DATA_REDUCED ? op_name(row->op) : "none",
            row->root);
    if (options->outside && operation->outside)
        print_timing(out, report, result, &result->outside);
    if (options->inside && operation->inside)
        print_timing(out, report, result, &result->inside);
    fputc('\n', out);
    fflush(out);
}

void table_foot(FILE *out, const struct report *report)
{
    double wrong = report_wrong(report);
    if (report->options->checks)
        fprintf(out, "# Out of bounds values : %.0f %s\n", wrong,
                wrong > 0 ? "FAILED" : "OK");
    fprintf(out, "# Avg bus bandwidth    : %.6g\n#\n", report_busbw(report));
}
