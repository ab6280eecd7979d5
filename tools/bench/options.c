/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* options.c - the command line of dt-bench. */
#include "options.h"

#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "measure/element.h"

enum {
    OPT_MEM = 256,
    OPT_INPLACE,
    OPT_STATS,
    OPT_JSON,
    OPT_SVG,
    OPT_LIMIT,
    OPT_PAIRWISE,
    OPT_ALONE,
    OPT_TUNE,
};

static const struct option known[] = {
    {"minbytes", required_argument, NULL, 'b'},
    {"maxbytes", required_argument, NULL, 'e'},
    {"stepfactor", required_argument, NULL, 'f'},
    {"stepbytes", required_argument, NULL, 'i'},
    {"iters", required_argument, NULL, 'n'},
    {"warmup_iters", required_argument, NULL, 'w'},
    {"check", required_argument, NULL, 'c'},
    {"datatype", required_argument, NULL, 'd'},
    {"op", required_argument, NULL, 'o'},
    {"root", required_argument, NULL, 'r'},
    {"blocking", required_argument, NULL, 'z'},
    {"mem", required_argument, NULL, OPT_MEM},
    {"inplace", optional_argument, NULL, OPT_INPLACE},
    {"stats", no_argument, NULL, OPT_STATS},
    {"json", no_argument, NULL, OPT_JSON},
    {"svg", required_argument, NULL, OPT_SVG},
    {"limit", no_argument, NULL, OPT_LIMIT},
    {"pairwise", no_argument, NULL, OPT_PAIRWISE},
    {"alone", no_argument, NULL, OPT_ALONE},
    {"tune", required_argument, NULL, OPT_TUNE},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static const char letters[] = ":b:e:f:i:n:w:c:d:o:r:z:hV";

void options_help(FILE *out)
{
    fprintf(out,
            "usage: dt-bench [OPERATION] [OPTION]...\n"
            "       dt-bench --pairwise [--alone] [--json] [--mem cuda]\n"
            "       dt-bench --tune FILE [--mem cuda]\n"
            "\n"
            "OPERATION: %s\n"
            "\n"
            "  -b, --minbytes SIZE      from this size on (8)\n"
            "  -e, --maxbytes SIZE      to this one (64M)\n"
            "  -f, --stepfactor N       each N times the one before (2)\n"
            "  -i, --stepbytes SIZE     or larger by SIZE\n"
            "  -n, --iters N            timed iterations (what takes 40 ms)\n"
            "  -w, --warmup_iters N     iterations before those (5)\n"
            "  -c, --check N            iterations whose result is checked "
            "(1)\n"
            "  -d, --datatype TYPE      int8 uint8 int32 int64 half bfloat16\n"
            "                           float double f8e4m3 f8e5m2 all "
            "(float)\n"
            "  -o, --op OP              sum prod min max avg all (sum)\n"
            "  -r, --root RANK          of bcast and reduce; all (0)\n"
            "  -z, --blocking 0|1       1: a barrier before each iteration\n"
            "      --inplace[=only|no]  only in place, or never\n"
            "      --mem MEMORY         private (default), registered by\n"
            "                           dt_mem_alloc(), or cuda: of a GPU\n"
            "      --stats              minimum, median and 99th percentile\n"
            "      --limit              the share of what this machine can "
            "do\n"
            "      --json               for programs\n"
            "      --svg FILE           a plot of time and bandwidth\n"
            "      --pairwise           each node with each other: slow ones\n"
            "                           are named; --alone: one by one\n"
            "      --tune FILE          parameters for DT_TUNE; with --mem "
            "cuda\n"
            "                           also by which way GPU memory goes\n"
            "\n"
            "SIZE may end in K, M, G. See dt-bench(1).\n",
            operation_names());
}

/* ---- values ---- */

static dt_result_t set_number(size_t *value, size_t least, size_t most,
                              const char *name, const char *text,
                              struct dt_error *err)
{
    int64_t number;
    dt_result_t rc =
        dt_number_read(name, text, (int64_t)least, (int64_t)most, &number, err);
    if (rc == DT_SUCCESS)
        *value = (size_t)number;
    return rc;
}

static dt_result_t set_size(size_t *value, const char *name, const char *text,
                            struct dt_error *err)
{
    uint64_t bytes;
    dt_result_t rc =
        dt_number_read_size(name, text, 0, PTRDIFF_MAX, &bytes, err);
    if (rc == DT_SUCCESS)
        *value = (size_t)bytes;
    return rc;
}

static dt_result_t set_flag(bool *flag, const char *name, const char *text,
                            struct dt_error *err)
{
    size_t value = 0;
    dt_result_t rc = set_number(&value, 0, 1, name, text, err);
    if (rc == DT_SUCCESS)
        *flag = value == 1;
    return rc;
}

static dt_result_t set_dtype(struct options *options, const char *text,
                             struct dt_error *err)
{
    dt_dtype_t dtype;
    if (!strcmp(text, "all"))
        options->dtypes = (1U << NUMBER_DTYPES) - 1;
    else if (dtype_by_name(text, &dtype))
        options->dtypes = 1U << dtype;
    else
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "-d %s: expected int8, uint8, int32, int64, half, "
                            "bfloat16, float, double, f8e4m3, f8e5m2 or all",
                            text);
    return DT_SUCCESS;
}

static dt_result_t set_op(struct options *options, const char *text,
                          struct dt_error *err)
{
    dt_op_t op;
    if (!strcmp(text, "all"))
        options->ops = (1U << NUMBER_OPS) - 1;
    else if (op_by_name(text, &op))
        options->ops = 1U << op;
    else
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "-o %s: expected sum, prod, min, max, avg or all",
                            text);
    return DT_SUCCESS;
}

static dt_result_t set_root(struct options *options, const char *text,
                            struct dt_error *err)
{
    size_t rank = 0;
    options->root = -1;
    if (!strcmp(text, "all"))
        return DT_SUCCESS;
    dt_result_t rc = set_number(&rank, 0, INT_MAX, "-r ", text, err);
    options->root = (int)rank;
    return rc;
}

static dt_result_t set_inplace(struct options *options, const char *text,
                               struct dt_error *err)
{
    if (text && strcmp(text, "only") && strcmp(text, "no"))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "--inplace=%s: expected only or no", text);
    options->outside = text && !strcmp(text, "no");
    options->inside = !options->outside;
    return DT_SUCCESS;
}

static dt_result_t set_memory(struct options *options, const char *text,
                              struct dt_error *err)
{
    for (enum memory m = MEMORY_PRIVATE; m <= MEMORY_CUDA; m++)
        if (!strcmp(text, memory_name(m))) {
            options->memory = m;
            return DT_SUCCESS;
        }
    return dt_error_set(err, DT_ERR_INVALID_ARG,
                        "--mem %s: expected private, registered or cuda", text);
}

static dt_result_t set_operation(struct options *options, const char *name,
                                 struct dt_error *err)
{
    options->operation = operation_by_name(name);
    if (!options->operation)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s: no such operation, expected one of %s", name,
                            operation_names());
    return DT_SUCCESS;
}

/* ---- options ---- */

static bool *flag_of(struct options *options, int c)
{
    switch (c) {
    case OPT_STATS:
        return &options->stats;
    case OPT_JSON:
        return &options->json;
    case OPT_LIMIT:
        return &options->limit;
    case OPT_PAIRWISE:
        return &options->pairwise;
    case OPT_ALONE:
        return &options->alone;
    case 'h':
        return &options->help;
    default:
        return &options->version;
    }
}

static dt_result_t take(struct options *options, int c, const char *value,
                        struct dt_error *err)
{
    switch (c) {
    case 'b':
        return set_size(&options->minbytes, "-b ", value, err);
    case 'e':
        return set_size(&options->maxbytes, "-e ", value, err);
    case 'i':
        return set_size(&options->stepbytes, "-i ", value, err);
    case 'f':
        return set_number(&options->stepfactor, 2, 1 << 30, "-f ", value, err);
    case 'n':
        return set_number(&options->iters, 1, 1 << 30, "-n ", value, err);
    case 'w':
        return set_number(&options->warmups, 0, 1 << 30, "-w ", value, err);
    case 'c':
        return set_number(&options->checks, 0, 1 << 30, "-c ", value, err);
    case 'z':
        return set_flag(&options->blocking, "-z ", value, err);
    case 'd':
        return set_dtype(options, value, err);
    case 'o':
        return set_op(options, value, err);
    case 'r':
        return set_root(options, value, err);
    case OPT_INPLACE:
        return set_inplace(options, value, err);
    case OPT_MEM:
        return set_memory(options, value, err);
    case OPT_SVG:
        options->svg = value;
        return DT_SUCCESS;
    case OPT_TUNE:
        options->tune = value;
        return DT_SUCCESS;
    default:
        *flag_of(options, c) = true;
        return DT_SUCCESS;
    }
}

/* Do the options go together? */
static dt_result_t check(const struct options *options, bool named,
                         struct dt_error *err)
{
    const struct operation *operation = options->operation;
    const char *what = NULL;
    if (options->minbytes > options->maxbytes)
        what = "-b is larger than -e";
    else if (options->stepbytes && options->stepfactor)
        what = "expected one of -f and -i";
    else if (options->pairwise && options->tune)
        what = "expected one of --pairwise and --tune";
    else if ((options->pairwise || options->tune) &&
             (named || options->svg || options->limit || options->stats))
        what = "--pairwise and --tune measure what they need: leave out the "
               "operation, --svg, --limit and --stats";
    else if (options->tune && options->json)
        what = "--tune does not go with --json";
    else if (options->memory == MEMORY_CUDA && options->limit)
        what = "--limit measures the host's memory: leave out --mem cuda";
    else if (options->alone && !options->pairwise)
        what = "--alone goes with --pairwise";
    else if (!(options->inside && operation->inside) &&
             !(options->outside && operation->outside))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "--inplace: %s is %s in place", operation->name,
                            operation->inside ? "always" : "never");
    return what ? dt_error_set(err, DT_ERR_INVALID_ARG, "%s", what)
                : DT_SUCCESS;
}

dt_result_t options_parse(struct options *options, int argc, char **argv,
                          struct dt_error *err)
{
    int c;
    *options = (struct options){.operation = operation_by_name("allreduce"),
                                .minbytes = 8,
                                .maxbytes = 64 << 20,
                                .warmups = 5,
                                .checks = 1,
                                .dtypes = 1U << DT_DTYPE_F32,
                                .ops = 1U << DT_OP_SUM,
                                .inside = true,
                                .outside = true};
    bool max_given = false, min_given = false;
    opterr = 0;
    while ((c = getopt_long(argc, argv, letters, known, NULL)) != -1) {
        if (c == '?' && optopt > 0 && optopt < OPT_MEM)
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
        min_given |= c == 'b';
        max_given |= c == 'e';
    }
    bool named = optind < argc;
    if (named) {
        dt_result_t rc = set_operation(options, argv[optind++], err);
        if (rc != DT_SUCCESS)
            return rc;
    }
    if (optind < argc)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s: no argument is expected here", argv[optind]);
    if (min_given && !max_given && options->minbytes > options->maxbytes)
        options->maxbytes = options->minbytes;
    if (max_given && !min_given && options->minbytes > options->maxbytes)
        options->minbytes = options->maxbytes;
    if (options->help || options->version)
        return DT_SUCCESS;
    dt_result_t rc = check(options, named, err);
    if (!options->stepbytes && !options->stepfactor)
        options->stepfactor = 2;
    return rc;
}

dt_result_t options_check(const struct options *options, int ranks,
                          struct dt_error *err)
{
    if (options->root >= ranks)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "-r %d: expected a rank, 0 to %d, or all",
                            options->root, ranks - 1);
    return DT_SUCCESS;
}
