/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* hwloc_model.c - a topology from an hwloc XML file: CPUs and NUMA nodes here,
 * the rest by others. */
#include <string.h>

#include "topo/hwloc_xml.h"

/* ---- CPUs ---- */

/* Number the packages and the cores, in order. */
static dt_result_t number_objects(struct dt_hwloc_tree *tree,
                                  struct dt_error *err)
{
    int npackages = 0, ncores = 0;
    for (size_t i = 0; i < tree->n; i++) {
        struct dt_hwloc_object *object = &tree->object[i];
        if (object->type == DT_HWLOC_PACKAGE)
            object->index = npackages++;
        else if (object->type == DT_HWLOC_CORE)
            object->index = ncores++;
    }
    if (npackages > DT_TOPO_MAX_PACKAGES)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "more than %d packages in one node",
                            DT_TOPO_MAX_PACKAGES);
    if (ncores > DT_TOPO_MAX_CPUS)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "more than %d cores in one node", DT_TOPO_MAX_CPUS);
    return DT_SUCCESS;
}

static dt_result_t add_cpu(const struct dt_hwloc_tree *tree, int i,
                           dt_topo_t *topo, struct dt_error *err)
{
    const struct dt_hwloc_object *pu = &tree->object[i];
    if (pu->os_index >= DT_TOPO_MAX_CPUS)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "line %zu: a CPU without a number below %d",
                            pu->line, DT_TOPO_MAX_CPUS);
    dt_topo_cpu_t *cpu = &topo->cpu[pu->os_index];
    if (cpu->present)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "line %zu: CPU %u is there twice", pu->line,
                            pu->os_index);
    int core = dt_hwloc_above(tree, i, DT_HWLOC_CORE);
    int package = dt_hwloc_above(tree, i, DT_HWLOC_PACKAGE);
    cpu->present = true;
    if (core >= 0)
        cpu->core = (uint16_t)tree->object[core].index;
    cpu->package = package < 0 ? 0 : (int16_t)tree->object[package].index;
    if (pu->os_index >= topo->ncpus)
        topo->ncpus = pu->os_index + 1;
    return DT_SUCCESS;
}

static dt_result_t add_cpus(const struct dt_hwloc_tree *tree, dt_topo_t *topo,
                            struct dt_error *err)
{
    for (size_t i = 0; i < tree->n; i++) {
        const struct dt_hwloc_object *object = &tree->object[i];
        if (object->type != DT_HWLOC_PU || object->offline)
            continue;
        dt_result_t rc = add_cpu(tree, (int)i, topo, err);
        if (rc != DT_SUCCESS)
            return rc;
    }
    if (topo->ncpus == 0)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "an hwloc topology without CPUs");
    return DT_SUCCESS;
}

/* ---- NUMA nodes ---- */

static bool is_gpu_memory(const struct dt_hwloc_object *numa)
{
    return !numa->has_cpus || *numa->bus ||
           strcmp(numa->subtype, "GPUMemory") == 0;
}

static dt_result_t add_numas(const struct dt_hwloc_tree *tree, dt_topo_t *topo,
                             struct dt_error *err)
{
    for (size_t i = 0; i < tree->n; i++) {
        const struct dt_hwloc_object *object = &tree->object[i];
        if (object->type != DT_HWLOC_NUMA)
            continue;
        if (object->os_index == UINT32_MAX ||
            dt_topo_find_numa(topo, object->os_index) >= 0)
            return dt_error_set(err, DT_ERR_CORRUPT,
                                "line %zu: a NUMA node without a number of "
                                "its own",
                                object->line);
        dt_topo_numa_t *numa = dt_topo_add_numa(topo, err);
        if (!numa)
            return DT_ERR_UNSUPPORTED;
        int package = dt_hwloc_above(tree, (int)i, DT_HWLOC_PACKAGE);
        numa->id = object->os_index;
        numa->memory = object->memory;
        if (package >= 0)
            numa->package = (int16_t)tree->object[package].index;
        if (is_gpu_memory(object))
            continue;
        /* version 1 has the CPUs below the node, version 2 next to it */
        int above = (int)i;
        do {
            dt_hwloc_cpus(tree, above, &numa->cpus);
            above = tree->object[above].parent;
        } while (above >= 0 && dt_cpuset_count(&numa->cpus) == 0);
    }
    return DT_SUCCESS;
}

/* ---- memory of GPUs ---- */

static int gpu_by_bus(const dt_topo_t *topo, const char *bus)
{
    for (uint32_t g = 0; *bus && g < topo->ngpus; g++)
        if (strcmp(topo->gpu[g].bus, bus) == 0)
            return (int)g;
    return -1;
}

/* The GPU of the node's package, or of all, at this place; from behind if
 * reverse. -1 if there is none. */
static int gpu_by_place(const dt_topo_t *topo, int package, uint32_t place,
                        bool reverse)
{
    int candidate[DT_TOPO_MAX_GPUS];
    uint32_t n = 0;
    for (uint32_t g = 0; g < topo->ngpus; g++)
        if (package < 0 || topo->gpu[g].package == package)
            candidate[n++] = (int)g;
    if (n == 0)
        return package < 0 ? -1 : gpu_by_place(topo, -1, place, reverse);
    place %= n;
    return candidate[reverse ? n - 1 - place : place];
}

/* Main memory must never be taken from a node without CPUs where there are
 * GPUs, so each belongs to one, if need be by order. POWER9 counts such nodes
 * down from 255. */
static void give_memory(const struct dt_hwloc_tree *tree, dt_topo_t *topo)
{
    bool reverse = dt_topo_find_numa(topo, 255) >= 0;
    uint32_t place[DT_TOPO_MAX_PACKAGES + 1] = {0}, n = 0;
    for (size_t i = 0; i < tree->n; i++) {
        const struct dt_hwloc_object *object = &tree->object[i];
        if (object->type != DT_HWLOC_NUMA)
            continue;
        dt_topo_numa_t *numa = &topo->numa[n++];
        if (!is_gpu_memory(object))
            continue;
        int gpu = gpu_by_bus(topo, object->bus);
        if (gpu < 0)
            gpu = gpu_by_place(topo, numa->package, place[numa->package + 1]++,
                               reverse);
        numa->gpu = (int16_t)gpu;
    }
}

/* ---- all ---- */

static dt_result_t convert(struct dt_hwloc_tree *tree, const char *data,
                           size_t len, dt_topo_t *topo, struct dt_error *err)
{
    dt_topo_text(topo->source, sizeof(topo->source), "hwloc XML");
    dt_result_t rc = number_objects(tree, err);
    if (rc == DT_SUCCESS)
        rc = add_cpus(tree, topo, err);
    if (rc == DT_SUCCESS)
        rc = add_numas(tree, topo, err);
    if (rc == DT_SUCCESS)
        rc = dt_hwloc_devices(tree, topo, err);
    if (rc == DT_SUCCESS)
        rc = dt_hwloc_links(data, len, tree, topo, err);
    if (rc != DT_SUCCESS)
        return rc;
    give_memory(tree, topo);
    return dt_topo_finish(topo, err);
}

dt_result_t dt_topo_read_hwloc(const char *data, size_t len, dt_topo_t **topo,
                               struct dt_error *err)
{
    struct dt_hwloc_tree tree;
    dt_topo_t *made = NULL;
    dt_result_t rc = dt_hwloc_parse(data, len, &tree, err);
    if (rc != DT_SUCCESS)
        goto free_tree;
    made = dt_topo_create();
    rc = made ? convert(&tree, data, len, made, err)
              : dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    if (rc != DT_SUCCESS)
        goto destroy;
    *topo = made;
    made = NULL;
destroy:
    dt_topo_destroy(made);
free_tree:
    dt_hwloc_free(&tree);
    return rc;
}
