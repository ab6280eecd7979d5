/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* task.c - from Slurm's environment and the node's topology to a placement. */
#include "placement/task.h"

#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/number.h"
#include "elastic.h"
#include "framework/framework.h"
#include "placement/grant.h"
#include "placement/nics.h"
#include "placement/system.h"
#include "placement/table.h"
#include "topo/model/model.h"

const char *const dt_visible[DT_NVISIBLE] = {
    "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK",
    "GPU_DEVICE_ORDINAL"};

/* true if the step has GPUs that Slurm does not name to its tasks. Either
 * variable alone may come from the job around the step. */
static bool names_withheld(char *const *env)
{
    const char *gpus = dt_table_getenv(env, "SLURM_GPUS_ON_NODE");
    const char *bind = dt_table_getenv(env, "SLURMD_TRES_BIND");
    return gpus && bind && strstr(bind, "gpu:none");
}

/* Without SLURM_STEP_GPUS, CUDA_VISIBLE_DEVICES may be one that the user had
 * before. */
dt_result_t dt_task_slurms_gpus(char *const *env, struct dt_devices *devices,
                                struct dt_error *err)
{
    const char *list = NULL;
    bool named = dt_table_getenv(env, "SLURM_STEP_GPUS");
    if (!named && names_withheld(env))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "with --gpu-bind=none, Slurm names no GPU to the "
                            "tasks: leave --gpu-bind out");
    if (named)
        for (size_t i = 0; i < DT_NVISIBLE && !list; i++)
            list = dt_table_getenv(env, dt_visible[i]);
    return dt_devices_split(list, devices, err);
}

static dt_result_t identify(spank_t spank, struct dt_task *task,
                            struct dt_error *err)
{
    int local_rank;
    int64_t number;
    uint32_t rank;
    char **env;
    if (spank_get_item(spank, S_JOB_ENV, &env) != ESPANK_SUCCESS || !env)
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "Slurm does not show the task's environment");
    if (spank_get_item(spank, S_TASK_ID, &local_rank) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_TASK_GLOBAL_ID, &rank) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &task->local_size) !=
            ESPANK_SUCCESS)
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "Slurm does not report the number of this task");
    const char *node = dt_table_getenv(env, "SLURMD_NODENAME");
    const char *procid = dt_table_getenv(env, "SLURM_PROCID");
    task->env = env;
    task->node = node ? node : "?";
    task->local_rank = (uint32_t)local_rank;
    task->rank = dt_number_parse(procid, 0, UINT32_MAX, &number)
                     ? (uint32_t)number
                     : rank;
    task->rank_offset = task->rank - rank;
    task->prints = task->rank == 0;
    return DT_SUCCESS;
}

/* ---- the topology ---- */

/* As many GPUs as were granted, and nothing known about them. */
static dt_result_t count_only(struct dt_task *task, struct dt_error *err)
{
    dt_topo_destroy(task->topo);
    task->topo = dt_topo_create();
    if (!task->topo)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    for (size_t k = 0; k < task->granted.n; k++) {
        if (!dt_topo_add_gpu(task->topo, err))
            return DT_ERR_NO_MEMORY;
        task->gpu[k] = (uint8_t)k;
    }
    return dt_topo_normalize(task->topo, err);
}

/* The names that Slurm's GPUs have on the node. Where a cgroup hides the
 * others, it numbers those of a task from 0, but those of the step not. */
static const struct dt_devices *names_on_node(const struct dt_task *task,
                                              struct dt_devices *step)
{
    const char *list = dt_table_getenv(task->env, "SLURM_STEP_GPUS");
    bool same_gpus = !task->bound &&
                     dt_devices_split(list, step, NULL) == DT_SUCCESS &&
                     step->n == task->granted.n;
    return same_gpus ? step : &task->granted;
}

/* Slurm numbers the GPUs of one task from 0 or by device file; without the
 * files in the topology the numbers are ambiguous. */
static dt_result_t check_files(const struct dt_task *task, struct dt_error *why)
{
    for (uint32_t i = 0; task->bound && i < task->topo->ngpus; i++)
        if (!*task->topo->gpu[i].file)
            return dt_error_set(why, DT_ERR_NOT_FOUND,
                                "the device file of GPU %u is not known, and "
                                "Slurm's numbers for the GPUs of one task are "
                                "ambiguous without: add File= to the site file",
                                i);
    return DT_SUCCESS;
}

/* The topology from dt-topo; a count if there is none or it does not fit the
 * grant. */
static dt_result_t read_topology(const struct spank_dt *dt,
                                 struct dt_task *task, struct dt_error *err)
{
    struct dt_error *why = &task->no_topology;
    struct dt_devices step;
    dt_result_t rc = DT_ERR_NOT_FOUND;
    *why = dt->remark;
    if (dt->topology)
        rc = dt_topo_read_text(dt->topology, dt->topology_size, &task->topo,
                               why);
    if (rc == DT_SUCCESS)
        rc = check_files(task, why);
    if (rc == DT_SUCCESS)
        rc = dt_grant_gpus(task->topo, names_on_node(task, &step),
                           dt_system_opens(task->topo), task->gpu, why);
    if (rc != DT_SUCCESS)
        return count_only(task, err);
    why->text[0] = '\0';
    return DT_SUCCESS;
}

/* Keep the GPUs that the user's CUDA_VISIBLE_DEVICES names. */
static void choose(struct dt_task *task)
{
    struct dt_devices wanted;
    uint8_t index[DT_TOPO_MAX_GPUS], gpu[DT_TOPO_MAX_GPUS];
    const char *list = dt_table_getenv(task->env, DT_ENV_USER_VISIBLE);
    if (!list || task->bound || !task->granted.n)
        return;
    if (dt_devices_split(list, &wanted, NULL) != DT_SUCCESS || !wanted.n ||
        !dt_grant_find(&task->granted, &wanted, index)) {
        task->stray = true;
        return;
    }
    for (size_t k = 0; k < wanted.n; k++)
        gpu[k] = task->gpu[index[k]];
    memcpy(task->gpu, gpu, wanted.n);
    task->granted = wanted;
    task->chosen = true;
}

/* ---- the request ---- */

static dt_result_t no_such_nic(const dt_topo_t *topo, const char *name,
                               struct dt_error *err)
{
    char names[DT_NICS_TEXT];
    uint8_t all[DT_TOPO_MAX_NICS];
    for (uint32_t i = 0; i < topo->nnics; i++)
        all[i] = (uint8_t)i;
    dt_nics_names(topo, all, topo->nnics, names);
    return dt_error_set(err, DT_ERR_INVALID_ARG,
                        "--dt-nics names %s, but the NICs here are %.200s",
                        name, *names ? names : "none");
}

static dt_result_t request_nics(const struct dt_option *nics,
                                struct dt_task *task, struct dt_error *err)
{
    dt_place_request_t *request = &task->request;
    request->nics = (dt_place_nics_t)nics->policy;
    if (*task->no_topology.text)
        request->nics = DT_PLACE_NICS_NONE; /* no names are known */
    if (request->nics != DT_PLACE_NICS_MAP)
        return DT_SUCCESS;
    for (uint32_t i = 0; i < nics->nlist; i++) {
        int found = dt_nics_find(task->topo, nics->nic[i]);
        if (found < 0)
            return no_such_nic(task->topo, nics->nic[i], err);
        request->nic_map[i] = (uint8_t)found;
    }
    request->nnic_map = nics->nlist;
    return DT_SUCCESS;
}

static void request_cpus(spank_t spank, const struct spank_dt *dt,
                         struct dt_task *task)
{
    char *cores = NULL;
    struct dt_grant_cpus known = {
        .bind_type = dt_table_getenv(task->env, "SLURM_CPU_BIND_TYPE"),
        .bind_list = dt_table_getenv(task->env, "SLURM_CPU_BIND_LIST"),
    };
    if (spank_get_item(spank, S_STEP_ALLOC_CORES, &cores) == ESPANK_SUCCESS)
        known.cores = cores;
    dt_system_cpus(&known.current);
    dt_grant_cpus(task->topo, &known, &task->request.cpus);
    task->request.cpu_bind =
        dt->binds_cpus || *task->no_topology.text
            ? DT_PLACE_CPUS_NONE
            : (dt_place_cpus_t)dt->option[DT_OPTION_CPU_BIND].policy;
    task->request.min_cores = dt_framework_min_cores(dt);
}

/* The place of a granted GPU among all, in order of the topology. */
static uint32_t place_of(const struct dt_task *task, uint8_t gpu)
{
    uint32_t place = 0;
    for (size_t k = 0; k < task->granted.n; k++)
        place += task->gpu[k] < gpu;
    return place;
}

/* The user's list is dealt out in its order: device index i is local rank i's.
 */
static void request_chosen(struct dt_task *task)
{
    dt_place_request_t *request = &task->request;
    uint32_t ngpus = request->ngpus, ntasks = request->ntasks;
    if (!task->chosen || ntasks > DT_PLACE_MAX_MAP ||
        request->policy == DT_PLACE_COUNT || request->policy == DT_PLACE_MAP ||
        request->policy == DT_PLACE_MASK)
        return;
    request->policy = DT_PLACE_MASK;
    request->nmap = ntasks;
    memset(request->map, 0, sizeof(request->map));
    for (uint32_t i = 0; i < (ngpus > ntasks ? ngpus : ntasks); i++) {
        uint32_t k = ntasks > ngpus ? i * ngpus / ntasks : i;
        request->map[i % ntasks] |= (uint64_t)1 << place_of(task, task->gpu[k]);
    }
}

static dt_result_t make_request(spank_t spank, const struct spank_dt *dt,
                                struct dt_task *task, struct dt_error *err)
{
    const struct dt_option *gpus = &dt->option[DT_OPTION_GPUS];
    dt_place_request_t *request = &task->request;
    request->topo = task->topo;
    request->ntasks = task->bound ? 1 : task->local_size;
    task->self = task->bound ? 0 : task->local_rank;
    request->ngpus = (uint32_t)task->granted.n;
    memcpy(request->gpu, task->gpu, task->granted.n);
    request->policy = (dt_place_policy_t)gpus->policy;
    request->count = gpus->count;
    request->nmap = gpus->nlist;
    memcpy(request->map, gpus->list, sizeof(request->map));
    request_chosen(task);
    request_cpus(spank, dt, task);
    return request_nics(&dt->option[DT_OPTION_NICS], task, err);
}

static dt_result_t place(spank_t spank, const struct spank_dt *dt,
                         struct dt_task *task, struct dt_error *err)
{
    dt_result_t rc = dt_task_slurms_gpus(task->env, &task->granted, err);
    if (rc != DT_SUCCESS)
        return rc;
    task->nslurm = task->granted.n;
    task->bound = task->granted.n && task->granted.n < dt->step_gpus;
    if ((rc = read_topology(dt, task, err)) != DT_SUCCESS)
        return rc;
    choose(task);
    if ((rc = make_request(spank, dt, task, err)) != DT_SUCCESS)
        return rc;
    task->placed = calloc(task->request.ntasks, sizeof(*task->placed));
    if (!task->placed)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    return dt_place(&task->request, task->placed, err);
}

dt_result_t dt_task_init(spank_t spank, const struct spank_dt *dt,
                         struct dt_task *task, struct dt_error *err)
{
    struct dt_error why;
    dt_result_t rc = identify(spank, task, err);
    if (rc != DT_SUCCESS)
        return rc;
    for (int id = 0; id < DT_NOPTIONS; id++)
        if (*dt->bad_option[id].text)
            return dt_error_set(err, DT_ERR_INVALID_ARG, "%s",
                                dt->bad_option[id].text);
    if (*dt->bad_argument.text)
        return dt_error_set(err, DT_ERR_INVALID_ARG, "node %s: %s", task->node,
                            dt->bad_argument.text);
    rc = dt_elastic_check(spank, dt, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (*dt->no_server.text)
        return dt_error_set(err, DT_ERR_BOOTSTRAP,
                            "node %s: no PMIx server (--dt-pmix=none does "
                            "without): %s",
                            task->node, dt->no_server.text);
    if (!dt_wants_gpus(dt))
        return DT_SUCCESS;
    rc = place(spank, dt, task, &why);
    if (rc != DT_SUCCESS) {
        char which[32] = "";
        if (task->bound)
            snprintf(which, sizeof(which), "rank %u, ", (unsigned)task->rank);
        return dt_error_set(err, rc, "--dt-gpus=%s: %snode %s: %s",
                            dt->option[DT_OPTION_GPUS].value, which, task->node,
                            why.text);
    }
    return DT_SUCCESS;
}

void dt_task_fini(struct dt_task *task)
{
    free(task->placed);
    dt_topo_destroy(task->topo);
}

void dt_task_names(const struct dt_task *task, const uint8_t *gpu, size_t n,
                   char text[DT_DEVICES_TEXT])
{
    uint8_t index[DT_TOPO_MAX_GPUS];
    for (size_t i = 0; i < n; i++) {
        uint8_t k = 0;
        while (k + 1U < task->granted.n && task->gpu[k] != gpu[i])
            k++;
        index[i] = k;
    }
    dt_devices_join(&task->granted, index, n, text);
}
