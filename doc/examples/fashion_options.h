/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fashion_options.h - the command line of fashion. */
#ifndef FASHION_OPTIONS_H
#define FASHION_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct options {
    int64_t epochs;
    size_t batch; /* per rank and step */
    double lr;    /* of one rank; the program scales it by the world size */
    double momentum;
    uint64_t seed;
    size_t hidden;
    const char *data;
    const char *ckpt;         /* NULL: that of srun --dt-ckpt, if it is given */
    int64_t ckpt_every;       /* 0: as libdt decides */
    const char *metrics;      /* NULL: none */
    const char *save_weights; /* NULL: do not */
    bool plan;                /* sum the gradients by dt_grad.h */
    bool quiet, help;
};

/* Read the command line, strings borrowed from argv. Returns 0, or -1 with
 * one line in why (size bytes). Prints nothing. */
int options_parse(struct options *opt, int argc, char **argv, char *why,
                  size_t size);

void options_help(FILE *to);

#endif
