/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pair_matrix.c - the measurements of pairs as tables, findings and JSON. */
#include <string.h>

#include "report/json.h"
#include "pairwise/pairwise.h"

/* Larger matrices are printed with --json only. */
enum { WIDEST = 16 };

/* A matrix and its players. */
struct table {
    const struct pairs *pairs;
    const struct job *job;
    int node; /* whose ranks; -1: nodes */
};

static const char *player_name(const struct table *table, int player,
                               char text[96])
{
    if (table->node < 0)
        snprintf(text, 96, "%s", job_node_name(table->job, player));
    else
        snprintf(text, 96, "rank %d",
                 job_rank_of(table->job, table->node, player));
    return text;
}

/* ---- findings ---- */

/* Receives each finding: its text, and the players that it is about. */
struct findings {
    void (*add)(struct findings *self, const char *kind, const char *from,
                const char *to, const char *text);
    FILE *out;
    struct json *json;
    json_t *list;
    size_t count;
};

static double share(double value, double of)
{
    return of > 0 ? 100 * value / of : 0;
}

/* The highest bandwidth of a slow player. */
static double best_of(const struct pairs *pairs, int player, bool out)
{
    double best = 0;
    for (int other = 0; other < pairs->n; other++) {
        double gbs = pairs->gbs[out ? player * pairs->n + other
                                    : other * pairs->n + player];
        if (other != player && gbs > best)
            best = gbs;
    }
    return best;
}

static void report_player(const struct table *table, int player,
                          struct findings *findings)
{
    const struct pairs *pairs = table->pairs;
    bool out = pairs_slow_out(pairs, player), in = pairs_slow_in(pairs, player);
    const char *all = table->node < 0 ? "all nodes" : "all ranks of its node";
    char name[96], text[512], a[32], b[32];
    player_name(table, player, name);
    if (out || in) {
        double best = best_of(pairs, player, out);
        snprintf(text, sizeof(text),
                 "%s is slow %s %s: at most %s, %.0f %% of the usual %s", name,
                 out && in ? "to and from"
                 : out     ? "to"
                           : "from",
                 all, rate_text(a, best), share(best, pairs->usual_gbs),
                 rate_text(b, pairs->usual_gbs));
        findings->add(findings, "slow", name, NULL, text);
    }
    if (pairs_late_all(pairs, player)) {
        snprintf(text, sizeof(text), "%s is late to %s, usual are %s", name,
                 all, time_text(a, pairs->usual_us));
        findings->add(findings, "late", name, NULL, text);
    }
}

static void report_pair(const struct table *table, int from, int to,
                        struct findings *findings)
{
    const struct pairs *pairs = table->pairs;
    char one[96], two[96], text[512], a[32], b[32];
    double gbs = pairs->gbs[from * pairs->n + to];
    double us = pairs->us[from * pairs->n + to];
    player_name(table, from, one);
    player_name(table, to, two);
    if (pairs_slow(pairs, from, to) && !pairs_slow_out(pairs, from) &&
        !pairs_slow_in(pairs, to)) {
        snprintf(text, sizeof(text),
                 "%s to %s is slow: %s, %.0f %% of the usual %s", one, two,
                 rate_text(a, gbs), share(gbs, pairs->usual_gbs),
                 rate_text(b, pairs->usual_gbs));
        findings->add(findings, "slow", one, two, text);
    }
    if (from < to && pairs_late(pairs, from, to) &&
        !pairs_late_all(pairs, from) && !pairs_late_all(pairs, to)) {
        snprintf(text, sizeof(text), "%s to %s is late: %s, usual are %s", one,
                 two, time_text(a, us), time_text(b, pairs->usual_us));
        findings->add(findings, "late", one, two, text);
    }
}

static void report_all(const struct table *table, struct findings *findings)
{
    int n = table->pairs->n;
    for (int player = 0; player < n; player++)
        report_player(table, player, findings);
    for (int from = 0; from < n; from++)
        for (int to = 0; to < n; to++)
            if (from != to)
                report_pair(table, from, to, findings);
}

/* ---- as text ---- */

static void print_finding(struct findings *self, const char *kind,
                          const char *from, const char *to, const char *text)
{
    (void)kind, (void)from, (void)to;
    fprintf(self->out, "%s\n", text);
    self->count++;
}

static void print_matrix(FILE *out, const struct table *table,
                         const double *value, const char *title)
{
    int n = table->pairs->n;
    char name[96];
    fprintf(out, "# %s\n%12s", title, "");
    for (int to = 0; to < n; to++)
        fprintf(out, " %9.9s", player_name(table, to, name));
    fputc('\n', out);
    for (int from = 0; from < n; from++) {
        fprintf(out, "%12.12s", player_name(table, from, name));
        for (int to = 0; to < n; to++)
            if (from == to)
                fprintf(out, " %9s", "-");
            else
                fprintf(out, " %9.*f", value[from * n + to] < 10 ? 3 : 1,
                        value[from * n + to]);
        fputc('\n', out);
    }
}

static void print_table(FILE *out, const struct table *table)
{
    const struct pairs *pairs = table->pairs;
    struct findings findings = {.add = print_finding, .out = out};
    char where[128] = "nodes", title[256], a[32], b[32];
    if (pairs->n < 2)
        return;
    if (table->node >= 0)
        snprintf(where, sizeof(where), "the ranks of %s",
                 job_node_name(table->job, table->node));
    if (pairs->n <= WIDEST) {
        snprintf(title, sizeof(title),
                 "bandwidth between %s, GB/s, from row to column", where);
        print_matrix(out, table, pairs->gbs, title);
        snprintf(title, sizeof(title), "latency between %s, us, one way",
                 where);
        print_matrix(out, table, pairs->us, title);
    }
    fprintf(out, "# usual between %s: %s, %s\n", where,
            rate_text(a, pairs->usual_gbs), time_text(b, pairs->usual_us));
    report_all(table, &findings);
    if (!findings.count)
        fprintf(out, "# no slow %s\n", table->node < 0 ? "link" : "pair");
    fputs("#\n", out);
}

void matrices_print(FILE *out, const struct matrices *matrices)
{
    const struct job *job = matrices->job;
    fprintf(out, "# dt-bench %s: pairs of %d rank%s of %d node%s, %s\n#\n",
            PACKAGE_VERSION, job->size, job->size == 1 ? "" : "s", job->nodes,
            job->nodes == 1 ? "" : "s",
            matrices->alone ? "one by one" : "as many at once as there are");
    struct table table = {&matrices->nodes, job, -1};
    print_table(out, &table);
    for (table.node = 0; table.node < job->nodes; table.node++) {
        table.pairs = &matrices->within[table.node];
        print_table(out, &table);
    }
}

/* ---- as JSON ---- */

static void append_line(struct findings *self, const char *kind,
                        const char *from, const char *to, const char *text)
{
    json_t *object = json_object();
    json_put(self->json, object, "kind", json_string(kind));
    json_put(self->json, object, "from", json_string(from));
    if (to)
        json_put(self->json, object, "to", json_string(to));
    json_put(self->json, object, "text", json_string(text));
    json_append(self->json, self->list, object);
}

static json_t *rows_of(struct json *json, const double *value, int n)
{
    json_t *rows = json_array();
    for (int from = 0; from < n; from++) {
        json_t *row = json_array();
        for (int to = 0; to < n; to++)
            json_append(json, row,
                        from == to ? json_null()
                                   : json_rounded(value[from * n + to]));
        json_append(json, rows, row);
    }
    return rows;
}

static json_t *table_object(struct json *json, const struct table *table)
{
    const struct pairs *pairs = table->pairs;
    json_t *object = json_object(), *names = json_array();
    struct findings findings = {
        .add = append_line, .json = json, .list = json_array()};
    char name[96];
    for (int player = 0; player < pairs->n; player++)
        json_append(json, names, json_string(player_name(table, player, name)));
    report_all(table, &findings);
    json_put(json, object, "names", names);
    json_put(json, object, "latency_us", rows_of(json, pairs->us, pairs->n));
    json_put(json, object, "bandwidth", rows_of(json, pairs->gbs, pairs->n));
    json_put(json, object, "usual_us", json_rounded(pairs->usual_us));
    json_put(json, object, "usual_bandwidth", json_rounded(pairs->usual_gbs));
    json_put(json, object, "slow", findings.list);
    return object;
}

dt_result_t matrices_json(FILE *out, const struct matrices *matrices,
                          struct dt_error *err)
{
    const struct job *job = matrices->job;
    struct json json = {0};
    json_t *object = json_job(&json, job), *within = json_array();
    struct table table = {&matrices->nodes, job, -1};
    json_put(&json, object, "operation", json_string("pairwise"));
    json_put(&json, object, "between_nodes", table_object(&json, &table));
    for (table.node = 0; table.node < job->nodes; table.node++) {
        table.pairs = &matrices->within[table.node];
        json_t *node = table_object(&json, &table);
        json_put(&json, node, "node",
                 json_string(job_node_name(job, table.node)));
        json_append(&json, within, node);
    }
    json_put(&json, object, "within_nodes", within);
    return json_write(out, &json, object, err);
}
