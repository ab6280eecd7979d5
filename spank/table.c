/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* table.c - the table of --dt-gpus=verbose. */
#include "table.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_NODE_WIDTH = 64,
    GPUS_WIDTH = 15, /* eight GPUs: 0,1,2,3,4,5,6,7 */
};

const char *dt_table_getenv(char *const *env, const char *name)
{
    size_t length = strlen(name);
    for (; *env; env++)
        if (!strncmp(*env, name, length) && (*env)[length] == '=')
            return *env + length + 1;
    return NULL;
}

size_t dt_table_longest_node(const char *nodelist)
{
    /* A name is text and [ranges]; a range is as long as the number it ends
     * with, and a name has the longest of each of its ranges. */
    size_t longest = 0, name = 0, range = 0, number = 0;
    bool inside = false;
    for (const char *p = nodelist;; p++) {
        if (!inside && *p == '[') {
            inside = true;
            range = number = 0;
        } else if (inside && (*p == ',' || *p == '-' || *p == ']')) {
            if (number > range)
                range = number;
            number = 0;
            if (*p == ']') {
                inside = false;
                name += range;
            }
        } else if (*p == '\0' || *p == ',') {
            if (name > longest)
                longest = name;
            name = 0;
        } else if (inside) {
            number++;
        } else {
            name++;
        }
        if (*p == '\0')
            return longest;
    }
}

struct dt_table dt_table_widths(char *const *env)
{
    struct dt_table table = {strlen("rank"), 0, GPUS_WIDTH};
    const char *ntasks = dt_table_getenv(env, "SLURM_NTASKS");
    unsigned long last = ntasks ? strtoul(ntasks, NULL, 10) : 0;
    char digits[32];
    int width = snprintf(digits, sizeof(digits), "%lu", last ? last - 1 : 0);
    if (width > table.rank)
        table.rank = width;

    /* In a heterogeneous job, srun's own node list may be of one component
     * only, but each component's has a variable of its own. */
    size_t node = strlen("node");
    for (; *env; env++) {
        const char *list = strchr(*env, '=');
        if (!list || (strncmp(*env, "SLURM_NODELIST=", 15) != 0 &&
                      strncmp(*env, "SLURM_JOB_NODELIST_", 19) != 0))
            continue;
        size_t longest = dt_table_longest_node(list + 1);
        if (longest > node)
            node = longest;
    }
    table.node = (int)(node < MAX_NODE_WIDTH ? node : MAX_NODE_WIDTH);
    return table;
}

void dt_table_print_header(const struct dt_table *table, FILE *out)
{
    fprintf(out, "dt: %*s  %-*s  local  %-*s  sees\n", table->rank, "rank",
            table->node, "node", table->gpus, "gpus");
}

void dt_table_print_row(const struct dt_table *table,
                        const struct dt_table_row *row, FILE *out)
{
    fprintf(out, "dt: %*u  %-*s  %5u  %-*s  %s\n", table->rank,
            (unsigned)row->rank, table->node, row->node,
            (unsigned)row->local_rank, table->gpus, row->gpus, row->sees);
}
