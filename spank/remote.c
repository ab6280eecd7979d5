/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* remote.c - the plugin in slurmstepd and in the tasks it starts. */
#include "spank_dt.h"

#include <stdlib.h>
#include <unistd.h>

#include <slurm/slurm.h>

#include "base/userdir.h"
#include "elastic.h"
#include "framework/framework.h"
#include "log.h"
#include "placement/discover.h"
#include "placement/task.h"
#include "requeue/requeue.h"
#include "server/server.h"

bool dt_is_task_step(spank_t spank)
{
    uint32_t step;
    return spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS &&
           step <= SLURM_MAX_NORMAL_STEP_ID;
}

/* Slurm calls this up to twice with the same value. It is validated here, too:
 * by a variable of Slurm's, a user can pass a value that srun has not seen. */
void dt_remote_option(struct spank_dt *dt, enum dt_option_id id,
                      const char *text)
{
    const char *name = dt_option_name[id].option;
    struct dt_error *bad = &dt->bad_option[id];
    struct dt_option option;
    char source[64];
    snprintf(source, sizeof(source), "--%s", name);
    if (dt_option_parse(id, text, source, &option, bad) != DT_SUCCESS)
        return;
    if (option.type == DT_OPTION_HELP) {
        dt_error_set(bad, DT_ERR_INVALID_ARG,
                     "--%s=help is for the command line only", name);
        return;
    }
    bad->text[0] = '\0';
    dt->option[id] = option;
}

/* true if the user has set this variable of Slurm's, or the option for it. Only
 * before the tasks start: Slurm itself sets it in each task. */
static bool is_set(spank_t spank, const char *name)
{
    char value[16]; /* the first bytes are enough */
    spank_err_t rc = spank_getenv(spank, name, value, sizeof(value));
    return rc == ESPANK_NOSPACE || (rc == ESPANK_SUCCESS && *value);
}

bool dt_remote_user(spank_t spank, struct dt_helper_user *user)
{
    gid_t *groups = NULL;
    int ngroups = 0;
    if (spank_get_item(spank, S_JOB_UID, &user->uid) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_GID, &user->gid) != ESPANK_SUCCESS)
        return false;
    if (spank_get_item(spank, S_JOB_SUPPLEMENTARY_GIDS, &groups, &ngroups) ==
            ESPANK_SUCCESS &&
        groups && ngroups > 0) {
        user->groups = groups;
        user->ngroups = (size_t)ngroups;
    }
    return true;
}

/* Made by root, and for a batch script in any case: a step in it may have the
 * options. Without root, the files of the job are in /dev/shm. */
static void make_directories(spank_t spank, const struct spank_dt *dt)
{
    struct dt_helper_user user = {.groups = NULL};
    struct dt_error why;
    uint32_t step = 0;
    bool wanted = dt_wants_pmix(dt) || dt_ckpt_wanted(dt);
    spank_get_item(spank, S_JOB_STEPID, &step);
    if (step != SLURM_BATCH_SCRIPT && !(wanted && dt_is_task_step(spank)))
        return;
    if (geteuid() != 0 || !dt_remote_user(spank, &user))
        return;
    if (dt_userdir_make(DT_USERDIR_RUN, user.uid, user.gid, &why) != DT_SUCCESS)
        dt_log_note("%s", why.text);
    if (wanted &&
        dt_userdir_make(DT_USERDIR_SHM, user.uid, user.gid, &why) != DT_SUCCESS)
        dt_log_note("%s", why.text);
}

/* slurmstepd is not yet in the cgroup of the step, which would hide CPUs and
 * GPUs from dt-topo. */
void dt_remote_init_post_opt(spank_t spank, struct spank_dt *dt)
{
    const char *node = getenv("SLURMD_NODENAME"); /* slurmd's, not the job's */
    struct dt_discover how = {
        .program = dt->helper ? dt->helper : DT_TOPO_PROGRAM,
        .node = node ? node : "localhost",
        .conf = dt->conf,
        .limit_ms = DT_DISCOVER_LIMIT_MS,
    };
    make_directories(spank, dt);
    if (!dt_wants_gpus(dt) || !dt_is_task_step(spank) || *dt->bad_argument.text)
        return;
    dt->binds_cpus = is_set(spank, "SLURM_CPU_BIND_TYPE");
    dt->binds_memory = is_set(spank, "SLURM_MEM_BIND_TYPE");
    if (dt_remote_user(spank, &how.user))
        dt_discover(&how, &dt->topology, &dt->topology_size, &dt->remark);
    else
        dt_error_set(&dt->remark, DT_ERR_SYSTEM,
                     "Slurm does not report the user of this job");
}

static void count_gpus(spank_t spank, struct spank_dt *dt)
{
    char **env;
    struct dt_devices devices;
    if (spank_get_item(spank, S_JOB_ENV, &env) == ESPANK_SUCCESS && env &&
        dt_task_slurms_gpus(env, &devices, NULL) == DT_SUCCESS)
        dt->step_gpus = devices.n;
}

/* slurmstepd is in the cgroup of the step now, and so is the PMIx server. */
void dt_remote_user_init(spank_t spank, struct spank_dt *dt)
{
    struct dt_helper_user user = {.groups = NULL};
    dt_requeue_user_init(spank, dt);
    if (!dt_wants_pmix(dt) || !dt_is_task_step(spank))
        return;
    count_gpus(spank, dt);
    if (*dt->bad_argument.text || *dt->bad_option[DT_OPTION_PMIX].text ||
        !dt_server_wanted(spank, dt) ||
        dt_elastic_check(spank, dt, NULL) != DT_SUCCESS)
        return;
    if (!dt_remote_user(spank, &user))
        dt_error_set(&dt->no_server, DT_ERR_SYSTEM,
                     "Slurm does not report the user of this job");
    else if (dt_server_start(spank, dt, &user, &dt->no_server) == DT_SUCCESS)
        dt->no_server.text[0] = '\0';
}

void dt_remote_task_post_fork(spank_t spank, struct spank_dt *dt)
{
    uint32_t rank;
    pid_t pid;
    dt_requeue_task_post_fork(spank, dt);
    if (dt->daemon.fd &&
        spank_get_item(spank, S_TASK_GLOBAL_ID, &rank) == ESPANK_SUCCESS &&
        spank_get_item(spank, S_TASK_PID, &pid) == ESPANK_SUCCESS)
        dt_daemon_notify_started(&dt->daemon, rank, pid);
}

/* With the last task of the node the server is shut down, so that the other
 * nodes receive its shutdown message: Slurm soon kills what it finds of the
 * step, and then they would count this node as lost. */
void dt_remote_task_exit(spank_t spank, struct spank_dt *dt)
{
    uint32_t rank;
    int status;
    bool last = false;
    dt_requeue_task_exit(spank, dt);
    if (dt->daemon.fd &&
        spank_get_item(spank, S_TASK_GLOBAL_ID, &rank) == ESPANK_SUCCESS &&
        spank_get_item(spank, S_TASK_EXIT_STATUS, &status) == ESPANK_SUCCESS)
        last = dt_daemon_notify_ended(&dt->daemon, rank, status);
    if (last && dt_framework_serves(dt))
        dt_daemon_linger(&dt->daemon, dt_log_error);
    if (last)
        dt_daemon_end(&dt->daemon, dt_log_error);
    else
        dt_daemon_receive(&dt->daemon, dt_log_error);
}

void dt_remote_exit(struct spank_dt *dt)
{
    dt_daemon_end(&dt->daemon, dt_log_error);
    dt_requeue_exit(dt);
}

/* End the task as slurmstepd does when it cannot set one up. An error that is
 * returned has this effect only if the plugin is "required" in plugstack.conf;
 * else Slurm starts the task. */
static void refuse(const char *why, bool prints)
{
    if (prints)
        dt_log_error(why);
    _exit(1);
}

/* srun has validated the options; a value that is wrong here did not pass srun.
 */
static void init_ckpt(spank_t spank, const struct spank_dt *dt)
{
    uint32_t local_rank = 0;
    spank_get_item(spank, S_TASK_ID, &local_rank);
    for (int id = DT_OPTION_CKPT; id <= DT_OPTION_REQUEUE; id++)
        if (*dt->bad_option[id].text)
            refuse(dt->bad_option[id].text, local_rank == 0);
    if (!dt_ckpt_task_init(spank, dt))
        refuse("Slurm did not take the task's variables", local_rank == 0);
}

void dt_remote_task_init(spank_t spank, const struct spank_dt *dt)
{
    struct dt_task task = {.local_rank = 0};
    struct dt_error err;
    dt_requeue_batch_init(spank, dt);
    if (!dt_is_task_step(spank))
        return;
    init_ckpt(spank, dt);
    dt_framework_forget(spank);
    if (!dt_wants_pmix(dt) && !*dt->bad_option[DT_OPTION_GPUS].text &&
        !*dt->bad_option[DT_OPTION_PMIX].text &&
        !*dt->bad_option[DT_OPTION_ELASTIC].text &&
        !*dt->bad_option[DT_OPTION_RENDEZVOUS].text)
        return;
    dt_result_t rc = dt_task_init(spank, dt, &task, &err);
    if (rc == DT_SUCCESS && task.placed)
        dt_task_report(spank, dt, &task);
    if (rc == DT_SUCCESS)
        rc = dt_task_apply(spank, dt, &task, &err);
    if (rc == DT_SUCCESS)
        rc = dt_framework_task_init(spank, dt, &err);
    if (rc != DT_SUCCESS) /* once per node, unless it is about this task only */
        refuse(err.text, *err.text && (task.bound || task.local_rank == 0));
    dt_task_fini(&task);
}
