/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* meeting.h - the place where the PMIx servers of a step meet, opened by srun:
 * a listening socket, which dt-pmixd --meet serves in the background. */
#ifndef DT_SPANK_RENDEZVOUS_H
#define DT_SPANK_RENDEZVOUS_H

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

struct dt_rendezvous {
    const char *program, *munge; /* munged's socket, NULL: munge's own */
    uint32_t job, step, nodes, ranks;
    int limit; /* seconds until all must have come */
};

/* Open it at *port of any address. It ends when all have met, or with this
 * process, however that ends. */
dt_result_t dt_rendezvous_open(const struct dt_rendezvous *meeting,
                               uint16_t *port, struct dt_error *err);

/* Did the user name, on this command line of srun, what ranks meet by? It holds
 * a NUL after each argument, and ends with the program and what is the
 * program's, so many in all. */
bool dt_rendezvous_names_mpi(FILE *command_line, size_t program);

/* The first name of a Slurm node list such as "n[1-3,08],login", at most size
 * bytes with its NUL. */
void dt_rendezvous_first_node(const char *nodelist, char *name, size_t size);

#endif
