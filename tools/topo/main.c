/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* main.c - dt-topo: the topology of a node and the placement of its tasks. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "node/node.h"
#include "options.h"
#include "print/print.h"

const char program[] = "dt-topo";

/* As diff has it for a comparison; else 0 and FAILED. */
enum { SAME = 0, DIFFERENT = 1, FAILED = 1, TROUBLE = 2, USAGE = 64 };

static int complain(const struct dt_error *err, int status)
{
    note(stderr, "%s",
         err->text[0] ? err->text : "it failed without a message");
    return status;
}

static dt_result_t get_topology(const struct options *options, dt_topo_t **topo,
                                struct dt_error *err)
{
    return options->input ? dt_topo_load(options->input, topo, err)
                          : node_topology(&options->node, topo, err);
}

static dt_result_t print_text(const dt_topo_t *topo, struct dt_error *err)
{
    char *text = dt_topo_print(topo);
    if (!text)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    fputs(text, stdout);
    free(text);
    return DT_SUCCESS;
}

static dt_result_t print_tasks(const struct options *options,
                               const dt_topo_t *topo, struct dt_error *err)
{
    struct plan plan;
    dt_result_t rc = plan_make(&plan, topo, &options->request, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (options->form == FORM_JSON) {
        rc = print_json(stdout, topo, &plan, err);
    } else {
        print_plan(stdout, &plan);
        print_plan_notes(stdout, &plan);
        if (options->explain) {
            putchar('\n');
            print_explanation(stdout, &plan);
        }
    }
    plan_clear(&plan);
    return rc;
}

static dt_result_t print_machine(const struct options *options,
                                 const dt_topo_t *topo, struct dt_error *err)
{
    struct look look = look_of(stdout);
    switch (options->form) {
    case FORM_JSON:
        return print_json(stdout, topo, NULL, err);
    case FORM_XML:
        print_xml(stdout, topo);
        break;
    case FORM_SVG:
        print_svg(stdout, topo);
        break;
    case FORM_TEXT:
        return print_text(topo, err);
    case FORM_PICTURE:
        print_tree(stdout, topo, look);
        print_matrix(stdout, topo, look);
        break;
    }
    return DT_SUCCESS;
}

static int show(const struct options *options, struct dt_error *err)
{
    dt_topo_t *topo;
    if (get_topology(options, &topo, err) != DT_SUCCESS)
        return complain(err, FAILED);
    if (!options->node.cached) /* which the plugin reads */
        make_printable(topo);
    dt_result_t rc = options->request.tasks ? print_tasks(options, topo, err)
                                            : print_machine(options, topo, err);
    dt_topo_destroy(topo);
    return rc == DT_SUCCESS ? 0 : complain(err, FAILED);
}

static int compare(const struct options *options, struct dt_error *err)
{
    dt_topo_t *expected, *got;
    if (dt_topo_load(options->diff[0], &expected, err) != DT_SUCCESS)
        return complain(err, TROUBLE);
    dt_result_t rc = options->diff[1]
                         ? dt_topo_load(options->diff[1], &got, err)
                         : node_topology(&options->node, &got, err);
    size_t lines = 0;
    if (rc == DT_SUCCESS) {
        make_printable(expected);
        make_printable(got);
        lines = print_diff(stdout, "", expected, got);
        dt_topo_destroy(got);
    }
    dt_topo_destroy(expected);
    if (rc != DT_SUCCESS)
        return complain(err, TROUBLE);
    return lines ? DIFFERENT : SAME;
}

static int compare_cluster(const struct options *options, struct dt_error *err)
{
    bool same = false;
    if (cluster_compare(stdout, &options->cluster, &same, err) != DT_SUCCESS)
        return complain(err, TROUBLE);
    return same ? SAME : DIFFERENT;
}

/* This node for -w, where errors and notes go the same way as the text. */
static int show_framed(struct options *options, struct dt_error *err)
{
    char name[HOST_NAME], *notes = NULL, *text = NULL;
    size_t size;
    dt_topo_t *topo;
    node_name(&options->node, name);
    options->node.notes = open_memstream(&notes, &size);
    if (!options->node.notes) {
        dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
        return complain(err, FAILED);
    }
    if (node_topology(&options->node, &topo, err) == DT_SUCCESS) {
        text = dt_topo_print(topo);
        dt_topo_destroy(topo);
    } else {
        note(options->node.notes, "%s", err->text);
    }
    fclose(options->node.notes);
    frame_print(stdout, name, FRAME_NOTE, notes ? notes : "");
    if (text) {
        frame_print(stdout, name, FRAME_TEXT, text);
        frame_end(stdout, name);
    }
    int status = text ? 0 : FAILED;
    free(notes);
    free(text);
    return status;
}

static int run(struct options *options, struct dt_error *err)
{
    if (options->help) {
        options_help(stdout);
        return 0;
    }
    if (options->version) {
        puts("dt-topo " PACKAGE_VERSION);
        return 0;
    }
    options->node.notes = stderr;
    if (options->diff[0])
        return compare(options, err);
    if (options->cluster.nodes)
        return compare_cluster(options, err);
    if (options->framed)
        return show_framed(options, err);
    if (options->node.cached)
        options->form = FORM_TEXT;
    return show(options, err);
}

int main(int argc, char **argv)
{
    struct options options;
    struct dt_error err = {""};
    streams_fill();
    setlocale(LC_CTYPE, "");
    if (options_parse(&options, argc, argv, &err) != DT_SUCCESS)
        return complain(&err, USAGE);
    int status = run(&options, &err);
    if (!streams_flush())
        return options.diff[0] || options.cluster.nodes ? TROUBLE : FAILED;
    return status;
}
