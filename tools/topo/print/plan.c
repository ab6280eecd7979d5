/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* plan.c - a placement as a table, and its notes as sentences. */
#include <stdlib.h>
#include <string.h>

#include "print.h"

enum { COLUMNS = 6, CELL = 256 };

char *index_list(char *text, size_t size, const uint8_t *index, size_t n)
{
    size_t len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < n && len < size; i++)
        len += (size_t)snprintf(text + len, size - len, "%s%u", i ? "," : "",
                                index[i]);
    return text;
}

char *task_numas(char *text, size_t size, const dt_topo_t *topo,
                 const dt_place_task_t *task)
{
    size_t len = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < topo->nnumas && len < size; i++)
        if (task->numas[i / 64] >> i % 64 & 1)
            len += (size_t)snprintf(text + len, size - len, "%s%u",
                                    len ? "," : "", topo->numa[i].id);
    return text;
}

static void nic_list(char text[CELL], const dt_topo_t *topo,
                     const dt_place_task_t *task)
{
    size_t len = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < task->nnics && len < CELL; i++)
        len += (size_t)snprintf(text + len, CELL - len, "%s%s", i ? "," : "",
                                topo->nic[task->nic[i]].name);
}

/* A cell that did not fit ends in dots. */
static void shorten(char *text, size_t size)
{
    size_t at = size - 4;
    if (strlen(text) < size - 1)
        return;
    while (at > 0 && (text[at] & 0xc0) == 0x80) /* no character in two */
        at--;
    strcpy(text + at, "...");
}

static void fill_row(char row[COLUMNS][CELL], const struct plan *plan,
                     uint32_t i)
{
    const dt_place_task_t *task = &plan->task[i];
    const dt_topo_t *topo = plan->request.topo;
    snprintf(row[0], CELL, "%u", i);
    index_list(row[1], CELL, task->own, task->nown);
    index_list(row[2], CELL, task->visible, task->nvisible);
    dt_cpuset_print(&task->cpus, row[3], CELL);
    task_numas(row[4], CELL, topo, task);
    nic_list(row[5], topo, task);
    for (size_t c = 0; c < COLUMNS; c++) {
        shorten(row[c], CELL);
        if (!*row[c])
            strcpy(row[c], "-");
    }
}

void print_plan(FILE *out, const struct plan *plan)
{
    static const char *const head[COLUMNS] = {"task", "gpus", "sees",
                                              "cpus", "numa", "nics"};
    int width[COLUMNS];
    char row[COLUMNS][CELL];
    for (size_t c = 0; c < COLUMNS; c++)
        width[c] = (int)strlen(head[c]);
    for (uint32_t i = 0; i < plan->request.ntasks; i++) {
        fill_row(row, plan, i);
        for (size_t c = 0; c < COLUMNS; c++)
            if (width[c] < (int)strlen(row[c]))
                width[c] = (int)strlen(row[c]);
    }
    for (size_t c = 0; c < COLUMNS; c++)
        fprintf(out, c + 1 < COLUMNS ? "%-*s  " : "%.*s\n",
                c + 1 < COLUMNS ? width[c] : CELL, head[c]);
    for (uint32_t i = 0; i < plan->request.ntasks; i++) {
        fill_row(row, plan, i);
        for (size_t c = 0; c < COLUMNS; c++)
            fprintf(out, c + 1 < COLUMNS ? "%-*s  " : "%.*s\n",
                    c + 1 < COLUMNS ? width[c] : CELL, row[c]);
    }
}

static const char *lost_text(char text[PLACE_NOTE_TEXT],
                             const dt_place_request_t *request)
{
    uint8_t lost[DT_TOPO_MAX_GPUS];
    char list[4 * DT_TOPO_MAX_GPUS];
    size_t n = 0;
    for (uint32_t i = 0; i < request->ngpus; i++)
        if (request->topo->gpu[request->gpu[i]].lost)
            lost[n++] = request->gpu[i];
    snprintf(text, PLACE_NOTE_TEXT, "granted, but fallen off the bus: GPU %s",
             index_list(list, sizeof(list), lost, n));
    return text;
}

const char *place_note_text(char text[PLACE_NOTE_TEXT],
                            const dt_place_request_t *request, uint32_t bit)
{
    switch (bit) {
    case DT_PLACE_NOTE_UNKNOWN:
        return "the topology is not known: GPUs were dealt out in their order";
    case DT_PLACE_NOTE_SHARED:
        return "there are more tasks than GPUs: tasks share a GPU";
    case DT_PLACE_NOTE_SHARED_MIG:
        return "there are more tasks than MIG instances: tasks share an "
               "instance and its memory";
    case DT_PLACE_NOTE_FEW_CPUS:
        return "there are fewer cores than tasks: tasks share CPUs";
    case DT_PLACE_NOTE_FAR_CPUS:
        return "too few CPUs near the GPUs were granted: far ones are used";
    case DT_PLACE_NOTE_SPLIT:
        return "the GPUs of a task are on several NUMA nodes";
    case DT_PLACE_NOTE_NO_PEER:
        return "the policy hides GPUs that a task could reach directly: "
               "peer-to-peer between tasks is lost; use --dt-gpus=auto to "
               "keep it";
    case DT_PLACE_NOTE_LOST:
        return lost_text(text, request);
    case DT_PLACE_NOTE_MIG:
        return "CUDA opens one MIG instance in a process: a task has its first "
               "one alone; start as many tasks as there are instances";
    case DT_PLACE_NOTE_ANY_CPUS:
        return "the packages of some GPUs are not known: CPUs of any package "
               "are used";
    case DT_PLACE_NOTE_LENT:
        return "tasks share cores, so that each has as many as its framework "
               "needs";
    default:
        return "a note that this dt-topo does not know";
    }
}

void print_plan_notes(FILE *out, const struct plan *plan)
{
    uint32_t all = 0, each = UINT32_MAX; /* of any task, of all tasks */
    char text[PLACE_NOTE_TEXT];
    for (uint32_t i = 0; i < plan->request.ntasks; i++) {
        all |= plan->task[i].notes;
        each &= plan->task[i].notes;
    }
    for (uint32_t bit = 1; bit && bit <= all; bit <<= 1) {
        const char *before = " (task ";
        if (!(all & bit))
            continue;
        fprintf(out, "note: %s", place_note_text(text, &plan->request, bit));
        for (uint32_t i = 0; i < plan->request.ntasks && !(each & bit); i++)
            if (plan->task[i].notes & bit) {
                fprintf(out, "%s%u", before, i);
                before = ",";
            }
        fputs(each & bit ? "\n" : ")\n", out);
    }
}
