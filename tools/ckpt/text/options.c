/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* options.c - the command line of dt-ckpt. */
#include "text/options.h"

#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

static const struct option known[] = {
    {"json", no_argument, NULL, 'j'},
    {"force", no_argument, NULL, 'f'},
    {"dry-run", no_argument, NULL, 'd'},
    {"numpy", required_argument, NULL, 'n'},
    {"tensor", required_argument, NULL, 't'},
    {"step", required_argument, NULL, 's'},
    {"ranks", required_argument, NULL, 'r'},
    {"keep", required_argument, NULL, 'k'},
    {"every", required_argument, NULL, 'e'},
    {"count", required_argument, NULL, 'c'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

#define MANY INT_MAX

static const struct command commands[] = {
    {"list", "DIR [--json]", "the checkpoints of a directory", 1, 1, "j", "",
     command_list, 1},
    {"show", "DIR|STEP [--tensor NAME] [--json]", "what one holds", 1, 1, "jt",
     "", command_show, 1},
    {"verify", "DIR|STEP... [--json]", "whether all bytes are as written", 1,
     MANY, "j", "", command_verify, 1},
    {"diff", "A B [--json]", "how B differs from A; exit 1 if so", 2, 2, "j",
     "", command_diff, 2},
    {"export", "STEP FILE | STEP --numpy DIR [--force]",
     "as one safetensors file, or one .npy per tensor", 1, 2, "nf", "",
     command_export, 1},
    {"import", "FILE... DIR --step N [--force]",
     "a checkpoint of safetensors and .npy files", 2, MANY, "sf", "s",
     command_import, 1},
    {"reshard", "STEP DIR --ranks N [--force]",
     "the same contents, cut into equal parts", 2, 2, "rf", "r",
     command_reshard, 1},
    {"repair", "DIR...", "rebuild the files of lost nodes", 1, MANY, "", "",
     command_repair, 1},
    {"flush", "FROM TO", "copy to TO what it lacks, verified", 2, 2, "", "",
     command_flush, 1},
    {"prune", "DIR --keep N [--every K] [--dry-run] [--json]",
     "remove old ones", 1, 1, "kedj", "k", command_prune, 1},
    {"watch", "DIR [--count N]", "a line for each new one", 1, 1, "c", "",
     command_watch, 1},
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

void options_help(FILE *out)
{
    fputs("usage: dt-ckpt COMMAND ...\n\n", out);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(out, "  dt-ckpt %s %s\n      %s\n", commands[i].name,
                commands[i].synopsis, commands[i].purpose);
    fputs("\nSTEP is DIR/step-N, or DIR for its newest. See dt-ckpt(1).\n",
          out);
}

static dt_result_t take(struct options *o, int c, const char *value,
                        struct dt_error *err)
{
    switch (c) {
    case 'j':
        o->json = true;
        break;
    case 'f':
        o->force = true;
        break;
    case 'd':
        o->dry_run = true;
        break;
    case 'h':
        o->help = true;
        break;
    case 'V':
        o->version = true;
        break;
    case 'n':
        o->numpy = value;
        break;
    case 't':
        o->tensor = value;
        break;
    case 's': /* as many digits as a name has, and room to count on */
        return dt_number_read("--step ", value, 0, 999999999999999, &o->step,
                              err);
    case 'r':
        return dt_number_read("--ranks ", value, 1, 99999, &o->ranks, err);
    case 'k':
        return dt_number_read("--keep ", value, 1, INT_MAX, &o->keep, err);
    case 'e':
        return dt_number_read("--every ", value, 1, INT64_MAX, &o->every, err);
    case 'c':
        return dt_number_read("--count ", value, 1, INT_MAX, &o->count, err);
    }
    return DT_SUCCESS;
}

static const char *name_of(int letter)
{
    for (const struct option *option = known; option->name; option++)
        if (option->val == letter)
            return option->name;
    return "";
}

/* given: the letters of the options that were there. */
static dt_result_t check(const struct options *o, const char *given,
                         struct dt_error *err)
{
    const struct command *c = o->command;
    for (; *given; given++)
        if (!strchr(c->allows, *given))
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "%s takes no --%s; expected: dt-ckpt %s %s",
                                c->name, name_of(*given), c->name, c->synopsis);
    bool lacks = false;
    for (const char *need = c->needs; *need; need++)
        lacks |= (*need == 's' && o->step < 0) ||
                 (*need == 'r' && o->ranks < 0) ||
                 (*need == 'k' && o->keep < 0);
    int max = c->run == command_export && o->numpy ? 1 : c->max;
    int min = c->run == command_export && !o->numpy ? 2 : c->min;
    if (lacks || o->nargs < min || o->nargs > max)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s: expected: dt-ckpt %s %s", c->name, c->name,
                            c->synopsis);
    for (int i = 0; i < o->nargs; i++)
        if (!*o->arg[i])
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "%s: an argument is empty, expected a path",
                                c->name);
    return DT_SUCCESS;
}

static dt_result_t find_command(struct options *o, const char *name,
                                struct dt_error *err)
{
    for (int i = 0; i < COMMANDS && !o->command; i++)
        if (strcmp(commands[i].name, name) == 0)
            o->command = &commands[i];
    if (o->command)
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_INVALID_ARG,
                        "%s: no such command; dt-ckpt --help lists them", name);
}

dt_result_t options_parse(struct options *options, int argc, char **argv,
                          struct dt_error *err)
{
    char given[sizeof(known) / sizeof(known[0])] = "";
    int c;
    *options = (struct options){
        .step = -1, .ranks = -1, .keep = -1, .every = -1, .count = -1};
    opterr = 0;
    while ((c = getopt_long(argc, argv, ":hV", known, NULL)) != -1) {
        if (c == '?' && optopt > 0 && optopt < 256 && !*name_of(optopt))
            return dt_error_set(err, DT_ERR_INVALID_ARG, "-%c: no such option",
                                optopt);
        if (c == ':' || c == '?')
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                c == ':' ? "%s: expected a value after it"
                                         : "%s: no such option, or it takes no "
                                           "value",
                                argv[optind - 1]);
        dt_result_t rc = take(options, c, optarg, err);
        if (rc != DT_SUCCESS)
            return rc;
        if (!strchr("hV", c) && !strchr(given, c))
            given[strlen(given)] = (char)c;
    }
    if (options->help || options->version)
        return DT_SUCCESS;
    dt_result_t rc =
        find_command(options, argv[optind] ? argv[optind] : "", err);
    if (rc != DT_SUCCESS)
        return rc;
    options->arg = argv + optind + 1;
    options->nargs = argc - optind - 1;
    return check(options, given, err);
}
