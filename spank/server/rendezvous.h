/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* rendezvous.h - where the PMIx servers of a step find each other: a listener
 * that srun opens and dt-pmixd --meet serves in the background. */
#ifndef DT_SPANK_RENDEZVOUS_H
#define DT_SPANK_RENDEZVOUS_H

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

struct dt_rendezvous {
    const char *program, *munge; /* munged's socket, NULL: munge's own */
    uint32_t job, step, nodes, ranks;
    int limit; /* seconds until all nodes must be connected */
};

/* Open it at *port of any address. It ends once all nodes are connected, or
 * with this process, however that ends. */
dt_result_t dt_rendezvous_open(const struct dt_rendezvous *self, uint16_t *port,
                               struct dt_error *err);

/* Does this command line of srun have an --mpi? It has a NUL after each
 * argument; its last `program` arguments are the user's program and that
 * program's. */
bool dt_rendezvous_names_mpi(FILE *command_line, size_t program);

/* The first name of a Slurm node list such as "n[1-3,08],login", at most size
 * bytes with its NUL. */
void dt_rendezvous_first_node(const char *nodelist, char *name, size_t size);

/* Is text a name or an address of a host? One from a job's environment may be
 * several lines. */
bool dt_rendezvous_is_host(const char *text);

#endif
