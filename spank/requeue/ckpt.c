/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ckpt.c - --dt-ckpt and the other options about checkpoints: from srun to the
 * tasks' variables. */
#include "requeue/requeue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/jobfile.h"
#include "base/number.h"
#include "environment.h"
#include "helper.h"
#include "log.h"

enum { ASK_MS = 6000 };

static const struct {
    enum dt_option_id id;
    const char *name;
    bool directory;
} variables[] = {
    {DT_OPTION_CKPT, DT_ENV_CKPT, true},
    {DT_OPTION_CKPT_FLUSH, DT_ENV_CKPT_FLUSH, true},
    {DT_OPTION_CKPT_INTERVAL, DT_ENV_CKPT_INTERVAL, false},
    {DT_OPTION_CKPT_REDUNDANCY, DT_ENV_CKPT_REDUNDANCY, false},
    {DT_OPTION_CKPT_KEEP, DT_ENV_CKPT_KEEP, false},
};
enum { NVARIABLES = sizeof(variables) / sizeof(variables[0]) };

bool dt_ckpt_wanted(const struct spank_dt *dt)
{
    for (int id = DT_OPTION_CKPT; id <= DT_OPTION_REQUEUE; id++)
        if (dt->option[id].type == DT_OPTION_SET || *dt->bad_option[id].text)
            return true;
    return false;
}

/* ---- srun ---- */

static bool make_absolute(const char *directory, char path[DT_OPTION_TEXT])
{
    char here[DT_OPTION_TEXT] = "";
    if (*directory != '/' && !getcwd(here, sizeof(here) - 1))
        return false;
    return snprintf(path, DT_OPTION_TEXT, "%s%s%s", here, *here ? "/" : "",
                    directory) < DT_OPTION_TEXT;
}

static void set_directories(const struct spank_dt *dt)
{
    char path[DT_OPTION_TEXT];
    for (size_t i = 0; i < NVARIABLES; i++) {
        const struct dt_option *option = &dt->option[variables[i].id];
        if (!variables[i].directory || option->type != DT_OPTION_SET)
            continue;
        if (!make_absolute(option->text, path)) {
            slurm_error("dt: --%s=%.64s...: the path is longer than %d bytes, "
                        "or the working directory is gone",
                        dt_option_name[variables[i].id].option, option->text,
                        DT_OPTION_TEXT - 1);
            _exit(255);
        }
        setenv(variables[i].name, path, 1);
    }
}

/* When the job's time ends; false: squeue does not say. */
static bool ask_job_end(spank_t spank, char answer[32])
{
    char job[16];
    int64_t end;
    uint32_t id;
    if (spank_get_item(spank, S_JOB_ID, &id) != ESPANK_SUCCESS)
        return false;
    snprintf(job, sizeof(job), "%u", (unsigned)id);
    char *const argv[] = {(char *)DT_REQUEUE_PROGRAM, (char *)"_end", job,
                          NULL};
    const struct dt_helper how = {.argv = argv, .env = environ};
    if (dt_helper_run(&how, ASK_MS, -1, answer, 32) != 0)
        return false;
    answer[strcspn(answer, "\n")] = '\0';
    return dt_number_parse(answer, 1, INT64_MAX, &end);
}

/* Newer Slurms set this variable, and that of the start, in each job; in a
 * script they are as old as the script, and scontrol may have changed the time
 * since. A variable without the other is the user's. */
static void set_job_end(spank_t spank)
{
    const char *known = getenv("SLURM_JOB_END_TIME");
    char answer[32];
    bool slurms = getenv("SLURM_JOB_START_TIME") != NULL;
    unsetenv(DT_ENV_JOB_END);
    if ((slurms || !known || !*known) && ask_job_end(spank, answer))
        known = answer;
    if (known && *known)
        setenv(DT_ENV_JOB_END, known, 1);
}

/* srun in a batch script runs on the node of the record. */
static void add_to_record(const struct spank_dt *dt)
{
    const uint32_t *cap = dt->option[DT_OPTION_REQUEUE].cap;
    const char *job = getenv("SLURM_JOB_ID"), *node = getenv("SLURMD_NODENAME");
    char prefix[DT_JOBFILE_NAME];
    if (dt->option[DT_OPTION_REQUEUE].type != DT_OPTION_SET)
        return;
    if (!dt->in_batch || !job || !node) {
        if (dt->typed[DT_OPTION_REQUEUE])
            dt_log_note("--dt-requeue does nothing here: only a job of sbatch "
                        "can be requeued");
        return;
    }
    dt_jobfile_prefix(prefix, DT_JOBFILE_RECORD, job, node,
                      getenv("SLURM_CLUSTER_NAME"));
    int fd = dt_jobfile_open_record(prefix, true);
    if (fd < 0 || dprintf(fd, "option %u,%u,%u,%u,%u\nbegin\n", cap[DT_CAP_MAX],
                          cap[DT_CAP_PREEMPT], cap[DT_CAP_NODEFAIL],
                          cap[DT_CAP_TIMEOUT], cap[DT_CAP_ERROR]) < 0)
        dt_log_note("%s... cannot be written (%s): this step's exit codes do "
                    "not requeue the job, its script's do",
                    prefix, strerror(errno));
    if (fd >= 0)
        close(fd);
}

void dt_ckpt_local(spank_t spank, const struct spank_dt *dt)
{
    if (!dt_ckpt_wanted(dt))
        return;
    set_directories(dt);
    set_job_end(spank);
    add_to_record(dt);
}

/* ---- the tasks ---- */

/* srun has set the absolute path, unless --export keeps variables back. */
static bool set_directory(spank_t spank, const char *name,
                          const char *directory)
{
    char path[DT_OPTION_TEXT];
    if (*directory != '/' &&
        spank_getenv(spank, name, path, sizeof(path)) == ESPANK_SUCCESS &&
        *path == '/')
        return true;
    return make_absolute(directory, path) &&
           spank_setenv(spank, name, path, 1) == ESPANK_SUCCESS;
}

/* Experiment trackers record a requeued job as one run. */
static bool set_trackers(spank_t spank)
{
    char id[256], other[8];
    if (spank_getenv(spank, DT_ENV_RUN_ID, id, sizeof(id)) != ESPANK_SUCCESS)
        return true;
    if (spank_getenv(spank, "WANDB_RUN_ID", other, sizeof(other)) ==
            ESPANK_ENV_NOEXIST &&
        (!dt_variable_offer(spank, "WANDB_RUN_ID", id) ||
         !dt_variable_offer(spank, "WANDB_RESUME", "allow")))
        return false;
    return dt_variable_offer(spank, "MLFLOW_RUN_NAME", id);
}

bool dt_ckpt_task_init(spank_t spank, const struct spank_dt *dt)
{
    char end[32];
    if (*dt->notice &&
        spank_setenv(spank, DT_ENV_NOTICE, dt->notice, 1) != ESPANK_SUCCESS)
        return false;
    if (!dt_ckpt_wanted(dt))
        return true;
    for (size_t i = 0; i < NVARIABLES; i++) {
        const struct dt_option *option = &dt->option[variables[i].id];
        if (option->type != DT_OPTION_SET)
            continue;
        if (variables[i].directory
                ? !set_directory(spank, variables[i].name, option->text)
                : spank_setenv(spank, variables[i].name, option->text, 1) !=
                      ESPANK_SUCCESS)
            return false;
    }
    if (spank_getenv(spank, "SLURM_JOB_END_TIME", end, sizeof(end)) ==
            ESPANK_SUCCESS &&
        *end && !dt_variable_offer(spank, DT_ENV_JOB_END, end))
        return false;
    return dt_variable_offer_run_id(spank) &&
           (dt->option[DT_OPTION_REQUEUE].type != DT_OPTION_SET ||
            set_trackers(spank));
}
