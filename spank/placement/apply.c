/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* apply.c - apply a placement: variables, CPUs, memory. What the user has set
 * is kept. */
#include "placement/task.h"

#include <stdio.h>
#include <string.h>

#include <slurm/slurm.h>

#include "base/env.h"
#include "elastic.h"
#include "environment.h"
#include "placement/nics.h"
#include "placement/system.h"
#include "placement/table.h"
#include "server/server.h"

/* ---- GPUs ---- */

/* Slurm's list, permuted, for each kind of runtime; or the user's own, which
 * Slurm has replaced. */
static bool set_visible(spank_t spank, const struct dt_task *task)
{
    const dt_place_task_t *placed = &task->placed[task->self];
    char list[DT_DEVICES_TEXT];
    struct dt_devices devices;
    if (task->chosen) {
        dt_task_names(task, task->gpu, task->granted.n, list);
        return dt_variable_set(spank, dt_visible[0], list);
    }
    for (size_t i = 0; i < DT_NVISIBLE; i++) {
        if (spank_getenv(spank, dt_visible[i], list, sizeof(list)) !=
                ESPANK_SUCCESS ||
            dt_devices_split(list, &devices, NULL) != DT_SUCCESS ||
            devices.n != task->nslurm)
            continue; /* not Slurm's list */
        dt_task_names(task, placed->visible, placed->nvisible, list);
        if (!dt_variable_set(spank, dt_visible[i], list))
            return false;
    }
    return true;
}

/* ---- NICs ---- */

/* NCCL wants all ranks of a node to use the same NICs: all that any has. */
static void union_of_nics(const struct dt_task *task, char text[DT_NICS_TEXT])
{
    uint8_t nic[DT_TOPO_MAX_NICS];
    bool used[DT_TOPO_MAX_NICS] = {false};
    size_t n = 0;
    for (uint32_t i = 0; i < task->request.ntasks; i++)
        for (uint32_t j = 0; j < task->placed[i].nnics; j++)
            used[task->placed[i].nic[j]] = true;
    for (uint32_t i = 0; i < task->topo->nnics; i++)
        if (used[i])
            nic[n++] = (uint8_t)i;
    dt_nics_verbs(task->topo, nic, n, text);
}

static bool has_nics(const struct dt_task *task)
{
    for (uint32_t i = 0; i < task->request.ntasks; i++)
        if (task->placed[i].nnics)
            return true;
    return false;
}

/* The interface by which this node reaches srun, for connections between ranks.
 * Without NICs for RDMA, NCCL sends all its data over the interfaces named
 * here, and this one may be slow: then the choice is left to NCCL. */
static bool set_interface(spank_t spank, const struct dt_task *task)
{
    char name[IF_NAMESIZE], exactly[IF_NAMESIZE + 1];
    const char *launcher =
        dt_table_getenv(task->env, "SLURM_LAUNCH_NODE_IPADDR");
    if (!launcher || !dt_system_interface(launcher, name))
        return true;
    snprintf(exactly, sizeof(exactly), "=%s", name);
    return (!has_nics(task) ||
            dt_variable_offer(spank, "NCCL_SOCKET_IFNAME", exactly)) &&
           dt_variable_offer(spank, "GLOO_SOCKET_IFNAME", name);
}

static bool set_nics(spank_t spank, const struct dt_task *task)
{
    const dt_place_task_t *placed = &task->placed[task->self];
    const char *file = task->topo->nccl_file;
    char text[DT_NICS_TEXT], exactly[DT_NICS_TEXT + 1];
    if (!set_interface(spank, task))
        return false;
    dt_nics_names(task->topo, placed->nic, placed->nnics, text);
    if (*text && !dt_variable_set(spank, DT_ENV_NICS, text))
        return false;
    dt_nics_verbs(task->topo, placed->nic, placed->nnics, text);
    if (!dt_variable_offer(spank, "UCX_NET_DEVICES", text))
        return false;
    union_of_nics(task, text);
    snprintf(exactly, sizeof(exactly), "%s%s", *text ? "=" : "", text);
    /* a task with GPUs of its own does not know the NICs of the others */
    return (task->bound || dt_variable_offer(spank, "NCCL_IB_HCA", exactly)) &&
           (!dt_system_readable(file) ||
            dt_variable_offer(spank, "NCCL_TOPO_FILE", file));
}

static bool set_placement(spank_t spank, const struct spank_dt *dt,
                          const struct dt_task *task)
{
    const dt_place_task_t *placed = &task->placed[task->self];
    bool nics = dt->option[DT_OPTION_NICS].policy != DT_PLACE_NICS_NONE;
    char own[DT_DEVICES_TEXT], version[16];
    dt_task_names(task, placed->own, placed->nown, own);
    snprintf(version, sizeof(version), "%d", DT_ENV_VERSION_NOW);
    spank_unsetenv(spank, DT_ENV_USER_VISIBLE);
    return (!nics || set_nics(spank, task)) && set_visible(spank, task) &&
           dt_variable_set(spank, DT_ENV_GPUS, own) &&
           dt_variable_set(spank, DT_ENV_VERSION, version) &&
           dt_variable_offer(spank, "CUDA_DEVICE_ORDER", "PCI_BUS_ID") &&
           dt_variable_offer_run_id(spank);
}

/* ---- CPUs and memory ---- */

static void bind_cpus(const struct spank_dt *dt, const struct dt_task *task)
{
    const dt_place_task_t *placed = &task->placed[task->self];
    struct dt_error why;
    char cpus[128];
    if (task->request.cpu_bind == DT_PLACE_CPUS_NONE)
        return;
    if (dt_cpuset_count(&placed->cpus) &&
        dt_system_bind(&placed->cpus, &why) != DT_SUCCESS)
        fprintf(stderr,
                "dt: note: rank %u is left on its CPUs, the kernel refused "
                "%s: %s\n",
                task->rank, dt_cpuset_print(&placed->cpus, cpus, sizeof(cpus)),
                why.text);
    if (!dt->binds_memory &&
        dt_system_prefer(task->topo, placed->numas, &why) == DT_ERR_SYSTEM &&
        dt->option[DT_OPTION_GPUS].verbose && task->prints)
        fprintf(stderr, "dt: note: no memory is preferred: %s\n", why.text);
}

dt_result_t dt_task_apply(spank_t spank, const struct spank_dt *dt,
                          struct dt_task *task, struct dt_error *err)
{
    if (task->placed)
        bind_cpus(dt, task);
    if ((task->placed && !set_placement(spank, dt, task)) ||
        !dt_server_set_variables(spank, dt, task->rank) ||
        !dt_elastic_task_init(spank, dt))
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "Slurm did not take the task's variables");
    return DT_SUCCESS;
}
