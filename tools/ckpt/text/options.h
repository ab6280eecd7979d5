/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* options.h - the command line of dt-ckpt. */
#ifndef DT_TOOLS_CKPT_TEXT_OPTIONS_H
#define DT_TOOLS_CKPT_TEXT_OPTIONS_H

#include <stdio.h>

#include "base/error.h"

struct options {
    const struct command *command; /* NULL: help or version */
    char **arg;
    int nargs;
    bool json, force, dry_run, help, version;
    const char *numpy, *tensor;
    int64_t step, ranks, keep, every, count; /* -1: not given */
};

/* Run a command. *status, 0 before, is the exit status; after an error that is
 * command->trouble. */
typedef dt_result_t command_fn(const struct options *options, int *status,
                               struct dt_error *err);

struct command {
    const char *name, *synopsis, *purpose;
    int min, max;       /* arguments */
    const char *allows; /* letters of the options it accepts, see options.c */
    const char *needs;  /* those of them that it requires */
    command_fn *run;
    int trouble; /* the exit status of a failure */
};

command_fn command_list, command_show, command_verify, command_diff,
    command_export, command_import, command_reshard, command_repair,
    command_flush, command_prune, command_watch;

void options_help(FILE *out);

/* Parse the command line. INVALID_ARG, with one line of text. */
dt_result_t options_parse(struct options *options, int argc, char **argv,
                          struct dt_error *err);

#endif
