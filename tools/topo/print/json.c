/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* json.c - the machine and a placement for programs. */
#include <jansson.h>
#include <string.h>

#include "common/json_output.h"
#include "print.h"

/* jansson's setters take NULL for what could not be made and say so in their
 * result: built is false once anything failed */
struct builder {
    bool built;
    dt_topo_t *linked; /* the node with no link known to be down */
};

static void put(struct builder *b, json_t *object, const char *key,
                json_t *value)
{
    if (json_object_set_new(object, key, value))
        b->built = false;
}

static void append(struct builder *b, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value))
        b->built = false;
}

static void put_text(struct builder *b, json_t *object, const char *key,
                     const char *text)
{
    if (*text)
        put(b, object, key, json_string(text));
}

static void put_known(struct builder *b, json_t *object, const char *key,
                      int value)
{
    if (value >= 0)
        put(b, object, key, json_integer(value));
}

static void put_cpus(struct builder *b, json_t *object, const dt_cpuset_t *set)
{
    char list[CPU_LIST];
    put(b, object, "cpus",
        json_string(dt_cpuset_print(set, list, sizeof(list))));
}

/* numbers of NUMA nodes are texts, as "" is unknown */
static void put_numa(struct builder *b, json_t *object, const char *key,
                     const dt_topo_t *topo, int numa)
{
    char text[16] = "";
    if (numa >= 0)
        snprintf(text, sizeof(text), "%u", topo->numa[numa].id);
    put(b, object, key, json_string(text));
}

static void put_under(struct builder *b, json_t *object, const dt_topo_t *topo,
                      int bridge)
{
    if (bridge >= 0)
        put(b, object, "under", json_string(topo->switches[bridge].name));
}

static json_t *indices(struct builder *b, const uint8_t *index, size_t n)
{
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++)
        append(b, array, json_integer(index[i]));
    return array;
}

static void put_pcie(struct builder *b, json_t *object,
                     const dt_topo_pcie_t *link)
{
    if (link->generation)
        put(b, object, "pcie",
            json_pack("{s:i, s:i}", "generation", link->generation, "lanes",
                      link->lanes));
}

static json_t *gpu_object(struct builder *b, const dt_topo_t *topo, uint32_t i)
{
    static const char *const vendors[] = {"", "nvidia", "amd", "intel"};
    const dt_topo_gpu_t *gpu = &topo->gpu[i];
    json_t *object = json_object(), *nics = json_array();
    uint8_t nic[DT_TOPO_MAX_NICS];
    dt_path_t path;
    size_t n = dt_topo_nearest_nics(b->linked, i, nic, &path);
    for (size_t k = 0; k < n; k++)
        append(b, nics, json_string(topo->nic[nic[k]].name));
    put(b, object, "index", json_integer(i));
    put(b, object, "bus", json_string(gpu->bus));
    put_numa(b, object, "numa", topo, gpu->numa);
    put_cpus(b, object, &gpu->cpus);
    put(b, object, "nics", nics);
    put(b, object, "nic_path", json_string(n ? dt_path_name(path) : ""));
    put_text(b, object, "vendor", vendors[gpu->vendor]);
    put_text(b, object, "name", gpu->name);
    put_text(b, object, "uuid", gpu->uuid);
    put_text(b, object, "file", gpu->file);
    put_known(b, object, "minor", gpu->minor_number);
    put_known(b, object, "partition", gpu->part);
    put_known(b, object, "package", gpu->package);
    put_under(b, object, topo, gpu->under);
    if (gpu->memory_numa >= 0)
        put_numa(b, object, "memory_numa", topo, gpu->memory_numa);
    if (gpu->memory)
        put(b, object, "memory", json_integer((json_int_t)gpu->memory));
    put_pcie(b, object, &gpu->pcie);
    put(b, object, "nvswitch", json_boolean(gpu->nvswitch));
    put(b, object, "lost", json_boolean(gpu->lost));
    return object;
}

static json_t *nic_object(struct builder *b, const dt_topo_t *topo, uint32_t i)
{
    const dt_topo_nic_t *nic = &topo->nic[i];
    json_t *object = json_object();
    put(b, object, "name", json_string(nic->name));
    put_text(b, object, "names", nic->names);
    put_text(b, object, "net", nic->net);
    put_text(b, object, "bus", nic->bus);
    put_text(b, object, "type", nic_type_text(nic->type));
    put_text(b, object, "state", link_state_text(nic->state));
    if (nic->port > 0)
        put(b, object, "port", json_integer(nic->port));
    if (nic->gbps)
        put(b, object, "gbps", json_integer(nic->gbps));
    put_pcie(b, object, &nic->pcie);
    put_numa(b, object, "numa", topo, nic->numa);
    put_known(b, object, "package", nic->package);
    put_under(b, object, topo, nic->under);
    return object;
}

static json_t *numa_object(struct builder *b, const dt_topo_t *topo, uint32_t i)
{
    const dt_topo_numa_t *numa = &topo->numa[i];
    json_t *object = json_object();
    put(b, object, "id", json_integer(numa->id));
    put_known(b, object, "package", numa->package);
    put_known(b, object, "gpu", numa->gpu);
    put_cpus(b, object, &numa->cpus);
    if (numa->memory)
        put(b, object, "memory", json_integer((json_int_t)numa->memory));
    return object;
}

static json_t *switch_object(struct builder *b, const dt_topo_t *topo,
                             uint32_t i)
{
    json_t *object = json_object();
    put(b, object, "name", json_string(topo->switches[i].name));
    put_under(b, object, topo, topo->switches[i].parent);
    put_numa(b, object, "numa", topo, topo->switches[i].numa);
    return object;
}

static json_t *list_of(struct builder *b, const dt_topo_t *topo, uint32_t n,
                       json_t *(*make)(struct builder *, const dt_topo_t *,
                                       uint32_t))
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < n; i++)
        append(b, array, make(b, topo, i));
    return array;
}

/* Rows of links between GPUs, and of paths between all devices. */
static void put_tables(struct builder *b, json_t *root, const dt_topo_t *topo)
{
    json_t *links = json_array(), *paths = json_array();
    uint32_t n = topo->ngpus + topo->nnics;
    for (uint32_t i = 0; i < topo->ngpus; i++) {
        json_t *row = json_array();
        for (uint32_t j = 0; j < topo->ngpus; j++)
            append(b, row, json_integer(topo->links[i][j]));
        append(b, links, row);
    }
    for (uint32_t i = 0; i < n; i++) {
        json_t *row = json_array();
        for (uint32_t j = 0; j < n; j++)
            append(b, row,
                   json_string(
                       i == j ? "X" : dt_path_name(dt_topo_path(topo, i, j))));
        append(b, paths, row);
    }
    put(b, root, "links", links);
    put(b, root, "paths", paths);
}

/* The NICs of a task's k-th GPU: the chosen first, then those as near. */
static json_t *nics_of(struct builder *b, const struct plan *plan,
                       const dt_place_task_t *task, uint32_t k)
{
    const dt_topo_t *topo = plan->request.topo;
    json_t *names = json_array();
    uint8_t near[DT_TOPO_MAX_NICS], chosen = task->gpu_nic[k];
    if (chosen == UINT8_MAX)
        return names;
    append(b, names, json_string(topo->nic[chosen].name));
    if (plan->request.nics != DT_PLACE_NICS_CLOSEST)
        return names;
    size_t n = dt_topo_nearest_nics(topo, task->own[k], near, NULL);
    for (size_t i = 0; i < n; i++)
        if (near[i] != chosen)
            append(b, names, json_string(topo->nic[near[i]].name));
    return names;
}

static json_t *task_notes(struct builder *b, const struct plan *plan,
                          const dt_place_task_t *task)
{
    json_t *notes = json_array();
    char text[PLACE_NOTE_TEXT];
    for (uint32_t bit = 1; bit && bit <= task->notes; bit <<= 1)
        if (task->notes & bit)
            append(b, notes,
                   json_string(place_note_text(text, &plan->request, bit)));
    return notes;
}

static json_t *task_object(struct builder *b, const struct plan *plan,
                           const dt_place_task_t *task)
{
    json_t *object = json_object(), *nics = json_array();
    char numas[CPU_LIST];
    for (uint32_t k = 0; k < task->nown; k++)
        append(b, nics, nics_of(b, plan, task, k));
    put(b, object, "gpus", indices(b, task->own, task->nown));
    put(b, object, "sees", indices(b, task->visible, task->nvisible));
    put_cpus(b, object, &task->cpus);
    put(b, object, "numas",
        json_string(
            task_numas(numas, sizeof(numas), plan->request.topo, task)));
    put(b, object, "nics", nics);
    put(b, object, "notes", task_notes(b, plan, task));
    return object;
}

/* A copy without link states: where a NIC is does not change with its cable. */
static dt_topo_t *link_up(const dt_topo_t *topo)
{
    dt_topo_t *linked = dt_topo_create();
    if (!linked)
        return NULL;
    *linked = *topo;
    for (uint32_t i = 0; i < linked->nnics; i++)
        linked->nic[i].state = DT_LINK_UNKNOWN;
    return linked;
}

static void fill(struct builder *b, json_t *root, const dt_topo_t *topo,
                 const struct plan *plan)
{
    put(b, root, "source", json_string(topo->source));
    put_text(b, root, "missing", topo->missing);
    put_text(b, root, "nccl_file", topo->nccl_file);
    put(b, root, "packages", json_integer(topo->npackages));
    put(b, root, "numas", list_of(b, topo, topo->nnumas, numa_object));
    put(b, root, "switches", list_of(b, topo, topo->nswitches, switch_object));
    put(b, root, "gpus", list_of(b, topo, topo->ngpus, gpu_object));
    put(b, root, "nics", list_of(b, topo, topo->nnics, nic_object));
    put_tables(b, root, topo);
    if (!plan)
        return;
    json_t *tasks = json_array();
    for (uint32_t i = 0; i < plan->request.ntasks; i++)
        append(b, tasks, task_object(b, plan, &plan->task[i]));
    put(b, root, "tasks", tasks);
}

dt_result_t print_json(FILE *out, const dt_topo_t *topo,
                       const struct plan *plan, struct dt_error *err)
{
    struct builder b = {.built = true, .linked = link_up(topo)};
    json_t *root = json_object();
    if (b.linked)
        fill(&b, root, topo, plan);
    else
        b.built = false;
    dt_topo_destroy(b.linked);
    bool good = b.built && root && (json_output(out, root) || ferror(out));
    json_decref(root);
    return good ? DT_SUCCESS
                : dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for the JSON");
}
