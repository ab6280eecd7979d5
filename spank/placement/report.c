/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* report.c - what is printed about the placement: the table of verbose, and
 * notes on what the placement costs. */
#include "placement/task.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "placement/nics.h"
#include "placement/table.h"

static const struct {
    uint32_t note;
    bool loss; /* printed without verbose, too */
    const char *text;
} notes[] = {
    {DT_PLACE_NOTE_FAR_CPUS, true,
     "too few cores near the GPUs of some tasks were granted, they run on far "
     "ones: ask for --gres-flags=enforce-binding, or for more cores with "
     "--cpus-per-task=<n>"},
    {DT_PLACE_NOTE_ANY_CPUS, true,
     "the topology does not tell the package of some GPUs: their tasks run on "
     "cores of any package: --dt-cpu-bind=none leaves the cores to Slurm"},
    {DT_PLACE_NOTE_NO_PEER, true,
     "tasks do not see GPUs that theirs can reach directly, which takes "
     "peer-to-peer access away: --dt-gpus=auto or rotate keeps it"},
    {DT_PLACE_NOTE_SHARED, false,
     "there are more tasks than GPUs: tasks share them"},
    {DT_PLACE_NOTE_SHARED_MIG, true,
     "there are more tasks than MIG instances: tasks share an instance and its "
     "memory: start as many tasks as there are instances, or ask for more"},
    {DT_PLACE_NOTE_FEW_CPUS, true,
     "fewer cores than tasks were granted near some GPUs, tasks share them: "
     "ask for more with --cpus-per-task=<n>, or use --dt-cpu-bind=none"},
    {DT_PLACE_NOTE_MIG, true,
     "CUDA opens one MIG instance in a process: each task has one, and the "
     "others granted to it are not used: start as many tasks as there are "
     "instances, or ask for fewer"},
    {DT_PLACE_NOTE_LENT, false,
     "tasks share cores, as a task with TensorFlow's parameter server or "
     "coordinator needs two: --cpus-per-task=2 gives each its own"},
    {DT_PLACE_NOTE_SPLIT, false,
     "the GPUs of some tasks are in different NUMA nodes"},
};
enum { NNOTES = sizeof(notes) / sizeof(notes[0]) };

/* NUMA nodes by the system's numbers: "0,1" */
static void print_numas(const struct dt_task *task, const uint64_t *numas,
                        char *text, size_t size)
{
    dt_cpuset_t ids = {{0}};
    bool prefers = task->request.cpu_bind != DT_PLACE_CPUS_NONE;
    for (uint32_t i = 0; prefers && i < task->topo->nnumas; i++)
        if (numas[i / 64] >> i % 64 & 1)
            dt_cpuset_add(&ids, task->topo->numa[i].id);
    dt_cpuset_print(&ids, text, size);
}

static void print_row(const struct dt_table *table, const struct dt_task *task,
                      uint32_t index, uint32_t rank, uint32_t local_rank,
                      FILE *out)
{
    const dt_place_task_t *placed = &task->placed[index];
    char gpus[DT_DEVICES_TEXT], sees[DT_DEVICES_TEXT], cpus[256], numas[64];
    char nics[DT_NICS_TEXT];
    dt_task_names(task, placed->own, placed->nown, gpus);
    if (task->chosen)
        dt_task_names(task, task->gpu, task->granted.n, sees);
    else
        dt_task_names(task, placed->visible, placed->nvisible, sees);
    dt_cpuset_print(&placed->cpus, cpus, sizeof(cpus));
    print_numas(task, placed->numas, numas, sizeof(numas));
    dt_nics_names(task->topo, placed->nic, placed->nnics, nics);
    struct dt_table_row row = {rank, local_rank, task->node, gpus,
                               sees, cpus,       numas,      nics};
    dt_table_print_row(table, &row, out);
}

/* The first task of a node prints all rows, in order. GPUs that Slurm bound to
 * a task are known to that task only: then each prints its own. */
static void print_rows(spank_t spank, const struct dt_task *task, FILE *out)
{
    struct dt_table table = dt_table_widths(task->env);
    if (task->bound) {
        print_row(&table, task, 0, task->rank, task->local_rank, out);
        return;
    }
    /* never ask for local_size itself: slurmstepd would crash */
    for (uint32_t i = 0; i < task->local_size; i++) {
        uint32_t rank;
        if (spank_get_item(spank, S_JOB_LOCAL_TO_GLOBAL_ID, i, &rank) ==
            ESPANK_SUCCESS)
            print_row(&table, task, i, rank + task->rank_offset, i, out);
    }
}

/* The first task of a node prints these. A topology is often unknown on all
 * nodes alike: without verbose only the first node prints it. A lost GPU is
 * printed for each node. */
static void print_node_notes(const struct spank_dt *dt,
                             const struct dt_task *task, FILE *out)
{
    bool verbose = dt->option[DT_OPTION_GPUS].verbose;
    bool prints = task->prints || (verbose && task->local_rank == 0);
    char name[DT_DEVICES_TEXT];
    if (prints && *task->no_topology.text)
        fprintf(out,
                "dt: note: node %s: GPUs are dealt out in order, CPUs and NICs "
                "left alone, as its topology is not known: %s\n",
                task->node, task->no_topology.text);
    else if (prints && verbose && *dt->remark.text)
        fprintf(out, "dt: note: node %s: %s\n", task->node, dt->remark.text);
    for (size_t k = 0; k < task->granted.n; k++)
        if (task->topo->gpu[task->gpu[k]].lost) {
            dt_task_names(task, &task->gpu[k], 1, name);
            fprintf(out,
                    "dt: note: node %s: GPU %s was granted, but is lost to the "
                    "node: tell the administrator\n",
                    task->node, name);
        }
}

/* The user requested more tasks than CPUs. */
static bool few_cpus_is_wanted(const struct dt_task *task)
{
    size_t ncpus = dt_cpuset_count(&task->request.cpus);
    return ncpus && ncpus < task->request.ntasks;
}

static void print_notes(const struct spank_dt *dt, const struct dt_task *task,
                        FILE *out)
{
    bool verbose = dt->option[DT_OPTION_GPUS].verbose;
    uint32_t all = 0;
    for (uint32_t i = 0; i < task->request.ntasks; i++)
        all |= task->placed[i].notes;
    if (all & DT_PLACE_NOTE_SHARED_MIG)
        all &= ~(uint32_t)DT_PLACE_NOTE_SHARED;
    if (task->chosen)
        all &= ~(uint32_t)DT_PLACE_NOTE_NO_PEER; /* all see the same */
    if (!verbose && few_cpus_is_wanted(task))
        all &= ~(uint32_t)DT_PLACE_NOTE_FEW_CPUS;
    if (task->stray)
        fprintf(out, "dt: note: CUDA_VISIBLE_DEVICES names GPUs that Slurm did "
                     "not grant: it is not heeded\n");
    if (task->bound)
        fprintf(out, "dt: note: --gpus-per-task and --gpu-bind hide the GPUs "
                     "of other tasks, which takes peer-to-peer access away: "
                     "use --gpus-per-node=<n> and --dt-gpus=auto\n");
    for (size_t i = 0; i < NNOTES; i++)
        if (all & notes[i].note && (notes[i].loss || verbose))
            fprintf(out, "dt: note: %s\n", notes[i].text);
}

/* One write if possible, so that lines of other tasks do not come between. */
static void write_all(const char *text, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = write(STDERR_FILENO, text + done, size - done);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
}

void dt_task_report(spank_t spank, const struct spank_dt *dt,
                    const struct dt_task *task)
{
    bool verbose = dt->option[DT_OPTION_GPUS].verbose;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    bool first = task->bound || task->local_rank == 0;
    if (verbose && first)
        print_rows(spank, task, out);
    if (first)
        print_node_notes(dt, task, out);
    if (task->prints)
        print_notes(dt, task, out);
    if (fclose(out) == 0)
        write_all(text, size);
    free(text);
}
