/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* options.c - the command line of dt-topo. */
#include "options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPT_INPUT = 256,
    OPT_JSON,
    OPT_XML,
    OPT_SVG,
    OPT_TEXT,
    OPT_TASKS,
    OPT_POLICY,
    OPT_GPUS,
    OPT_CPUS,
    OPT_NICS,
    OPT_EXPLAIN,
    OPT_DIFF,
    OPT_TIMEOUT,
    OPT_CACHED,
    OPT_CACHE,
    OPT_REFRESH,
    OPT_FRAMED,
    OPT_CONF,
    OPT_NODE,
};

enum { TIMEOUT = 60, MAX_TIMEOUT = 3600 };

static const struct option known[] = {
    {"input", required_argument, NULL, OPT_INPUT},
    {"json", no_argument, NULL, OPT_JSON},
    {"xml", no_argument, NULL, OPT_XML},
    {"svg", no_argument, NULL, OPT_SVG},
    {"text", no_argument, NULL, OPT_TEXT},
    {"tasks", required_argument, NULL, OPT_TASKS},
    {"policy", required_argument, NULL, OPT_POLICY},
    {"gpus", required_argument, NULL, OPT_GPUS},
    {"cpus", required_argument, NULL, OPT_CPUS},
    {"nics", required_argument, NULL, OPT_NICS},
    {"explain", no_argument, NULL, OPT_EXPLAIN},
    {"diff", required_argument, NULL, OPT_DIFF},
    {"nodelist", required_argument, NULL, 'w'},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"cached", no_argument, NULL, OPT_CACHED},
    {"cache", required_argument, NULL, OPT_CACHE},
    {"refresh", no_argument, NULL, OPT_REFRESH},
    {"framed", no_argument, NULL, OPT_FRAMED},
    {"conf", required_argument, NULL, OPT_CONF},
    {"node", required_argument, NULL, OPT_NODE},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

void options_help(FILE *out)
{
    fputs(
        "usage: dt-topo [--input FILE] [--json | --xml | --svg | --text]\n"
        "       dt-topo [--input FILE] --tasks T [--policy P] [--gpus LIST]\n"
        "               [--cpus LIST] [--nics N] [--explain | --json]\n"
        "       dt-topo --diff A [B]\n"
        "       dt-topo -w NODELIST [--timeout SECONDS] [--refresh]\n"
        "       dt-topo --cached [--cache DIR] [--refresh]\n"
        "\n"
        "  --input FILE    that machine, not this one; \"-\" is standard "
        "input\n"
        "  --tasks T       which of T tasks gets which GPUs, CPUs and NICs\n"
        "  --policy P      auto, rotate, single, <n>, map:<list>, mask:<list>\n"
        "  --gpus LIST     of these GPUs only, as Slurm might grant them\n"
        "  --cpus LIST     of these CPUs only\n"
        "  --nics N        closest, rail, map:<list>, none\n"
        "  --explain       why, and what the alternatives would cost\n"
        "  --diff A [B]    how B, or this node, differs from A; exit 1 if so\n"
        "  -w NODELIST     compare the nodes of a cluster through srun\n"
        "  --cached        this node in our text format, quickly\n"
        "  --conf FILE     another dt.conf; --node NAME: as if on that node\n"
        "\n"
        "See dt-topo(1).\n",
        out);
}

static dt_result_t set_form(struct options *options, enum form form,
                            struct dt_error *err)
{
    if (options->form != FORM_PICTURE && options->form != form)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "expected one of --json, --xml, --svg, --text");
    options->form = form;
    return DT_SUCCESS;
}

static dt_result_t set_timeout(struct options *options, const char *text,
                               struct dt_error *err)
{
    char *end;
    unsigned long seconds = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || !seconds || seconds > MAX_TIMEOUT)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "--timeout %s: expected 1 to %d seconds", text,
                            MAX_TIMEOUT);
    options->cluster.timeout = (unsigned)seconds;
    return DT_SUCCESS;
}

/* The field of an option whose value is text; NULL: it is of another kind. */
static const char **text_of(struct options *options, int c)
{
    switch (c) {
    case OPT_INPUT:
        return &options->input;
    case OPT_TASKS:
        return &options->request.tasks;
    case OPT_POLICY:
        return &options->request.policy;
    case OPT_GPUS:
        return &options->request.gpus;
    case OPT_CPUS:
        return &options->request.cpus;
    case OPT_NICS:
        return &options->request.nics;
    case OPT_DIFF:
        return &options->diff[0];
    case 'w':
        return &options->cluster.nodes;
    case OPT_CACHE:
        return &options->node.cache;
    case OPT_CONF:
        return &options->node.conf;
    case OPT_NODE:
        return &options->node.name;
    default:
        return NULL;
    }
}

static bool *flag_of(struct options *options, int c)
{
    switch (c) {
    case OPT_EXPLAIN:
        return &options->explain;
    case OPT_CACHED:
        return &options->node.cached;
    case OPT_REFRESH:
        return &options->node.refresh;
    case OPT_FRAMED:
        return &options->framed;
    case 'h':
        return &options->help;
    case 'V':
        return &options->version;
    default:
        return NULL;
    }
}

static dt_result_t take(struct options *options, int c, const char *value,
                        struct dt_error *err)
{
    const char **text = text_of(options, c);
    bool *flag = flag_of(options, c);
    if (text)
        *text = value;
    else if (flag)
        *flag = true;
    else if (c == OPT_TIMEOUT)
        return set_timeout(options, value, err);
    else
        return set_form(options,
                        c == OPT_JSON  ? FORM_JSON
                        : c == OPT_XML ? FORM_XML
                        : c == OPT_SVG ? FORM_SVG
                                       : FORM_TEXT,
                        err);
    return DT_SUCCESS;
}

/* Can the options be combined? */
static dt_result_t check(const struct options *options, struct dt_error *err)
{
    const struct request_text *request = &options->request;
    int modes = (options->input != NULL) + (options->diff[0] != NULL) +
                (options->cluster.nodes != NULL) + options->node.cached;
    const char *what = NULL;
    if (modes > 1)
        what = "expected one of --input, --diff, -w, --cached";
    else if (!request->tasks && (request->policy || request->gpus ||
                                 request->cpus || request->nics))
        what = "--policy, --gpus, --cpus and --nics go with --tasks";
    else if (!request->tasks && options->explain)
        what = "--explain goes with --tasks";
    else if (request->tasks && options->form != FORM_PICTURE &&
             options->form != FORM_JSON)
        what = "--tasks goes with --json only";
    else if (options->explain && options->form == FORM_JSON)
        what = "--explain does not go with --json";
    else if ((options->diff[0] || options->cluster.nodes ||
              options->node.cached) &&
             (options->form != FORM_PICTURE || request->tasks))
        what = "--diff, -w and --cached have their own form: leave the others "
               "out";
    else if (options->framed && !options->node.cached)
        what = "--framed goes with --cached";
    else if (options->node.cache && !options->node.cached)
        what = "--cache goes with --cached";
    else if (options->node.refresh && !options->node.cached &&
             !options->cluster.nodes)
        what = "--refresh goes with --cached and -w";
    else if (options->cluster.timeout && !options->cluster.nodes)
        what = "--timeout goes with -w";
    else if (options->node.name && options->cluster.nodes)
        what = "--node does not go with -w";
    else if ((options->node.conf || options->node.name) &&
             (options->input || options->diff[1]))
        what = "--conf and --node are about this node: leave out --input, or "
               "the second of --diff";
    return what ? dt_error_set(err, DT_ERR_INVALID_ARG, "%s", what)
                : DT_SUCCESS;
}

dt_result_t options_parse(struct options *options, int argc, char **argv,
                          struct dt_error *err)
{
    int c;
    *options = (struct options){0};
    opterr = 0;
    while ((c = getopt_long(argc, argv, ":w:hV", known, NULL)) != -1) {
        if (c == '?' && optopt > 0 && optopt < OPT_INPUT) /* maybe of -abc */
            return dt_error_set(err, DT_ERR_INVALID_ARG, "-%c: no such option",
                                optopt);
        if (c == ':' || c == '?')
            return dt_error_set(
                err, DT_ERR_INVALID_ARG,
                c == ':' ? "%s: expected a value after it"
                         : "%s: no such option, or it takes no value",
                argv[optind - 1]);
        dt_result_t rc = take(options, c, optarg, err);
        if (rc != DT_SUCCESS)
            return rc;
    }
    if (options->diff[0] && optind < argc)
        options->diff[1] = argv[optind++];
    if (optind < argc)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s: no argument is expected here", argv[optind]);
    options->cluster.conf = options->node.conf;
    options->cluster.refresh = options->node.refresh;
    if (options->help || options->version)
        return DT_SUCCESS;
    dt_result_t rc = check(options, err);
    if (!options->cluster.timeout)
        options->cluster.timeout = TIMEOUT;
    return rc;
}
