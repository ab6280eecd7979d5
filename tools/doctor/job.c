/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* job.c - rules: a job that does not start, is not requeued, or whose GPUs do
 * not reach each other. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"
#include "facts.h"

/* NULL: Slurm does not show it, which main() has reported. */
static struct job *get_job(struct doctor *doctor)
{
    char why[WHY];
    struct job *job = (void *)keep(doctor, malloc(sizeof(*job)));
    return job && slurm_job(doctor->job, deadline_in(COMMAND_SECONDS), job, why)
               ? job
               : NULL;
}

void look_held(struct doctor *doctor)
{
    static const struct {
        const char *reason, *means, *mend;
    } held[] = {
        {"JobHeldUser", "it waits until its user releases it",
         "scontrol release %s"},
        {"JobHeldAdmin", "it waits until an administrator releases it",
         "as an administrator: scontrol release %s"},
        {"JobHoldMaxRequeue",
         "Slurm has requeued it MaxBatchRequeue times, and holds it",
         "find out why it fails, then: scontrol release %s"},
        {"launch failed requeued held",
         "a node could not start it, and Slurm holds it",
         "look into slurmd's log on that node, then: scontrol release %s"},
    };
    const struct job *job = get_job(doctor);
    char reason[sizeof(job->why)];
    if (!job)
        return;
    snprintf(reason, sizeof(reason), "%s", job->why);
    for (char *at = reason; (at = strchr(at, '_')) != NULL;)
        *at = ' '; /* releases differ in this */
    for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++)
        if (!strcmp(reason, held[i].reason)) {
            char mend[256];
            size_t length = strlen(held[i].mend) - 2; /* its "%s" is last */
            snprintf(mend, sizeof(mend), "%.*s%s", (int)length, held[i].mend,
                     job->id);
            found(doctor,
                  text(doctor, "job %s: %s, Reason=%s", job->id, job->state,
                       job->why),
                  held[i].means, text(doctor, "%s", mend));
        }
}

static bool has_ended(const struct job *job)
{
    static const char *const live[] = {"PENDING",  "CONFIGURING",  "COMPLETING",
                                       "REQUEUED", "REQUEUE_HOLD", "STAGE_OUT"};
    for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); i++)
        if (!strcmp(job->state, live[i]))
            return false;
    return !job->running;
}

void look_job_requeue(struct doctor *doctor)
{
    const struct job *job = get_job(doctor);
    if (!job || job->requeue || !job->batch || has_ended(job))
        return;
    found(doctor, text(doctor, "job %s: Requeue=0", job->id),
          "if it is preempted or loses a node, it ends for good",
          text(doctor,
               "scontrol update JobId=%s Requeue=1; for the next one: sbatch "
               "--requeue",
               job->id));
}

/* ---- GPUs per task ---- */

/* Does a task see only the devices of its own? */
static bool constrains_devices(struct doctor *doctor)
{
    const char *plugins = fact_setting(doctor, "TaskPlugin");
    const char *value = fact_setting(doctor, "ConstrainDevices");
    if (!plugins || !strstr(plugins, "cgroup"))
        return false;
    if (value)
        return !strcasecmp(value, "yes");
    const char *conf = fact_setting(doctor, "SLURM_CONF");
    const char *slash = conf ? strrchr(conf, '/') : NULL;
    const char *file = slash ? fact_file(doctor,
                                         text(doctor, "%.*s/cgroup.conf",
                                              (int)(slash - conf), conf),
                                         NULL)
                             : NULL;
    for (const char *at = file; at && *at; at += strspn(at, "\n")) {
        at += strspn(at, " \t");
        if (!strncasecmp(at, "ConstrainDevices=yes", 20))
            return true;
        at += strcspn(at, "\n");
    }
    return false;
}

void look_gpus_per_task(struct doctor *doctor)
{
    const char *argv[] = {
        "squeue",    "--noheader", "--all",
        "--states",  "all",        "--jobs",
        doctor->job, "--Format",   "NumTasks:12,NumNodes:12,tres-per-task:200",
        NULL};
    const char *out;
    bool late;
    uint64_t tasks, nodes;
    if (!constrains_devices(doctor))
        return;
    if (fact_run(doctor, argv, false, &out, &late) != 0 || strlen(out) < 24) {
        unseen(doctor, "the GPUs per task of job %s: squeue failed",
               doctor->job);
        return;
    }
    const char *at = out, *of_nodes = out + 12;
    const char *tres =
        text(doctor, "%.*s", (int)strcspn(out + 24, " \n"), out + 24);
    if (!strstr(tres, "gpu") || !dt_number_scan(&at, 10, UINT32_MAX, &tasks) ||
        !dt_number_scan(&of_nodes, 10, UINT32_MAX, &nodes) || tasks <= nodes)
        return;
    found(
        doctor,
        text(doctor,
             "job %s: %llu tasks on %llu nodes with --gpus-per-task (%s), and "
             "ConstrainDevices=yes",
             doctor->job, (unsigned long long)tasks, (unsigned long long)nodes,
             tres),
        "each task may open its own GPUs only: NCCL and CUDA IPC have no "
        "peer-to-peer between the tasks of a node",
        "sbatch --gpus-per-node=N in place of --gpus-per-task, and srun "
        "--dt-gpus, which gives each task its GPUs");
}
