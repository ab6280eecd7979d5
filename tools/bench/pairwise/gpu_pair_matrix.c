/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gpu_pair_matrix.c - what pairs of GPUs have found, as tables, sentences and
 * JSON.
 */
#include <stdlib.h>

#include "report/json.h"
#include "pairwise/pairwise.h"

/* Larger matrices are printed with --json only. */
enum { WIDEST = 16 };

/* The ranks of a node. */
struct table {
    const struct gpu_pairs *pairs;
    int node, n;
    double usual; /* GB/s; 0: none works */
};

static int rank_of(const struct table *table, int player)
{
    return job_rank_of(table->pairs->job, table->node, player);
}

static const struct gpu_pair *pair_of(const struct table *table, int from,
                                      int to)
{
    return &table->pairs->pair[rank_of(table, to) * table->pairs->most + from];
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of those that work. */
static double usual_of(const struct table *table)
{
    double *sorted =
        calloc((size_t)table->n * (size_t)table->n, sizeof(double));
    size_t count = 0;
    for (int from = 0; sorted && from < table->n; from++)
        for (int to = 0; to < table->n; to++)
            if (from != to && !pair_of(table, from, to)->why[0])
                sorted[count++] = pair_of(table, from, to)->gbs;
    if (count)
        qsort(sorted, count, sizeof(*sorted), compare);
    double usual = count ? sorted[count / 2] : 0;
    free(sorted);
    return usual;
}

static struct table table_of(const struct gpu_pairs *pairs, int node)
{
    struct table table = {.pairs = pairs, .node = node};
    while (rank_of(&table, table.n) >= 0)
        table.n++;
    table.usual = usual_of(&table);
    return table;
}

/* One line of what is wrong with a pair; false: nothing is. */
static bool describe(const struct table *table, int from, int to,
                     char text[512])
{
    const struct gpu_pair *pair = pair_of(table, from, to);
    const struct gpu_pairs *pairs = table->pairs;
    int reader = rank_of(table, to), owner = rank_of(table, from);
    char a[32], b[32];
    if (pair->why[0])
        snprintf(text, 512, "rank %d (GPU %s) cannot read rank %d's (%s): %s",
                 reader, pairs->bus[reader], owner, pairs->bus[owner],
                 pair->why);
    else if (pair->gbs < table->usual / 2)
        snprintf(text, 512,
                 "rank %d (GPU %s) reads rank %d's (%s) slowly: %s, usual are "
                 "%s",
                 reader, pairs->bus[reader], owner, pairs->bus[owner],
                 rate_text(a, pair->gbs), rate_text(b, table->usual));
    else
        return false;
    return true;
}

/* ---- as text ---- */

static void print_matrix(FILE *out, const struct table *table, bool latency)
{
    fprintf(out, "%12s", "");
    for (int to = 0; to < table->n; to++)
        fprintf(out, "  rank %3d", rank_of(table, to));
    fputc('\n', out);
    for (int from = 0; from < table->n; from++) {
        fprintf(out, "%8s %3d", "rank", rank_of(table, from));
        for (int to = 0; to < table->n; to++) {
            const struct gpu_pair *pair = pair_of(table, from, to);
            double value = latency ? pair->us : pair->gbs;
            if (from == to || pair->why[0])
                fprintf(out, " %9s", from == to ? "-" : "no");
            else
                fprintf(out, " %9.*f", value < 10 ? 3 : 1, value);
        }
        fputc('\n', out);
    }
}

static void print_table(FILE *out, const struct table *table)
{
    const char *node = job_node_name(table->pairs->job, table->node);
    char text[512];
    int told = 0;
    if (table->n < 2)
        return;
    if (table->n <= WIDEST) {
        fprintf(out,
                "# bandwidth between the GPUs of %s, GB/s, from row to "
                "column, which reads\n",
                node);
        print_matrix(out, table, false);
        fprintf(out,
                "# latency of 8 bytes between the GPUs of %s, us, with "
                "the call and its end\n",
                node);
        print_matrix(out, table, true);
    }
    for (int from = 0; from < table->n; from++)
        for (int to = 0; to < table->n; to++)
            if (from != to && describe(table, from, to, text)) {
                print_line(out, "%s", text);
                told++;
            }
    if (!told)
        fprintf(out, "# all GPUs of %s reach each other\n", node);
    fputs("#\n", out);
}

void gpu_pairs_print(FILE *out, const struct gpu_pairs *pairs, bool alone)
{
    const struct job *job = pairs->job;
    fprintf(out, "# dt-bench %s: GPU memory of %d ranks of %d node%s, %s\n#\n",
            PACKAGE_VERSION, job->size, job->nodes, job->nodes == 1 ? "" : "s",
            alone ? "one by one" : "as many pairs at once as there are");
    for (int node = 0; node < job->nodes; node++) {
        struct table table = table_of(pairs, node);
        print_table(out, &table);
    }
}

/* ---- as JSON ---- */

static json_t *rows_of(struct json *json, const struct table *table,
                       bool latency)
{
    json_t *rows = json_array();
    for (int from = 0; from < table->n; from++) {
        json_t *row = json_array();
        for (int to = 0; to < table->n; to++) {
            const struct gpu_pair *pair = pair_of(table, from, to);
            bool none = from == to || pair->why[0];
            json_append(json, row,
                        none ? json_null()
                             : json_rounded(latency ? pair->us : pair->gbs));
        }
        json_append(json, rows, row);
    }
    return rows;
}

static json_t *lines_of(struct json *json, const struct table *table)
{
    json_t *list = json_array();
    char text[512];
    for (int from = 0; from < table->n; from++)
        for (int to = 0; to < table->n; to++) {
            if (from == to || !describe(table, from, to, text))
                continue;
            json_t *line = json_object();
            json_put(json, line, "kind",
                     json_string(pair_of(table, from, to)->why[0] ? "fails"
                                                                  : "slow"));
            json_put(json, line, "from", json_integer(rank_of(table, from)));
            json_put(json, line, "to", json_integer(rank_of(table, to)));
            json_put(json, line, "text", json_string(text));
            json_append(json, list, line);
        }
    return list;
}

dt_result_t gpu_pairs_json(FILE *out, const struct gpu_pairs *pairs,
                           struct dt_error *err)
{
    const struct job *job = pairs->job;
    struct json json = {0};
    json_t *object = json_job(&json, job), *nodes = json_array();
    json_put(&json, object, "operation", json_string("pairwise"));
    json_put(&json, object, "memory", json_string("cuda"));
    for (int node = 0; node < job->nodes; node++) {
        struct table table = table_of(pairs, node);
        json_t *one = json_object(), *ranks = json_array();
        json_t *gpus = json_array();
        for (int player = 0; player < table.n; player++) {
            int rank = rank_of(&table, player);
            json_append(&json, ranks, json_integer(rank));
            json_append(&json, gpus, json_string(pairs->bus[rank]));
        }
        json_put(&json, one, "node", json_string(job_node_name(job, node)));
        json_put(&json, one, "rank", ranks);
        json_put(&json, one, "gpu", gpus);
        json_put(&json, one, "bandwidth", rows_of(&json, &table, false));
        json_put(&json, one, "latency_us", rows_of(&json, &table, true));
        json_put(&json, one, "usual_bandwidth", json_rounded(table.usual));
        json_put(&json, one, "wrong", lines_of(&json, &table));
        json_append(&json, nodes, one);
    }
    json_put(&json, object, "within_nodes", nodes);
    return json_write(out, &json, object, err);
}
