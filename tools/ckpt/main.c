/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* main.c - dt-ckpt: a look into checkpoints, and what else they need. */
#include <locale.h>
#include <stdio.h>

#include "base/exit.h"
#include "text/interrupt.h"
#include "text/options.h"
#include "text/terminal.h"

const char program[] = "dt-ckpt";

enum { SIGNALLED = 128 };

static int run(const struct options *options)
{
    struct dt_error err = {""};
    int status = 0;
    interrupt_arm();
    dt_result_t rc = options->command->run(options, &status, &err);
    progress_end();
    if (rc == DT_SUCCESS)
        return status;
    if (interrupted()) {
        note(stderr, "interrupted");
        return SIGNALLED + interrupted();
    }
    note(stderr, "%s", err.text[0] ? err.text : dt_strerror(rc));
    return options->command->trouble;
}

int main(int argc, char **argv)
{
    struct options options;
    struct dt_error err = {""};
    streams_fill();
    setlocale(LC_CTYPE, "");
    if (argc < 2) {
        options_help(stderr);
        return DT_EXIT_USAGE;
    }
    if (options_parse(&options, argc, argv, &err) != DT_SUCCESS) {
        note(stderr, "%s", err.text);
        return DT_EXIT_USAGE;
    }
    int status = 0;
    if (options.help)
        options_help(stdout);
    else if (options.version)
        puts("dt-ckpt " PACKAGE_VERSION);
    else
        status = run(&options);
    if (!streams_flush())
        return options.command ? options.command->trouble : 1;
    return status;
}
