/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* diff.c - what differs between two machines that should be alike. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "print/print.h"

enum { PATHS_SHOWN = 3, LABEL = 96 };

struct diff {
    FILE *out; /* NULL: count only */
    const char *prefix;
    const dt_topo_t *a, *b; /* expected, got */
    size_t lines;
    /* device of a -> device of b, -1 missing */
    int match[DT_TOPO_MAX_DEVICES];
};

static void say(struct diff *diff, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void say(struct diff *diff, const char *fmt, ...)
{
    va_list args;
    diff->lines++;
    if (!diff->out)
        return;
    va_start(args, fmt);
    fputs(diff->prefix, diff->out);
    vfprintf(diff->out, fmt, args);
    fputc('\n', diff->out);
    va_end(args);
}

/* ---- matching devices ---- */

static char *label(char text[LABEL], const dt_topo_t *topo, uint32_t device)
{
    if (device >= topo->ngpus) {
        snprintf(text, LABEL, "NIC %s", topo->nic[device - topo->ngpus].name);
        return text;
    }
    const dt_topo_gpu_t *gpu = &topo->gpu[device];
    if (!gpu->bus[0])
        snprintf(text, LABEL, "GPU %u", device);
    else if (gpu->part >= 0)
        snprintf(text, LABEL, "GPU %u (%s partition %d)", device, gpu->bus,
                 gpu->part);
    else
        snprintf(text, LABEL, "GPU %u (%s)", device, gpu->bus);
    return text;
}

static bool same_gpu(const dt_topo_gpu_t *a, const dt_topo_gpu_t *b)
{
    return !strcmp(a->bus, b->bus) && a->part == b->part;
}

static bool same_nic(const dt_topo_nic_t *a, const dt_topo_nic_t *b)
{
    return a->bus[0] || b->bus[0] ? !strcmp(a->bus, b->bus)
                                  : !strcmp(a->name, b->name);
}

/* Of devices that look the same the k-th matches the k-th. */
static void match_devices(struct diff *diff)
{
    const dt_topo_t *a = diff->a, *b = diff->b;
    bool taken[DT_TOPO_MAX_DEVICES] = {false};
    for (uint32_t i = 0; i < a->ngpus; i++) {
        diff->match[i] = -1;
        for (uint32_t j = 0; j < b->ngpus && diff->match[i] < 0; j++)
            if (!taken[j] && same_gpu(&a->gpu[i], &b->gpu[j])) {
                taken[j] = true;
                diff->match[i] = (int)j;
            }
    }
    for (uint32_t i = 0; i < a->nnics; i++) {
        int *match = &diff->match[a->ngpus + i];
        *match = -1;
        for (uint32_t j = 0; j < b->nnics && *match < 0; j++)
            if (!taken[b->ngpus + j] && same_nic(&a->nic[i], &b->nic[j])) {
                taken[b->ngpus + j] = true;
                *match = (int)(b->ngpus + j);
            }
    }
    char text[LABEL];
    for (uint32_t i = 0; i < a->ngpus + a->nnics; i++)
        if (diff->match[i] < 0)
            say(diff, "%s is missing", label(text, a, i));
    for (uint32_t j = 0; j < b->ngpus + b->nnics; j++)
        if (!taken[j])
            say(diff, "%s is not expected", label(text, b, j));
}

/* ---- CPUs and memory ---- */

static void diff_set(struct diff *diff, const char *what, const dt_cpuset_t *a,
                     const dt_cpuset_t *b)
{
    char got[128], expected[128];
    if (dt_cpuset_equal(a, b))
        return;
    dt_cpuset_print(b, got, sizeof(got));
    dt_cpuset_print(a, expected, sizeof(expected));
    say(diff, "%s: CPUs %s, expected %s", what, *got ? got : "unknown",
        *expected ? expected : "unknown");
}

static const dt_topo_numa_t *find_numa(const dt_topo_t *topo, uint32_t id)
{
    for (uint32_t i = 0; i < topo->nnumas; i++)
        if (topo->numa[i].id == id)
            return &topo->numa[i];
    return NULL;
}

static char *package_text(char text[32], int package)
{
    if (package < 0)
        strcpy(text, "an unknown package");
    else
        snprintf(text, 32, "package %d", package);
    return text;
}

static void diff_numas(struct diff *diff)
{
    char what[64], got[32], expected[32];
    for (uint32_t i = 0; i < diff->a->nnumas; i++) {
        const dt_topo_numa_t *a = &diff->a->numa[i];
        const dt_topo_numa_t *b = find_numa(diff->b, a->id);
        if (!b) {
            say(diff, "NUMA node %u is missing", a->id);
            continue;
        }
        snprintf(what, sizeof(what), "NUMA node %u", a->id);
        diff_set(diff, what, &a->cpus, &b->cpus);
        if (a->package != b->package)
            say(diff, "%s: in %s, expected %s", what,
                package_text(got, b->package),
                package_text(expected, a->package));
    }
    for (uint32_t i = 0; i < diff->b->nnumas; i++)
        if (!find_numa(diff->a, diff->b->numa[i].id))
            say(diff, "NUMA node %u is not expected", diff->b->numa[i].id);
}

static size_t count_cores(const dt_topo_t *topo)
{
    size_t cores = 0;
    bool seen[DT_TOPO_MAX_CPUS] = {false};
    for (uint32_t i = 0; i < topo->ncpus; i++) {
        const dt_topo_cpu_t *cpu = &topo->cpu[i];
        if (cpu->present && cpu->core < DT_TOPO_MAX_CPUS && !seen[cpu->core]) {
            seen[cpu->core] = true;
            cores++;
        }
    }
    return cores;
}

static void diff_cpus(struct diff *diff)
{
    dt_cpuset_t a, b;
    online_cpus(diff->a, &a);
    online_cpus(diff->b, &b);
    diff_set(diff, "online", &a, &b);
    if (count_cores(diff->a) != count_cores(diff->b))
        say(diff, "%zu cores, expected %zu", count_cores(diff->b),
            count_cores(diff->a));
}

/* ---- devices ---- */

static void diff_numa_of(struct diff *diff, const char *what, int a, int b)
{
    char got[32] = "unknown", expected[32] = "unknown";
    if (b >= 0)
        snprintf(got, sizeof(got), "%u", diff->b->numa[b].id);
    if (a >= 0)
        snprintf(expected, sizeof(expected), "%u", diff->a->numa[a].id);
    if (strcmp(got, expected))
        say(diff, "%s: NUMA node %s, expected %s", what, got, expected);
}

/* Where a file does not say it, nothing is expected. */
static void diff_pcie(struct diff *diff, const char *what,
                      const dt_topo_pcie_t *a, const dt_topo_pcie_t *b)
{
    if (a->generation && b->generation &&
        (a->generation != b->generation || a->lanes != b->lanes))
        say(diff, "%s: PCIe %u.0 x%u, expected %u.0 x%u", what, b->generation,
            b->lanes, a->generation, a->lanes);
}

static void diff_gpu(struct diff *diff, uint32_t i)
{
    const dt_topo_gpu_t *a = &diff->a->gpu[i];
    const dt_topo_gpu_t *b = &diff->b->gpu[diff->match[i]];
    char what[LABEL];
    label(what, diff->a, i);
    if (a->lost != b->lost)
        say(diff,
            b->lost ? "%s: lost, not usable" : "%s: usable, expected lost",
            what);
    diff_pcie(diff, what, &a->pcie, &b->pcie);
    diff_numa_of(diff, what, a->numa, b->numa);
    diff_set(diff, what, &a->cpus, &b->cpus);
    if (a->nvswitch != b->nvswitch)
        say(diff,
            b->nvswitch ? "%s: on NVSwitch, not expected"
                        : "%s: not on NVSwitch, which was expected",
            what);
}

static void diff_nic(struct diff *diff, uint32_t i)
{
    uint32_t device = diff->a->ngpus + i;
    const dt_topo_nic_t *a = &diff->a->nic[i];
    const dt_topo_nic_t *b =
        &diff->b->nic[(uint32_t)diff->match[device] - diff->b->ngpus];
    char what[LABEL];
    label(what, diff->a, device);
    if (a->state != b->state) {
        const char *state = link_state_text(b->state);
        if (b->state == DT_LINK_DOWN)
            say(diff, "%s: down", what);
        else
            say(diff, "%s: %s, expected %s", what, *state ? state : "unknown",
                a->state == DT_LINK_UNKNOWN ? "unknown"
                                            : link_state_text(a->state));
    }
    if (a->gbps != b->gbps)
        say(diff, "%s: %u Gb/s, expected %u", what, b->gbps, a->gbps);
    diff_pcie(diff, what, &a->pcie, &b->pcie);
    if (a->type != b->type)
        say(diff, "%s: %s, expected %s", what,
            b->type ? nic_type_text(b->type) : "of unknown type",
            a->type ? nic_type_text(a->type) : "unknown");
    diff_numa_of(diff, what, a->numa, b->numa);
}

static void diff_links(struct diff *diff, uint32_t i)
{
    char what[LABEL], count[64];
    for (uint32_t j = i + 1; j < diff->a->ngpus; j++) {
        if (diff->match[i] < 0 || diff->match[j] < 0)
            continue;
        unsigned expected = diff->a->links[i][j];
        unsigned got = diff->b->links[diff->match[i]][diff->match[j]];
        if (got != expected)
            say(diff, "%s: %s to GPU %u, expected %u", label(what, diff->a, i),
                count_text(count, got, link_text(diff->a)), j, expected);
    }
}

/* A device that moved differs in many paths: the first is enough. */
static void diff_paths(struct diff *diff, uint32_t i)
{
    char what[LABEL], other[LABEL];
    uint32_t n = diff->a->ngpus + diff->a->nnics, found = 0;
    for (uint32_t j = i + 1; j < n; j++) {
        if (diff->match[i] < 0 || diff->match[j] < 0)
            continue;
        unsigned expected = diff->a->pci[i][j];
        unsigned got = diff->b->pci[diff->match[i]][diff->match[j]];
        if (got == expected)
            continue;
        if (++found <= PATHS_SHOWN)
            say(diff, "%s: %s to %s, expected %s", label(what, diff->a, i),
                dt_path_name((dt_path_t)got), label(other, diff->a, j),
                dt_path_name((dt_path_t)expected));
    }
    if (found > PATHS_SHOWN)
        say(diff, "%s: %u more paths differ", label(what, diff->a, i),
            found - PATHS_SHOWN);
}

size_t print_diff(FILE *out, const char *prefix, const dt_topo_t *expected,
                  const dt_topo_t *got)
{
    struct diff diff = {.out = out, .prefix = prefix, .a = expected, .b = got};
    match_devices(&diff);
    diff_numas(&diff);
    diff_cpus(&diff);
    for (uint32_t i = 0; i < expected->ngpus; i++)
        if (diff.match[i] >= 0)
            diff_gpu(&diff, i);
    for (uint32_t i = 0; i < expected->nnics; i++)
        if (diff.match[expected->ngpus + i] >= 0)
            diff_nic(&diff, i);
    for (uint32_t i = 0; i < expected->ngpus; i++)
        diff_links(&diff, i);
    for (uint32_t i = 0; i < expected->ngpus + expected->nnics; i++)
        diff_paths(&diff, i);
    return diff.lines;
}
