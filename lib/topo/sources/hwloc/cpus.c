/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* cpus.c - CPUs and NUMA nodes from hwloc's objects. */
#include "topo/sources/hwloc/convert.h"

#include <string.h>

/* ---- CPUs ---- */

static hwloc_obj_t above(hwloc_topology_t hwloc, hwloc_obj_t object,
                         hwloc_obj_type_t type)
{
    return hwloc_get_ancestor_obj_by_type(hwloc, type, object);
}

/* A set of hwloc may be infinite. */
void dt_hwloc_cpus(const dt_topo_t *topo, hwloc_const_cpuset_t set,
                   dt_cpuset_t *cpus)
{
    *cpus = (dt_cpuset_t){0};
    for (unsigned c = 0; set && c < topo->ncpus; c++)
        if (topo->cpu[c].present && hwloc_bitmap_isset(set, c))
            dt_cpuset_add(cpus, c);
}

static dt_result_t check_counts(hwloc_topology_t hwloc, struct dt_error *err)
{
    int packages = hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_PACKAGE);
    int cores = hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_CORE);
    if (packages < 0 || packages > DT_TOPO_MAX_PACKAGES)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "more than %d packages in one node",
                            DT_TOPO_MAX_PACKAGES);
    if (cores < 0 || cores > DT_TOPO_MAX_CPUS)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "more than %d cores in one node", DT_TOPO_MAX_CPUS);
    return DT_SUCCESS;
}

/* On this node our own cgroup forbids CPUs that others' tasks may use; in a
 * file it was the administrator. */
static bool is_allowed(hwloc_topology_t hwloc, hwloc_obj_t pu)
{
    return hwloc_topology_is_thissystem(hwloc) ||
           hwloc_bitmap_isset(hwloc_topology_get_allowed_cpuset(hwloc),
                              pu->os_index);
}

static dt_result_t add_cpu(hwloc_topology_t hwloc, hwloc_obj_t pu,
                           dt_topo_t *topo, struct dt_error *err)
{
    if (pu->os_index >= DT_TOPO_MAX_CPUS)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "a CPU without a number below %d",
                            DT_TOPO_MAX_CPUS);
    if (!is_allowed(hwloc, pu))
        return DT_SUCCESS;
    dt_topo_cpu_t *cpu = &topo->cpu[pu->os_index];
    if (cpu->present)
        return dt_error_set(err, DT_ERR_CORRUPT, "CPU %u is there twice",
                            pu->os_index);
    hwloc_obj_t core = above(hwloc, pu, HWLOC_OBJ_CORE);
    hwloc_obj_t package = above(hwloc, pu, HWLOC_OBJ_PACKAGE);
    cpu->present = true;
    if (core)
        cpu->core = (uint16_t)core->logical_index;
    cpu->package = package ? (int16_t)package->logical_index : 0;
    if (pu->os_index >= topo->ncpus)
        topo->ncpus = pu->os_index + 1;
    return DT_SUCCESS;
}

dt_result_t dt_hwloc_add_cpus(hwloc_topology_t hwloc, dt_topo_t *topo,
                              struct dt_error *err)
{
    dt_result_t rc = check_counts(hwloc, err);
    hwloc_obj_t pu = NULL;
    while (rc == DT_SUCCESS &&
           (pu = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_PU, pu)))
        rc = add_cpu(hwloc, pu, topo, err);
    if (rc == DT_SUCCESS && topo->ncpus == 0)
        rc =
            dt_error_set(err, DT_ERR_CORRUPT, "an hwloc topology without CPUs");
    return rc;
}

/* ---- NUMA nodes ---- */

static bool bus_info(hwloc_obj_t object, char bus[24])
{
    return dt_topo_bus(hwloc_obj_get_info_by_name(object, "PCIBusID"), bus);
}

static bool is_gpu_memory(hwloc_obj_t numa)
{
    char bus[24];
    return hwloc_bitmap_iszero(numa->cpuset) || bus_info(numa, bus) ||
           (numa->subtype && strcmp(numa->subtype, "GPUMemory") == 0);
}

static dt_result_t add_numa(hwloc_topology_t hwloc, hwloc_obj_t object,
                            dt_topo_t *topo, struct dt_error *err)
{
    if (object->os_index == HWLOC_UNKNOWN_INDEX ||
        dt_topo_find_numa(topo, object->os_index) >= 0)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "a NUMA node without a number of its own");
    dt_topo_numa_t *numa = dt_topo_add_numa(topo, err);
    if (!numa)
        return DT_ERR_UNSUPPORTED;
    hwloc_obj_t package = above(hwloc, object, HWLOC_OBJ_PACKAGE);
    numa->id = object->os_index;
    numa->memory = object->attr->numanode.local_memory;
    if (package)
        numa->package = (int16_t)package->logical_index;
    if (!is_gpu_memory(object))
        dt_hwloc_cpus(topo, object->cpuset, &numa->cpus);
    return DT_SUCCESS;
}

dt_result_t dt_hwloc_add_numas(hwloc_topology_t hwloc, dt_topo_t *topo,
                               struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    hwloc_obj_t object = NULL;
    while (rc == DT_SUCCESS && (object = hwloc_get_next_obj_by_type(
                                    hwloc, HWLOC_OBJ_NUMANODE, object)))
        rc = add_numa(hwloc, object, topo, err);
    return rc;
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
void dt_hwloc_assign_gpu_memory(hwloc_topology_t hwloc, dt_topo_t *topo)
{
    bool reverse = dt_topo_find_numa(topo, 255) >= 0;
    uint32_t place[DT_TOPO_MAX_PACKAGES + 1] = {0}, n = 0;
    hwloc_obj_t object = NULL;
    while ((object = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE,
                                                object))) {
        dt_topo_numa_t *numa = &topo->numa[n++];
        if (!is_gpu_memory(object))
            continue;
        char bus[24];
        int gpu = bus_info(object, bus) ? gpu_by_bus(topo, bus) : -1;
        if (gpu < 0)
            gpu = gpu_by_place(topo, numa->package, place[numa->package + 1]++,
                               reverse);
        numa->gpu = (int16_t)gpu;
    }
}
