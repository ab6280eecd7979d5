/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* json.c - the results as JSON. */
#include <jansson.h>

#include "common/json_output.h"
#include "report/json.h"
#include "measure/element.h"
#include "report/report.h"

void json_put(struct json *json, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value))
        json->failed = true;
}

void json_append(struct json *json, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value))
        json->failed = true;
}

json_t *json_rounded(double value)
{
    char text[32];
    double rounded = value;
    snprintf(text, sizeof(text), "%.6g", value);
    (void)sscanf(text, "%lf", &rounded);
    return json_real(rounded);
}

json_t *json_job(struct json *json, const struct job *job)
{
    json_t *object = json_object(), *ranks = json_array();
    json_put(json, object, "tool", json_string("dt-bench"));
    json_put(json, object, "version", json_string(PACKAGE_VERSION));
    json_put(json, object, "ranks", json_integer(job->size));
    json_put(json, object, "nodes", json_integer(job->nodes));
    for (int r = 0; r < job->size; r++) {
        const struct place *place = &job->place[r];
        json_t *rank = json_object();
        json_put(json, rank, "rank", json_integer(r));
        json_put(json, rank, "node", json_string(place->host));
        json_put(json, rank, "local_rank", json_integer(place->local_rank));
        json_put(json, rank, "pid", json_integer(place->pid));
        json_put(json, rank, "cpus", json_string(place->cpus));
        json_append(json, ranks, rank);
    }
    json_put(json, object, "placement", ranks);
    return object;
}

dt_result_t json_write(FILE *out, const struct json *json, json_t *object,
                       struct dt_error *err)
{
    bool done = !json->failed && json_output(out, object);
    json_decref(object);
    return done ? DT_SUCCESS
                : dt_error_set(err, DT_ERR_IO, "the JSON could not be written");
}

/* ---- the table ---- */

static void put_timing(struct json *json, json_t *object,
                       const struct result *result, const struct timing *timing)
{
    json_put(json, object, "time_us", json_rounded(timing->time_us));
    json_put(json, object, "algbw", json_rounded(timing->algbw));
    json_put(json, object, "busbw", json_rounded(timing->busbw));
    json_put(json, object, "wrong",
             timing->wrong < 0 ? json_null()
                               : json_integer((json_int_t)timing->wrong));
    json_put(json, object, "iters", json_integer((json_int_t)timing->iters));
    if (timing->detailed) {
        json_put(json, object, "min_us", json_rounded(timing->min_us));
        json_put(json, object, "median_us", json_rounded(timing->median_us));
        json_put(json, object, "p99_us", json_rounded(timing->p99_us));
    }
    if (result->limit_us > 0)
        json_put(json, object, "share",
                 json_rounded(report_share(result, timing)));
}

static json_t *result_object(struct json *json, const struct report *report,
                             const struct result *result)
{
    const struct row *row = &result->row;
    json_t *object = json_object();
    json_put(json, object, "size", json_integer((json_int_t)row->bytes));
    json_put(json, object, "count", json_integer((json_int_t)row->count));
    json_put(json, object, "dtype", json_string(dtype_name(row->dtype)));
    if (report->options->operation->data == DATA_REDUCED)
        json_put(json, object, "op", json_string(op_name(row->op)));
    if (report->options->operation->rooted)
        json_put(json, object, "root", json_integer(row->root));
    if (result->limit_us > 0)
        json_put(json, object, "limit_us", json_rounded(result->limit_us));
    bool both = result->outside.measured && result->inside.measured;
    json_put(
        json, object, "form",
        json_string(result->outside.measured ? "out_of_place" : "in_place"));
    put_timing(json, object, result,
               result->outside.measured ? &result->outside : &result->inside);
    if (both) {
        json_t *inside = json_object();
        put_timing(json, inside, result, &result->inside);
        json_put(json, object, "in_place", inside);
    }
    return object;
}

static json_t *limit_object(struct json *json, const struct limit *limit)
{
    json_t *object = json_object();
    json_put(json, object, "core_us", json_rounded(limit->core_us));
    json_put(json, object, "copy_gbs", json_rounded(limit->copy));
    json_put(json, object, "link_us", json_rounded(limit->link_us));
    json_put(json, object, "link_gbs", json_rounded(limit->link));
    json_put(json, object, "rails_gbs", json_rounded(limit->rails));
    return object;
}

/* The name of the only bit, "all" of several. */
static json_t *name_of(unsigned bits, bool dtypes)
{
    int first = __builtin_ctz(bits);
    if (bits & (bits - 1))
        return json_string("all");
    return json_string(dtypes ? dtype_name((dt_dtype_t)first)
                              : op_name((dt_op_t)first));
}

dt_result_t json_print(FILE *out, const struct report *report,
                       struct dt_error *err)
{
    const struct options *options = report->options;
    struct json json = {0};
    json_t *object = json_job(&json, report->job), *results = json_array();
    json_put(&json, object, "operation", json_string(options->operation->name));
    json_put(&json, object, "dtype", name_of(options->dtypes, true));
    json_put(&json, object, "op", name_of(options->ops, false));
    json_put(&json, object, "memory",
             json_string(memory_name(options->memory)));
    json_put(&json, object, "checked", json_boolean(options->checks > 0));
    if (report->limit)
        json_put(&json, object, "limit", limit_object(&json, report->limit));
    for (size_t i = 0; i < report->n; i++) {
        const struct result *result = &report->result[i];
        if (result->outside.measured || result->inside.measured)
            json_append(&json, results, result_object(&json, report, result));
    }
    json_put(&json, object, "results", results);
    json_put(&json, object, "wrong",
             json_integer((json_int_t)report_wrong(report)));
    json_put(&json, object, "avg_busbw", json_rounded(report_busbw(report)));
    return json_write(out, &json, object, err);
}
