/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* place.c - which task gets which GPUs, and sees which. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "topo/model/cores.h"
#include "topo/model/nics.h"
#include "topo/model/partition.h"
#include "topo/model/score.h"

/* ---- checks of the request ---- */

static dt_result_t check_gpus(const dt_place_request_t *request,
                              struct dt_error *err)
{
    bool seen[DT_TOPO_MAX_GPUS] = {false};
    if (!request->ngpus)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "Slurm granted no GPU to this step: ask for them "
                            "with --gpus-per-node=<n> (or --gres=gpu:<n>), or "
                            "use --dt-pmix in place of --dt-gpus");
    if (request->ngpus > DT_TOPO_MAX_GPUS)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%u GPUs are more than the %d known to "
                            "--dt-gpus: ask for fewer, or leave it out",
                            request->ngpus, DT_TOPO_MAX_GPUS);
    for (size_t i = 0; i < request->ngpus; i++) {
        size_t gpu = request->gpu[i];
        if (gpu >= request->topo->ngpus || gpu >= DT_TOPO_MAX_GPUS)
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "GPU %zu was granted, the topology has %u: "
                                "it is of another machine",
                                gpu, request->topo->ngpus);
        if (seen[gpu])
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "GPU %zu was granted twice: expected each "
                                "once",
                                gpu);
        seen[gpu] = true;
    }
    return DT_SUCCESS;
}

static dt_result_t check_count(const dt_place_request_t *request,
                               struct dt_error *err)
{
    size_t count = request->count, ntasks = request->ntasks;
    if (!count || count > DT_TOPO_MAX_GPUS)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%zu GPUs per task: expected 1 to %d", count,
                            DT_TOPO_MAX_GPUS);
    if (ntasks * count > request->ngpus)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%zu task%s %zu GPUs, Slurm granted %u: ask "
                            "Slurm for more, or --dt-gpus for fewer",
                            ntasks, ntasks == 1 ? " needs" : "s need",
                            ntasks * count, request->ngpus);
    return DT_SUCCESS;
}

static dt_result_t bad_map(const dt_place_request_t *request, const char *type,
                           uint64_t entry, size_t gpu, struct dt_error *err)
{
    uint32_t last = request->ngpus - 1;
    bool mask = request->policy == DT_PLACE_MASK;
    return dt_error_set(err, DT_ERR_INVALID_ARG,
                        mask ? "%s:0x%" PRIx64 " names GPU %zu, but Slurm "
                               "granted %u (%s%u)"
                             : "%s:%" PRIu64 " names GPU %zu, but Slurm "
                               "granted %u (%s%u)",
                        type, entry, gpu, last + 1, last ? "0-" : "", last);
}

static dt_result_t check_map(const dt_place_request_t *request,
                             struct dt_error *err)
{
    if (!request->nmap || request->nmap > DT_PLACE_MAX_MAP)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "a map of %u entries: expected 1 to %d",
                            request->nmap, DT_PLACE_MAX_MAP);
    for (size_t i = 0; i < request->nmap; i++) {
        uint64_t entry = request->map[i];
        if (request->policy == DT_PLACE_MAP && entry >= request->ngpus)
            return bad_map(request, "map", entry, (size_t)entry, err);
        if (request->policy != DT_PLACE_MASK)
            continue;
        if (!entry)
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "mask:0x0 names no GPU: expected at least "
                                "one bit per task");
        size_t top = 63 - (size_t)__builtin_clzll(entry);
        if (top >= request->ngpus)
            return bad_map(request, "mask", entry, top, err);
    }
    return DT_SUCCESS;
}

static dt_result_t check_nic_map(const dt_place_request_t *request,
                                 struct dt_error *err)
{
    if (!request->nnic_map || request->nnic_map > DT_PLACE_MAX_MAP)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "a map of %u NICs: expected 1 to %d",
                            request->nnic_map, DT_PLACE_MAX_MAP);
    for (size_t i = 0; i < request->nnic_map; i++)
        if (request->nic_map[i] >= request->topo->nnics)
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "map:%u names NIC %u, but this node has %u, "
                                "counted from 0",
                                request->nic_map[i], request->nic_map[i],
                                request->topo->nnics);
    return DT_SUCCESS;
}

static dt_result_t check(const dt_place_request_t *request,
                         struct dt_error *err)
{
    if (!request->ntasks || request->ntasks > DT_PLACE_MAX_TASKS)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%u tasks on a node: expected 1 to %d",
                            request->ntasks, DT_PLACE_MAX_TASKS);
    dt_result_t rc = check_gpus(request, err);
    if (rc == DT_SUCCESS && request->policy == DT_PLACE_COUNT)
        rc = check_count(request, err);
    if (rc == DT_SUCCESS &&
        (request->policy == DT_PLACE_MAP || request->policy == DT_PLACE_MASK))
        rc = check_map(request, err);
    if (rc == DT_SUCCESS && request->nics == DT_PLACE_NICS_MAP)
        rc = check_nic_map(request, err);
    return rc;
}

/* ---- own GPUs; request->gpu is ascending from here on ---- */

static void sort(uint8_t *list, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        uint8_t x = list[i];
        size_t at = i;
        for (; at > 0 && list[at - 1] > x; at--)
            list[at] = list[at - 1];
        list[at] = x;
    }
}

static void own(dt_place_task_t *task, uint8_t gpu)
{
    task->own[task->nown++] = gpu;
}

/* Where not all GPUs are needed, lost ones are left out first. Returns the
 * number of usable[]. */
static size_t leave_lost(const dt_place_request_t *request, size_t needed,
                         uint8_t *usable)
{
    size_t n = request->ngpus;
    memcpy(usable, request->gpu, n);
    for (size_t i = n; i-- > 0 && n > needed;)
        if (request->topo->gpu[usable[i]].lost) {
            memmove(&usable[i], &usable[i + 1], n - i - 1);
            n--;
        }
    return n;
}

/* At most one task per GPU. */
static void own_best(const dt_place_request_t *request, dt_place_task_t *task)
{
    uint8_t gpu[DT_TOPO_MAX_GPUS], group[DT_TOPO_MAX_GPUS];
    uint8_t size[DT_TOPO_MAX_GPUS];
    size_t n = request->ngpus, ntasks = request->ntasks, needed = 0;
    for (size_t t = 0; t < ntasks; t++) {
        size[t] = (uint8_t)(request->policy == DT_PLACE_COUNT
                                ? request->count
                                : n / ntasks + (t < n % ntasks));
        needed += size[t];
    }
    n = leave_lost(request, needed, gpu);
    dt_partition(request->topo, gpu, n, size, ntasks, group);
    for (size_t i = 0; i < n; i++)
        if (group[i] != DT_PARTITION_NONE)
            own(&task[group[i]], gpu[i]);
}

static void own_named(const dt_place_request_t *request, dt_place_task_t *task)
{
    for (size_t t = 0; t < request->ntasks; t++) {
        uint64_t entry = request->map[t % request->nmap];
        uint64_t mask =
            request->policy == DT_PLACE_MAP ? (uint64_t)1 << entry : entry;
        for (size_t i = 0; i < request->ngpus; i++)
            if (mask >> i & 1)
                own(&task[t], request->gpu[i]);
    }
}

/* NVIDIA's only parts of a GPU. */
static bool is_mig(const dt_topo_t *topo, uint8_t gpu)
{
    return topo->gpu[gpu].vendor == DT_VENDOR_NVIDIA &&
           topo->gpu[gpu].part >= 0;
}

/* A process opens one MIG instance, and none beside a whole GPU. */
static void leave_one_instance(const dt_topo_t *topo, dt_place_task_t *task)
{
    size_t n = 1;
    for (size_t i = 1; i < task->nown; i++) {
        if (!is_mig(topo, task->own[0]) && !is_mig(topo, task->own[i]))
            task->own[n++] = task->own[i];
        else
            task->notes |= DT_PLACE_NOTE_MIG;
    }
    task->nown = (uint32_t)n;
}

static void assign_gpus(const dt_place_request_t *request,
                        dt_place_task_t *task)
{
    if (request->policy == DT_PLACE_MAP || request->policy == DT_PLACE_MASK)
        own_named(request, task);
    else if (request->ntasks <= request->ngpus)
        own_best(request, task);
    else
        for (size_t t = 0; t < request->ntasks; t++)
            own(&task[t], request->gpu[t * request->ngpus / request->ntasks]);
}

static void own_gpus(const dt_place_request_t *request, dt_place_task_t *task)
{
    assign_gpus(request, task);
    for (size_t t = 0; t < request->ntasks; t++)
        leave_one_instance(request->topo, &task[t]);
}

/* ---- visible GPUs ---- */

static bool is_in(const uint8_t *list, size_t n, uint8_t gpu)
{
    return memchr(list, gpu, n) != NULL;
}

/* Of MIG instances, a task sees its own and no other. */
static void see(const dt_topo_t *topo, dt_place_task_t *task, uint8_t gpu)
{
    bool alone = is_mig(topo, task->own[0]) || is_mig(topo, gpu);
    if (!is_in(task->visible, task->nvisible, gpu) &&
        (!alone || gpu == task->own[0]))
        task->visible[task->nvisible++] = gpu;
}

/* Round robin: the first own GPU of every task, in order of tasks, then the
 * second ones, and so on. */
static void see_in_turns(const dt_place_request_t *request,
                         const dt_place_task_t *all, dt_place_task_t *task)
{
    size_t turns = request->ntasks > request->ngpus ? 0 : request->ngpus;
    for (size_t turn = 0; turn < turns; turn++)
        for (size_t t = 0; t < request->ntasks; t++)
            if (turn < all[t].nown)
                see(request->topo, task, all[t].own[turn]);
    for (size_t i = 0; i < request->ngpus; i++) /* shared ones: in order */
        see(request->topo, task, request->gpu[i]);
}

static void see_gpus(const dt_place_request_t *request,
                     const dt_place_task_t *all, dt_place_task_t *task)
{
    if (request->policy == DT_PLACE_AUTO) {
        see_in_turns(request, all, task);
        return;
    }
    for (size_t i = 0; i < task->nown; i++)
        see(request->topo, task, task->own[i]);
    if (request->policy != DT_PLACE_ROTATE)
        return;
    size_t last = 0;
    while (request->gpu[last] != task->own[task->nown - 1])
        last++;
    for (size_t i = 1; i < request->ngpus; i++)
        see(request->topo, task, request->gpu[(last + i) % request->ngpus]);
}

/* ---- notes for the user ---- */

static bool knows_nothing(const dt_place_request_t *request)
{
    static const dt_cpuset_t unknown;
    const dt_topo_t *topo = request->topo;
    for (size_t i = 0; i < request->ngpus; i++) {
        const dt_topo_gpu_t *gpu = &topo->gpu[request->gpu[i]];
        if (gpu->numa >= 0 || !dt_cpuset_equal(&gpu->cpus, &unknown))
            return false;
        for (size_t j = 0; j < i; j++)
            if (dt_topo_path(topo, request->gpu[i], request->gpu[j]) !=
                DT_PATH_UNKNOWN)
                return false;
    }
    return true;
}

static uint32_t note_node(const dt_place_request_t *request)
{
    uint32_t notes = 0;
    if (knows_nothing(request))
        notes |= DT_PLACE_NOTE_UNKNOWN;
    if (request->ntasks > request->ngpus)
        notes |= DT_PLACE_NOTE_SHARED;
    for (size_t i = 0; i < request->ngpus; i++) {
        if (request->topo->gpu[request->gpu[i]].lost)
            notes |= DT_PLACE_NOTE_LOST;
        if (notes & DT_PLACE_NOTE_SHARED &&
            is_mig(request->topo, request->gpu[i]))
            notes |= DT_PLACE_NOTE_SHARED_MIG;
    }
    return notes;
}

/* Its CPUs are as good as any, but there are several packages to be near to. */
static bool is_anywhere(const dt_place_request_t *request,
                        const dt_place_task_t *task)
{
    static const dt_cpuset_t unknown;
    for (size_t i = 0; i < task->nown; i++) {
        const dt_topo_gpu_t *gpu = &request->topo->gpu[task->own[i]];
        if (gpu->package < 0 && dt_cpuset_equal(&gpu->cpus, &unknown))
            return request->topo->npackages > 1 &&
                   request->cpu_bind == DT_PLACE_CPUS_GPU;
    }
    return false;
}

/* CPUs near a GPU can be part of its NUMA node, as on the MI250X. */
static bool same_numa(const dt_topo_t *topo, uint8_t a, uint8_t b)
{
    int numa = topo->gpu[a].numa, other = topo->gpu[b].numa;
    return numa >= 0 && other >= 0 ? numa == other
                                   : dt_same_locality(topo, a, b);
}

static uint32_t note_task(const dt_place_request_t *request,
                          const dt_place_task_t *task)
{
    uint32_t notes = is_anywhere(request, task) ? DT_PLACE_NOTE_ANY_CPUS : 0;
    for (size_t i = 1; i < task->nown; i++)
        if (!same_numa(request->topo, task->own[0], task->own[i]))
            notes |= DT_PLACE_NOTE_SPLIT;
    for (size_t i = 0; i < request->ngpus; i++) {
        uint8_t gpu = request->gpu[i];
        if (is_in(task->visible, task->nvisible, gpu) ||
            is_mig(request->topo, gpu) ||
            is_mig(request->topo, task->own[0])) /* instances have no peers */
            continue;
        for (size_t j = 0; j < task->nown; j++)
            if (dt_topo_path(request->topo, task->own[j], gpu) < DT_PATH_SYS)
                notes |= DT_PLACE_NOTE_NO_PEER;
    }
    return notes;
}

dt_result_t dt_place(const dt_place_request_t *asked, dt_place_task_t *task,
                     struct dt_error *err)
{
    dt_result_t rc = check(asked, err);
    if (rc != DT_SUCCESS)
        return rc;
    dt_place_request_t request = *asked;
    sort(request.gpu, request.ngpus);
    uint32_t notes = note_node(&request);
    memset(task, 0, request.ntasks * sizeof(*task));
    own_gpus(&request, task);
    if (request.cpu_bind == DT_PLACE_CPUS_GPU)
        dt_cores_assign(&request, task);
    dt_nics_assign(&request, task);
    for (size_t t = 0; t < request.ntasks; t++) {
        see_gpus(&request, task, &task[t]);
        task[t].notes |= notes | note_task(&request, &task[t]);
    }
    return DT_SUCCESS;
}
