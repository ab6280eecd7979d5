/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* matrix.c - the path class between every two devices, as a table. */
#include <stdlib.h>
#include <string.h>

#include "common/width.h"
#include "print.h"

enum { LABEL = 16, SHORT = 8 };

struct matrix {
    FILE *out;
    const dt_topo_t *topo;
    struct look look;
    size_t n;
    char label[DT_TOPO_MAX_DEVICES][LABEL];
    bool numbered; /* NICs are NIC0, NIC1, since some name is long */
};

static void make_labels(struct matrix *matrix)
{
    const dt_topo_t *topo = matrix->topo;
    for (uint32_t i = 0; i < topo->nnics; i++)
        matrix->numbered |= strlen(topo->nic[i].name) > SHORT ||
                            text_width(topo->nic[i].name) <
                                strlen(topo->nic[i].name); /* not ASCII */
    for (uint32_t i = 0; i < topo->ngpus; i++)
        snprintf(matrix->label[i], LABEL, "GPU%u", i);
    for (uint32_t i = 0; i < topo->nnics; i++)
        if (matrix->numbered)
            snprintf(matrix->label[topo->ngpus + i], LABEL, "NIC%u", i);
        else
            snprintf(matrix->label[topo->ngpus + i], LABEL, "%.*s", SHORT,
                     topo->nic[i].name);
}

static const char *colour_of(dt_path_t path)
{
    static const char *const colours[] = {
        [DT_PATH_NVL] = "\033[1;32m", [DT_PATH_PIX] = "\033[32m",
        [DT_PATH_PXB] = "\033[36m",   [DT_PATH_PHB] = "\033[33m",
        [DT_PATH_NODE] = "\033[35m",  [DT_PATH_SYS] = "\033[31m",
        [DT_PATH_UNKNOWN] = "\033[2m"};
    return colours[path];
}

static void print_cell(const struct matrix *matrix, size_t a, size_t b,
                       int width)
{
    const dt_topo_t *topo = matrix->topo;
    char text[LABEL];
    dt_path_t path = dt_topo_path(topo, a, b);
    if (a == b)
        snprintf(text, sizeof(text), "X");
    else if (path == DT_PATH_NVL)
        snprintf(text, sizeof(text), "%s%u",
                 topo->gpu[a].vendor == DT_VENDOR_AMD ? "XG" : "NV",
                 topo->links[a][b]);
    else
        snprintf(text, sizeof(text), "%s", dt_path_name(path));
    bool colour = matrix->look.colour && a != b;
    fprintf(matrix->out, "%s%-*s%s", colour ? colour_of(path) : "", width, text,
            colour ? "\033[0m" : "");
}

/* how wide a column is, with the blanks after it */
static int width_of(const struct matrix *matrix, size_t column)
{
    size_t len = strlen(matrix->label[column]);
    return (int)(len < 4 ? 4 : len) + 2;
}

static void print_place(const struct matrix *matrix, size_t device)
{
    const dt_topo_t *topo = matrix->topo;
    bool is_gpu = device < topo->ngpus;
    int numa =
        is_gpu ? topo->gpu[device].numa : topo->nic[device - topo->ngpus].numa;
    char list[64], count[64], id[16] = "?";
    if (numa >= 0)
        snprintf(id, sizeof(id), "%u", topo->numa[numa].id);
    fprintf(matrix->out, is_gpu ? "%-6s" : "%s", id);
    if (!is_gpu)
        return;
    const dt_cpuset_t *cpus = &topo->gpu[device].cpus;
    dt_cpuset_print(cpus, list, sizeof(list));
    if (strlen(list) == sizeof(list) - 1)
        snprintf(list, sizeof(list), "%s",
                 count_text(count, dt_cpuset_count(cpus), "CPU"));
    fputs(*list ? list : "?", matrix->out);
}

static void print_legend(const struct matrix *matrix)
{
    static const char *const meaning[] = {
        NULL,
        "PIX  one PCIe switch between them",
        "PXB  several PCIe switches, no host bridge",
        "PHB  the PCIe host bridge",
        "NODE several host bridges of one NUMA node",
        "SYS  the link between NUMA nodes",
        "?    not known",
    };
    const dt_topo_t *topo = matrix->topo;
    bool seen[DT_PATH_UNKNOWN + 1] = {false};
    for (size_t a = 0; a < matrix->n; a++)
        for (size_t b = 0; b < a; b++)
            seen[dt_topo_path(topo, a, b)] = true;
    fputc('\n', matrix->out);
    if (seen[DT_PATH_NVL])
        fprintf(matrix->out, "%s#  # %ss%s\n",
                topo->gpu[0].vendor == DT_VENDOR_AMD ? "XG" : "NV",
                link_text(topo), topo->gpu[0].nvswitch ? " over switches" : "");
    for (int path = DT_PATH_PIX; path <= DT_PATH_UNKNOWN; path++)
        if (seen[path])
            fprintf(matrix->out, "%s\n", meaning[path]);
    for (uint32_t i = 0; matrix->numbered && i < topo->nnics; i++)
        fprintf(matrix->out, "NIC%u  %s\n", i, topo->nic[i].name);
}

static void print_rows(const struct matrix *matrix)
{
    int first = 5;
    for (size_t i = 0; i < matrix->n; i++)
        if (first < width_of(matrix, i))
            first = width_of(matrix, i);
    fprintf(matrix->out, "%-*s", first, "");
    for (size_t i = 0; i < matrix->n; i++)
        fprintf(matrix->out, "%-*s", width_of(matrix, i), matrix->label[i]);
    fputs("NUMA  CPUs\n", matrix->out);
    for (size_t a = 0; a < matrix->n; a++) {
        fprintf(matrix->out, "%-*s", first, matrix->label[a]);
        for (size_t b = 0; b < matrix->n; b++)
            print_cell(matrix, a, b, width_of(matrix, b));
        print_place(matrix, a);
        fputc('\n', matrix->out);
    }
}

void print_matrix(FILE *out, const dt_topo_t *topo, struct look look)
{
    struct matrix matrix = {.out = out, .topo = topo, .look = look};
    matrix.n = topo->ngpus + topo->nnics;
    if (!matrix.n)
        return;
    make_labels(&matrix);
    fputc('\n', out);
    print_rows(&matrix);
    if (matrix.n > 1)
        print_legend(&matrix);
}
