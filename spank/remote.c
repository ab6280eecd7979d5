/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* remote.c - the plugin in slurmstepd and in the tasks it starts. */
#include "spank_dt.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slurm/slurm.h>

#include "base/env.h"
#include "devices.h"
#include "table.h"

/* Slurm names the granted GPUs in one variable per kind of runtime, all with
 * the same list. */
static const char *const visible[] = {"CUDA_VISIBLE_DEVICES",
                                      "ROCR_VISIBLE_DEVICES",
                                      "ZE_AFFINITY_MASK", "GPU_DEVICE_ORDINAL"};
enum { NVISIBLE = sizeof(visible) / sizeof(visible[0]) };

/* One task, about to be started. */
struct task {
    const char *node; /* in Slurm's environment: until the next spank_setenv */
    uint32_t rank, local_rank, local_size;
    uint32_t rank_offset; /* of its component of a heterogeneous job */
    bool bound;           /* Slurm gave it GPUs of its own */
    struct dt_devices granted;
    struct dt_place_request request;
};

bool dt_is_task_step(spank_t spank)
{
    uint32_t step;
    return spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS &&
           step <= SLURM_MAX_NORMAL_STEP_ID;
}

/* Slurm calls this up to twice with the same value. The user may have put it
 * past srun, so it is parsed again. */
void dt_remote_option(struct spank_dt *dt, const char *text)
{
    struct dt_option option;
    if (dt_option_parse(text, "--dt-gpus", &option, &dt->bad_option) !=
        DT_SUCCESS)
        return;
    if (option.type == DT_OPTION_HELP) {
        dt_error_set(&dt->bad_option, DT_ERR_INVALID_ARG,
                     "--dt-gpus=help is for the command line only");
        return;
    }
    dt->bad_option.text[0] = '\0';
    dt->option = option;
}

/* true if the step has GPUs that Slurm does not name to its tasks. Either
 * variable alone may come from the job around the step. */
static bool withheld(char *const *env)
{
    const char *gpus = dt_table_getenv(env, "SLURM_GPUS_ON_NODE");
    const char *bind = dt_table_getenv(env, "SLURMD_TRES_BIND");
    return gpus && bind && strstr(bind, "gpu:none");
}

/* The GPUs of env. Without SLURM_STEP_GPUS, CUDA_VISIBLE_DEVICES may be one
 * that the user had before. */
static dt_result_t granted_gpus(char *const *env, struct dt_devices *devices,
                                struct dt_error *err)
{
    const char *list = NULL;
    bool named = dt_table_getenv(env, "SLURM_STEP_GPUS");
    if (!named && withheld(env))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "with --gpu-bind=none, Slurm names no GPU to the "
                            "tasks: leave --gpu-bind out");
    if (named)
        for (size_t i = 0; i < NVISIBLE && !list; i++)
            list = dt_table_getenv(env, visible[i]);
    return dt_devices_split(list, devices, err);
}

void dt_remote_user_init(spank_t spank, struct spank_dt *dt)
{
    char **env;
    struct dt_devices devices;
    if (dt->option.type == DT_OPTION_GPUS &&
        spank_get_item(spank, S_JOB_ENV, &env) == ESPANK_SUCCESS && env &&
        granted_gpus(env, &devices, NULL) == DT_SUCCESS)
        dt->step_gpus = devices.n;
}

/* Who the task is. */
static dt_result_t identify(spank_t spank, char *const *env, struct task *task,
                            struct dt_error *err)
{
    int local_rank;
    uint32_t rank;
    if (spank_get_item(spank, S_TASK_ID, &local_rank) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_TASK_GLOBAL_ID, &rank) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &task->local_size) !=
            ESPANK_SUCCESS)
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "Slurm does not say which task this is");
    const char *node = dt_table_getenv(env, "SLURMD_NODENAME");
    const char *procid = dt_table_getenv(env, "SLURM_PROCID");
    task->node = node ? node : "?";
    task->local_rank = (uint32_t)local_rank;
    task->rank = procid ? (uint32_t)strtoul(procid, NULL, 10) : rank;
    task->rank_offset = task->rank - rank;
    return DT_SUCCESS;
}

/* What Slurm gave it, and what of that becomes its own. */
static dt_result_t place(const struct spank_dt *dt, char *const *env,
                         struct task *task, struct dt_place_task *placed,
                         struct dt_error *err)
{
    struct dt_error why;
    dt_result_t rc = granted_gpus(env, &task->granted, &why);
    if (rc == DT_SUCCESS) {
        task->bound = task->granted.n && task->granted.n < dt->step_gpus;
        task->request = (struct dt_place_request){
            .policy = dt->option.policy,
            .count = dt->option.count,
            .ngpus = task->granted.n,
            .ntasks = task->bound ? 1 : task->local_size,
        };
        rc = dt_place(&task->request, task->bound ? 0 : task->local_rank,
                      placed, &why);
    }
    if (rc != DT_SUCCESS) {
        char option[32], which[32] = "";
        dt_option_print(&dt->option, option, sizeof(option));
        if (task->bound)
            snprintf(which, sizeof(which), "rank %u, ", (unsigned)task->rank);
        return dt_error_set(err, rc, "%s: %snode %s: %s", option, which,
                            task->node, why.text);
    }
    return DT_SUCCESS;
}

/* true if the variable now has the value, or one that is to be kept. */
static bool set(spank_t spank, const char *name, const char *value, bool keep)
{
    spank_err_t rc = spank_setenv(spank, name, value, !keep);
    return rc == ESPANK_SUCCESS || (keep && rc == ESPANK_ENV_EXISTS);
}

/* SLURM_JOB_ID is the same for all components of a heterogeneous job, the
 * items name the element of an array; both survive a requeue. */
static bool set_run_id(spank_t spank)
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

static bool set_visible(spank_t spank, const struct task *task,
                        const struct dt_place_task *placed)
{
    for (size_t i = 0; i < NVISIBLE; i++) {
        char list[DT_DEVICES_TEXT];
        struct dt_devices devices;
        if (spank_getenv(spank, visible[i], list, sizeof(list)) !=
                ESPANK_SUCCESS ||
            dt_devices_split(list, &devices, NULL) != DT_SUCCESS ||
            devices.n != task->granted.n)
            continue; /* not Slurm's list */
        dt_devices_join(&devices, placed->visible, placed->nvisible, list);
        if (!set(spank, visible[i], list, false))
            return false;
    }
    return true;
}

static dt_result_t set_environment(spank_t spank, const struct task *task,
                                   const struct dt_place_task *placed,
                                   struct dt_error *err)
{
    char own[DT_DEVICES_TEXT], version[16];
    dt_devices_join(&task->granted, placed->own, placed->nown, own);
    snprintf(version, sizeof(version), "%d", DT_ENV_VERSION_NOW);
    if (!set_visible(spank, task, placed) ||
        !set(spank, DT_ENV_GPUS, own, false) ||
        !set(spank, DT_ENV_VERSION, version, false) ||
        !set(spank, "CUDA_DEVICE_ORDER", "PCI_BUS_ID", true) ||
        !set_run_id(spank))
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "Slurm did not take the task's variables");
    return DT_SUCCESS;
}

static void print_row(const struct dt_table *table, const struct task *task,
                      uint32_t rank, uint32_t local_rank,
                      const struct dt_place_task *placed, FILE *out)
{
    char gpus[DT_DEVICES_TEXT], sees[DT_DEVICES_TEXT];
    dt_devices_join(&task->granted, placed->own, placed->nown, gpus);
    dt_devices_join(&task->granted, placed->visible, placed->nvisible, sees);
    struct dt_table_row row = {rank, local_rank, task->node, gpus, sees};
    dt_table_print_row(table, &row, out);
}

/* The rows of the node from its first task, so that they come in order; but
 * GPUs that Slurm bound to a task are known to that task only. */
static void print_rows(spank_t spank, char *const *env, const struct task *task,
                       FILE *out)
{
    struct dt_table table = dt_table_widths(env);
    struct dt_place_task placed;
    if (task->bound) {
        if (dt_place(&task->request, 0, &placed, NULL) == DT_SUCCESS)
            print_row(&table, task, task->rank, task->local_rank, &placed, out);
        return;
    }
    /* never ask for local_size itself: slurmstepd would crash */
    for (uint32_t i = 0; i < task->local_size; i++) {
        uint32_t rank;
        if (spank_get_item(spank, S_JOB_LOCAL_TO_GLOBAL_ID, i, &rank) ==
                ESPANK_SUCCESS &&
            dt_place(&task->request, i, &placed, NULL) == DT_SUCCESS)
            print_row(&table, task, rank + task->rank_offset, i, &placed, out);
    }
}

static void print_table(spank_t spank, char *const *env,
                        const struct task *task)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    print_rows(spank, env, task, out);
    if (fclose(out) == 0)
        for (size_t done = 0; done < size;) {
            ssize_t n = write(STDERR_FILENO, text + done, size - done);
            if (n <= 0)
                break;
            done += (size_t)n;
        }
    free(text);
}

static dt_result_t set_up(spank_t spank, const struct spank_dt *dt,
                          struct task *task, struct dt_error *err)
{
    char **env;
    struct dt_place_task placed;
    if (spank_get_item(spank, S_JOB_ENV, &env) != ESPANK_SUCCESS || !env)
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "Slurm does not show the task's environment");
    dt_result_t rc = identify(spank, env, task, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (*dt->bad_option.text)
        return dt_error_set(err, DT_ERR_INVALID_ARG, "%s", dt->bad_option.text);
    if (*dt->bad_argument.text)
        return dt_error_set(err, DT_ERR_INVALID_ARG, "node %s: %s", task->node,
                            dt->bad_argument.text);
    rc = place(dt, env, task, &placed, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (dt->option.verbose && (task->bound || task->local_rank == 0))
        print_table(spank, env, task);
    return set_environment(spank, task, &placed, err);
}

void dt_remote_task_init(spank_t spank, const struct spank_dt *dt)
{
    struct task task = {.local_rank = 0};
    struct dt_error err;
    if ((dt->option.type != DT_OPTION_GPUS && !*dt->bad_option.text) ||
        !dt_is_task_step(spank) || set_up(spank, dt, &task, &err) == DT_SUCCESS)
        return;
    if (task.bound || task.local_rank == 0) /* else its first task says it */
        slurm_error("dt: %s", err.text);
    /* What slurmstepd itself does when a task cannot be set up. To return an
     * error does the same, but only if the plugin is "required" in
     * plugstack.conf: else Slurm would start the task regardless. */
    _exit(1);
}
