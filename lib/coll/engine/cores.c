/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* cores.c - finds ranks that share CPUs while others of their node idle. In a
 * collective each waits for the other to be scheduled.
 *
 * What the ranks could use is what their launcher may use, as a rank has been
 * bound since; Slurm's daemon may use all, so the number that Slurm granted
 * counts there. */
#include "coll/engine/cores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "tl/tl.h"

bool dt_cores_find_shared(const cpu_set_t *cpus, size_t n,
                          const cpu_set_t *granted, size_t limit,
                          struct dt_cores_shared *shared)
{
    cpu_set_t used, all = *granted;
    struct dt_cores_shared worst = {0};
    CPU_ZERO(&used);
    for (size_t i = 0; i < n; i++) {
        size_t alike = 0, mine = (size_t)CPU_COUNT(&cpus[i]);
        if (!mine)
            return false; /* it may use any */
        for (size_t k = 0; k < n; k++)
            alike += CPU_EQUAL(&cpus[i], &cpus[k]);
        CPU_OR(&used, &used, &cpus[i]);
        if (alike > mine &&
            (!worst.ranks || alike * (size_t)CPU_COUNT(&cpus[worst.first]) >
                                 worst.ranks * mine))
            worst = (struct dt_cores_shared){.first = i, .ranks = alike};
    }
    CPU_OR(&all, &all, &used);
    size_t room = (size_t)CPU_COUNT(&all), busy = (size_t)CPU_COUNT(&used);
    room = room < limit ? room : limit;
    if (!worst.ranks || room <= busy)
        return false;
    worst.idle = room - busy;
    *shared = worst;
    return true;
}

/* How many CPUs of this node Slurm has granted; outside of Slurm, no limit. */
static size_t granted_by_slurm(void)
{
    int64_t cpus;
    return dt_number_parse(getenv("SLURM_CPUS_ON_NODE"), 1, 1 << 20, &cpus)
               ? (size_t)cpus
               : SIZE_MAX;
}

/* Text of bounded length: "0, 1, 2" or "0, 1, ...". */
struct list {
    char text[64];
    size_t len;
};

static void append(struct list *list, size_t number)
{
    char item[32];
    const char *comma = list->len ? ", " : "";
    int len = snprintf(item, sizeof(item), "%s%zu", comma, number);
    if (list->len + (size_t)len + sizeof(", ...") > sizeof(list->text)) {
        if (list->text[list->len - 1] != '.')
            list->len +=
                (size_t)snprintf(list->text + list->len,
                                 sizeof(list->text) - list->len, ", ...");
        return;
    }
    memcpy(list->text + list->len, item, (size_t)len + 1);
    list->len += (size_t)len;
}

static void print(const struct dt_group *node, const cpu_set_t *cpus,
                  const struct dt_cores_shared *shared)
{
    struct list ranks = {""}, these = {""};
    const cpu_set_t *set = &cpus[shared->first];
    for (size_t i = 0; i < node->size; i++)
        if (CPU_EQUAL(&cpus[i], set))
            append(&ranks, node->ranks[i]);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, set))
            append(&these, cpu);
    fprintf(stderr,
            "dt: ranks %s share CPU%s %s while %zu other%s: start each on a "
            "core of its own (dt-run --bind core; srun --cpus-per-task "
            "--cpu-bind=cores)\n",
            ranks.text, CPU_COUNT(set) == 1 ? "" : "s", these.text,
            shared->idle, shared->idle == 1 ? " is idle" : "s are idle");
}

void dt_cores_report_shared(const struct dt_world *world)
{
    const struct dt_group *node = dt_layout_node(&world->layout);
    const struct dt_tl *tl = dt_world_node_tl(world);
    if (node->index || !tl || !tl->ops->process)
        return;
    cpu_set_t *cpus = calloc(node->size, sizeof(*cpus)), granted;
    if (!cpus)
        return;
    for (size_t i = 0; i < node->size; i++) {
        pid_t pid = i ? tl->ops->process(tl, node->ranks[i]) : getpid();
        if (pid <= 0 || sched_getaffinity(pid, sizeof(cpus[i]), &cpus[i]))
            CPU_ZERO(&cpus[i]);
    }
    struct dt_cores_shared shared;
    if (!sched_getaffinity(getppid(), sizeof(granted), &granted) &&
        dt_cores_find_shared(cpus, node->size, &granted, granted_by_slurm(),
                             &shared))
        print(node, cpus, &shared);
    free(cpus);
}
