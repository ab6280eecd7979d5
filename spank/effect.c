/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* effect.c - a placement put into effect: variables, CPUs, memory. What the
 * user has set stays as it is. */
#include "task.h"

#include <stdio.h>
#include <string.h>

#include <slurm/slurm.h>

#include "base/env.h"
#include "nics.h"
#include "system.h"
#include "table.h"

/* true if the variable now has the value, or one that is to be kept. */
static bool set(spank_t spank, const char *name, const char *value, bool keep)
{
    spank_err_t rc = spank_setenv(spank, name, value, !keep);
    return rc == ESPANK_SUCCESS || (keep && rc == ESPANK_ENV_EXISTS);
}

/* The same, and nothing if there is nothing to say. */
static bool offer(spank_t spank, const char *name, const char *value)
{
    return !*value || set(spank, name, value, true);
}

/* SLURM_JOB_ID is the same for all components of a heterogeneous job, the
 * items name the element of an array; both survive a requeue. */
bool dt_set_run_id(spank_t spank)
{
    char id[64];
    uint32_t array, element;
    if (spank_get_item(spank, S_JOB_ARRAY_ID, &array) == ESPANK_SUCCESS &&
        spank_get_item(spank, S_JOB_ARRAY_TASK_ID, &element) ==
            ESPANK_SUCCESS &&
        array && element != NO_VAL)
        snprintf(id, sizeof(id), "%u_%u", (unsigned)array, (unsigned)element);
    else if (spank_getenv(spank, "SLURM_JOB_ID", id, sizeof(id)) !=
             ESPANK_SUCCESS)
        return false;
    return set(spank, DT_ENV_RUN_ID, id, true);
}

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
        return set(spank, dt_visible[0], list, false);
    }
    for (size_t i = 0; i < DT_NVISIBLE; i++) {
        if (spank_getenv(spank, dt_visible[i], list, sizeof(list)) !=
                ESPANK_SUCCESS ||
            dt_devices_split(list, &devices, NULL) != DT_SUCCESS ||
            devices.n != task->nslurm)
            continue; /* not Slurm's list */
        dt_task_names(task, placed->visible, placed->nvisible, list);
        if (!set(spank, dt_visible[i], list, false))
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

/* The network by which ranks meet: the one that srun is reached by. Without
 * NICs for RDMA, NCCL sends all it has by the interfaces named here, and this
 * one may be slow: it had better choose. */
static bool set_interface(spank_t spank, const struct dt_task *task)
{
    char name[IF_NAMESIZE], exactly[IF_NAMESIZE + 1];
    const char *launcher =
        dt_table_getenv(task->env, "SLURM_LAUNCH_NODE_IPADDR");
    if (!launcher || !dt_system_interface(launcher, name))
        return true;
    snprintf(exactly, sizeof(exactly), "=%s", name);
    return (!has_nics(task) ||
            set(spank, "NCCL_SOCKET_IFNAME", exactly, true)) &&
           set(spank, "GLOO_SOCKET_IFNAME", name, true);
}

static bool set_nics(spank_t spank, const struct dt_task *task)
{
    const dt_place_task_t *placed = &task->placed[task->self];
    const char *file = task->topo->nccl_file;
    char text[DT_NICS_TEXT], exactly[DT_NICS_TEXT + 1];
    if (!set_interface(spank, task))
        return false;
    dt_nics_names(task->topo, placed->nic, placed->nnics, text);
    if (*text && !set(spank, DT_ENV_NICS, text, false))
        return false;
    dt_nics_verbs(task->topo, placed->nic, placed->nnics, text);
    if (!offer(spank, "UCX_NET_DEVICES", text))
        return false;
    union_of_nics(task, text);
    snprintf(exactly, sizeof(exactly), "%s%s", *text ? "=" : "", text);
    /* a task with GPUs of its own does not know the NICs of the others */
    return (task->bound || offer(spank, "NCCL_IB_HCA", exactly)) &&
           (!dt_system_readable(file) || offer(spank, "NCCL_TOPO_FILE", file));
}

/* ---- the PMIx server ---- */

/* The name of a variable by which another server, be it Slurm's or the one of
 * a step around this, tells a rank who it is. */
static bool find_foreign(spank_t spank, char *name, size_t size)
{
    static const char pmix[] = "PMIX_", users[] = "PMIX_MCA_";
    char **env;
    if (spank_get_item(spank, S_JOB_ENV, &env) != ESPANK_SUCCESS || !env)
        return false;
    for (; *env; env++) {
        size_t length = strcspn(*env, "=");
        if (strncmp(*env, pmix, sizeof(pmix) - 1) != 0 ||
            !strncmp(*env, users, sizeof(users) - 1) || length >= size)
            continue;
        memcpy(name, *env, length);
        name[length] = '\0';
        return true;
    }
    return false;
}

static bool set_server(spank_t spank, const struct spank_dt *dt,
                       const struct dt_task *task)
{
    char room[4096], rank[16];
    const char *value, *at = dt->daemon.env;
    spank_unsetenv(spank, DT_ENV_PMIX_MEET);
    if (!at && dt->option[DT_OPTION_PMIX].policy != DT_PMIX_NONE)
        return true;
    while (find_foreign(spank, room, sizeof(room)))
        if (spank_unsetenv(spank, room) != ESPANK_SUCCESS)
            return false;
    if (!at)
        return true;
    while (dt_daemon_variable(&at, room, sizeof(room), &value))
        if (!set(spank, room, value, !strncmp(room, "PMIX_MCA_", 9)))
            return false;
    snprintf(rank, sizeof(rank), "%u", (unsigned)task->rank);
    return set(spank, "PMIX_RANK", rank, false);
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
           set(spank, DT_ENV_GPUS, own, false) &&
           set(spank, DT_ENV_VERSION, version, false) &&
           set(spank, "CUDA_DEVICE_ORDER", "PCI_BUS_ID", true) &&
           dt_set_run_id(spank);
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
        dt->option[DT_OPTION_GPUS].verbose && task->speaks)
        fprintf(stderr, "dt: note: no memory is preferred: %s\n", why.text);
}

dt_result_t dt_effect(spank_t spank, const struct spank_dt *dt,
                      struct dt_task *task, struct dt_error *err)
{
    if (task->placed)
        bind_cpus(dt, task);
    if ((task->placed && !set_placement(spank, dt, task)) ||
        !set_server(spank, dt, task))
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "Slurm did not take the task's variables");
    return DT_SUCCESS;
}
