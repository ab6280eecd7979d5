/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fashion_options.c - parse the command line strictly: a number is a whole
 * number in its range, or an error text says so. */
#include "fashion_options.h"

#include "fashion_data.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>

static const struct options defaults = {
    .epochs = 12,
    .batch = 32,
    .lr = 0.01,
    .momentum = 0.9,
    .seed = 1,
    .hidden = 256,
    .data = FASHION_DIR,
};

void options_help(FILE *to)
{
    fprintf(
        to,
        "Usage: fashion [OPTION]...\n"
        "Train a small network on Fashion-MNIST, data parallel over the ranks "
        "of the job.\n\n"
        "  --epochs=N          passes over the training set (%lld)\n"
        "  --batch=N           samples per rank and step (%zu)\n"
        "  --lr=X              learning rate of one rank, scaled by the number "
        "of ranks (%g)\n"
        "  --momentum=X        of the gradient descent (%g)\n"
        "  --seed=N            of the first weights and the shuffling (%llu)\n"
        "  --hidden=N          width of the hidden layer (%zu)\n"
        "  --data=DIR          the dataset (%s)\n"
        "  --ckpt=DIR          keep checkpoints there and resume from the "
        "newest (srun --dt-ckpt)\n"
        "  --ckpt-every=N      steps between two checkpoints (srun "
        "--dt-ckpt-interval)\n"
        "  --plan              sum each gradient as soon as it is computed\n"
        "  --metrics=FILE      append loss and accuracy as CSV\n"
        "  --save-weights=FILE write the final weights, raw f32\n"
        "  --quiet             only print warnings and the result\n"
        "  --help              this text\n\n"
        "Exit status: 0 trained; 75 preempted, to be requeued; 64 usage; "
        "66 no dataset;\n1 anything else.\n",
        (long long)defaults.epochs, defaults.batch, defaults.lr,
        defaults.momentum, (unsigned long long)defaults.seed, defaults.hidden,
        defaults.data);
}

/* ---- one value ---- */

struct value {
    const char *option, *text;
    char *why; /* size bytes */
    size_t size;
    bool bad;
};

static int64_t whole(struct value *v, int64_t min, int64_t max)
{
    char *end;
    errno = 0;
    long long n = strtoll(v->text, &end, 10);
    if (errno || end == v->text || *end || n < min || n > max) {
        snprintf(v->why, v->size,
                 "--%s=%s: expected a whole number from %lld to %lld",
                 v->option, v->text, (long long)min, (long long)max);
        v->bad = true;
    }
    return n;
}

static double real(struct value *v, double min, double below)
{
    char *end;
    double x = strtod(v->text, &end);
    if (end == v->text || *end || !isfinite(x) || x < min || x >= below) {
        snprintf(v->why, v->size,
                 "--%s=%s: expected a number from %g to below %g", v->option,
                 v->text, min, below);
        v->bad = true;
    }
    return x;
}

static const char *path(struct value *v)
{
    if (!v->text[0]) {
        snprintf(v->why, v->size, "--%s: expected a path", v->option);
        v->bad = true;
    }
    return v->text;
}

/* ---- the command line ---- */

enum key {
    EPOCHS,
    BATCH,
    LR,
    MOMENTUM,
    SEED,
    HIDDEN,
    DATA,
    CKPT,
    CKPT_EVERY,
    PLAN,
    METRICS,
    SAVE_WEIGHTS,
    QUIET,
    HELP,
};

static const struct option longopts[] = {
    {"epochs", required_argument, NULL, EPOCHS},
    {"batch", required_argument, NULL, BATCH},
    {"lr", required_argument, NULL, LR},
    {"momentum", required_argument, NULL, MOMENTUM},
    {"seed", required_argument, NULL, SEED},
    {"hidden", required_argument, NULL, HIDDEN},
    {"data", required_argument, NULL, DATA},
    {"ckpt", required_argument, NULL, CKPT},
    {"ckpt-every", required_argument, NULL, CKPT_EVERY},
    {"plan", no_argument, NULL, PLAN},
    {"metrics", required_argument, NULL, METRICS},
    {"save-weights", required_argument, NULL, SAVE_WEIGHTS},
    {"quiet", no_argument, NULL, QUIET},
    {"help", no_argument, NULL, HELP},
    {0},
};

static void set(struct options *opt, enum key which, struct value *v)
{
    switch (which) {
    case EPOCHS:
        opt->epochs = whole(v, 1, 1000000);
        break;
    case BATCH:
        opt->batch = (size_t)whole(v, 1, 65536);
        break;
    case LR:
        opt->lr = real(v, 0, 100);
        break;
    case MOMENTUM:
        opt->momentum = real(v, 0, 1);
        break;
    case SEED:
        opt->seed = (uint64_t)whole(v, 0, INT64_MAX);
        break;
    case HIDDEN:
        opt->hidden = (size_t)whole(v, 1, 65536);
        break;
    case DATA:
        opt->data = path(v);
        break;
    case CKPT:
        opt->ckpt = path(v);
        break;
    case CKPT_EVERY:
        opt->ckpt_every = whole(v, 1, INT64_MAX);
        break;
    case PLAN:
        opt->plan = true;
        break;
    case METRICS:
        opt->metrics = path(v);
        break;
    case SAVE_WEIGHTS:
        opt->save_weights = path(v);
        break;
    case QUIET:
        opt->quiet = true;
        break;
    case HELP:
        opt->help = true;
        break;
    }
}

int options_parse(struct options *opt, int argc, char **argv, char *why,
                  size_t size)
{
    int which, index = 0;
    struct options got = defaults;

    opterr = 0;
    while ((which = getopt_long(argc, argv, ":", longopts, &index)) != -1) {
        if (which == '?' || which == ':') {
            snprintf(why, size, "%s: %s; --help lists the options",
                     argv[optind - 1],
                     which == ':' ? "a value is missing" : "no such option");
            return -1;
        }
        struct value v = {.option = longopts[index].name,
                          .text = optarg,
                          .why = why,
                          .size = size};
        set(&got, (enum key)which, &v);
        if (v.bad)
            return -1;
    }
    if (optind < argc) {
        snprintf(why, size, "%s: no arguments expected, only options",
                 argv[optind]);
        return -1;
    }
    *opt = got;
    return 0;
}
