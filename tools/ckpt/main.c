/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* main.c - dt-ckpt: a look into checkpoints, and what else they need. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/exit.h"
#include "text/interrupt.h"
#include "text/options.h"
#include "text/terminal.h"

enum { SIGNALLED = 128 };

/* Files of ours must not get the numbers of those that are closed. */
static void fill_standard_files(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0) /* then open() returns it: the lowest */
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

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
        note("interrupted");
        return SIGNALLED + interrupted();
    }
    note("%s", err.text[0] ? err.text : dt_strerror(rc));
    return options->command->trouble;
}

int main(int argc, char **argv)
{
    struct options options;
    struct dt_error err = {""};
    fill_standard_files();
    if (argc < 2) {
        options_help(stderr);
        return DT_EXIT_USAGE;
    }
    if (options_parse(&options, argc, argv, &err) != DT_SUCCESS) {
        note("%s", err.text);
        return DT_EXIT_USAGE;
    }
    int status = 0;
    if (options.help)
        options_help(stdout);
    else if (options.version)
        puts("dt-ckpt " PACKAGE_VERSION);
    else
        status = run(&options);
    if (fflush(stdout) || ferror(stdout)) {
        note("the output could not be written");
        return options.command ? options.command->trouble : 1;
    }
    return status;
}
