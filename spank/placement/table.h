/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* table.h - the table of --dt-gpus=verbose. srun prints its header and each
 * node its rows; both take the widths from Slurm's variables. Pure. */
#ifndef DT_SPANK_TABLE_H
#define DT_SPANK_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct dt_table {
    int rank, node; /* widths in bytes */
};

struct dt_table_row {
    uint32_t rank, local_rank;
    const char *node, *gpus, *sees, *cpus, *numas, *nics; /* "" is "-" */
};

/* The value of name in env, a NULL-terminated array of "name=value"; NULL if
 * it is not there. */
const char *dt_table_getenv(char *const *env, const char *name);

/* The length of the longest name in a Slurm node list such as
 * "login,n[1-3,08]". A malformed list gives a number too, at most its
 * length. */
size_t dt_table_longest_node(const char *nodelist);

/* The widths, from the environment of srun or of a task. */
struct dt_table dt_table_widths(char *const *env);

void dt_table_print_header(const struct dt_table *table, FILE *out);
void dt_table_print_row(const struct dt_table *table,
                        const struct dt_table_row *row, FILE *out);

#endif
