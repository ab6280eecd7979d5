/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* table.c - the table of --dt-gpus=verbose. */
#include "placement/table.h"

#include <stdbool.h>
#include <string.h>

#include "base/number.h"

enum {
    MAX_NODE_WIDTH = 64,
    GPUS_WIDTH = 7,  /* four GPUs: 0,1,2,3 */
    SEES_WIDTH = 15, /* eight */
    CPUS_WIDTH = 14, /* 0-13,112-125 */
    NUMA_WIDTH = 4,
    LONG_CPUS = 40, /* beyond this a list of CPUs is cut */
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
    struct dt_table table = {strlen("rank"), 0};
    const char *ntasks = dt_table_getenv(env, "SLURM_NTASKS");
    int64_t n = 1;
    char digits[32];
    dt_number_parse(ntasks, 1, UINT32_MAX, &n);
    int width = snprintf(digits, sizeof(digits), "%u", (unsigned)(n - 1));
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
    fprintf(out, "dt: %*s  %-*s  local  %-*s  %-*s  %-*s  %-*s  nics\n",
            table->rank, "rank", table->node, "node", GPUS_WIDTH, "gpus",
            SEES_WIDTH, "sees", CPUS_WIDTH, "cpus", NUMA_WIDTH, "numa");
}

static const char *cell(const char *text)
{
    return *text ? text : "-";
}

/* A long set of CPUs, cut after one of its ranges. */
static void print_cpus(const char *cpus, FILE *out)
{
    int length = (int)strnlen(cpus, LONG_CPUS + 1);
    if (length <= LONG_CPUS) {
        fprintf(out, "%-*s", CPUS_WIDTH, cell(cpus));
        return;
    }
    while (length > 0 && cpus[length] != ',')
        length--;
    fprintf(out, "%.*s,...", length, cpus);
}

void dt_table_print_row(const struct dt_table *table,
                        const struct dt_table_row *row, FILE *out)
{
    fprintf(out, "dt: %*u  %-*s  %5u  %-*s  %-*s  ", table->rank,
            (unsigned)row->rank, table->node, row->node,
            (unsigned)row->local_rank, GPUS_WIDTH, cell(row->gpus), SEES_WIDTH,
            cell(row->sees));
    print_cpus(row->cpus, out);
    fprintf(out, "  %-*s  %s\n", NUMA_WIDTH, cell(row->numas), cell(row->nics));
}
