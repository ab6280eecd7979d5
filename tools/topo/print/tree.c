/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tree.c - the machine as a tree on the terminal. */
#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "outline.h"
#include "print.h"

enum { PREFIX = 512 };

#define BOLD  "\033[1m"
#define DIM   "\033[2m"
#define GREEN "\033[32m"
#define BLUE  "\033[34m"
#define RED   "\033[31m"
#define PLAIN "\033[0m"

struct tree {
    FILE *out;
    const dt_topo_t *topo;
    const struct outline *outline;
    struct look look;
};

struct look look_of(FILE *out)
{
    const char *no_color = getenv("NO_COLOR");
    struct look look = {
        .colour = isatty(fileno(out)) && !(no_color && *no_color),
        .utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8"),
    };
    return look;
}

static void paint(const struct tree *tree, const char *colour)
{
    if (tree->look.colour)
        fputs(colour, tree->out);
}

/* ", word" unless it is empty */
static void also(const struct tree *tree, const char *word)
{
    if (*word)
        fprintf(tree->out, ", %s", word);
}

static void print_cpus(const struct tree *tree, const dt_cpuset_t *set)
{
    char list[96], count[64];
    size_t n = dt_cpuset_count(set);
    dt_cpuset_print(set, list, sizeof(list));
    if (!n)
        fputs("no CPU", tree->out);
    else if (strlen(list) < sizeof(list) - 1)
        fprintf(tree->out, "CPUs %s", list);
    else
        fputs(count_text(count, n, "CPU"), tree->out);
}

static void print_numa(const struct tree *tree, int index)
{
    const dt_topo_numa_t *numa = &tree->topo->numa[index];
    char memory[32];
    paint(tree, BOLD);
    fprintf(tree->out, "NUMA %u", numa->id);
    paint(tree, PLAIN);
    fputs("  ", tree->out);
    print_cpus(tree, &numa->cpus);
    also(tree, memory_text(memory, numa->memory));
}

static void print_gpu(const struct tree *tree, int index)
{
    const dt_topo_gpu_t *gpu = &tree->topo->gpu[index];
    char memory[32], text[64];
    paint(tree, gpu->lost ? RED BOLD : GREEN BOLD);
    fprintf(tree->out, "GPU %d", index);
    paint(tree, PLAIN);
    fprintf(tree->out, "  %s", gpu->bus[0] ? gpu->bus : "bus unknown");
    if (gpu->part >= 0)
        fprintf(tree->out, " partition %d", gpu->part);
    also(tree, gpu->name);
    also(tree, memory_text(memory, gpu->memory));
    if (gpu->memory_numa >= 0) {
        snprintf(text, sizeof(text), "its memory is NUMA %u",
                 tree->topo->numa[gpu->memory_numa].id);
        also(tree, text);
    }
    if (gpu->lost) {
        paint(tree, RED);
        also(tree, "LOST: not usable");
        paint(tree, PLAIN);
    }
}

static void print_nic(const struct tree *tree, int index)
{
    const dt_topo_nic_t *nic = &tree->topo->nic[index];
    char speed[32] = "";
    bool down = nic->state == DT_LINK_DOWN;
    paint(tree, down ? RED BOLD : BLUE BOLD);
    fprintf(tree->out, "NIC %s", nic->names[0] ? nic->names : nic->name);
    paint(tree, PLAIN);
    if (nic->bus[0] && strcmp(nic->bus, nic->name))
        fprintf(tree->out, "  %s", nic->bus);
    also(tree, nic_type_text(nic->type));
    if (nic->gbps)
        snprintf(speed, sizeof(speed), "%u Gb/s", nic->gbps);
    also(tree, speed);
    if (nic->port > 1) {
        snprintf(speed, sizeof(speed), "port %d", nic->port);
        also(tree, speed);
    }
    paint(tree, down ? RED : PLAIN);
    also(tree, link_state_text(nic->state));
    paint(tree, PLAIN);
}

static void print_item(const struct tree *tree, int i)
{
    const struct outline_item *item = &tree->outline->item[i];
    switch (item->kind) {
    case OUTLINE_PACKAGE:
        paint(tree, BOLD);
        fprintf(tree->out, "Package %d", item->index);
        paint(tree, PLAIN);
        break;
    case OUTLINE_NUMA:
        print_numa(tree, item->index);
        break;
    case OUTLINE_SWITCH:
        fprintf(tree->out, "%s %s",
                outline_is_host(tree->outline, tree->topo, i) ? "Host bridge"
                                                              : "Switch",
                tree->topo->switches[item->index].name);
        break;
    case OUTLINE_GPU:
        print_gpu(tree, item->index);
        break;
    case OUTLINE_NIC:
        print_nic(tree, item->index);
        break;
    }
    fputc('\n', tree->out);
}

static void print_children(const struct tree *tree, int parent,
                           const char *prefix)
{
    bool utf8 = tree->look.utf8;
    int next;
    for (int i = outline_child(tree->outline, parent, -1); i >= 0; i = next) {
        next = outline_child(tree->outline, parent, i);
        char deeper[PREFIX];
        const char *knee = next >= 0 ? utf8 ? "├─ " : "|- "
                           : utf8    ? "└─ "
                                     : "`- ";
        paint(tree, DIM);
        fprintf(tree->out, "%s%s", prefix, knee);
        paint(tree, PLAIN);
        print_item(tree, i);
        snprintf(deeper, sizeof(deeper), "%s%s", prefix,
                 next < 0 ? "   "
                 : utf8   ? "│  "
                          : "|  ");
        print_children(tree, i, deeper);
    }
}

void print_tree(FILE *out, const dt_topo_t *topo, struct look look)
{
    struct outline outline;
    struct tree tree = {out, topo, &outline, look};
    char summary[256];
    outline_make(&outline, topo);
    paint(&tree, BOLD);
    fputs(summary_text(summary, topo), out);
    paint(&tree, PLAIN);
    fprintf(out, topo->source[0] ? "  (%s)\n" : "\n", topo->source);
    print_children(&tree, OUTLINE_MACHINE, "");
}
