/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* requeue.c - requeue at the end of a batch script, the requeue record of its
 * steps, and the notice. */
#include "requeue/requeue.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slurm/slurm.h>

#include "base/env.h"
#include "base/exit.h"
#include "base/jobfile.h"
#include "base/number.h"
#include "environment.h"
#include "helper.h"
#include "log.h"

/* Somewhat more than dt-requeue itself waits for Slurm. */
enum { START_MS = 70000, END_MS = 310000 };
/* Since 24.05 Slurm requeues each batch job that ends within its grace time. */
static const bool grace_requeues =
    SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0);

static bool is_batch(spank_t spank)
{
    uint32_t step;
    return spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS &&
           step == SLURM_BATCH_SCRIPT;
}

/* slurmd's name of the node, not the one in the job's environment. */
static const char *node_name(void)
{
    const char *node = getenv("SLURMD_NODENAME");
    return node ? node : "localhost";
}

/* The name of the cluster is a label of files that belong to the user, as whom
 * they are made and found; root needs none of it. */
static bool name_files(spank_t spank, const char *kind,
                       char prefix[DT_JOBFILE_NAME])
{
    char cluster[64] = "", job[16];
    uint32_t id;
    if (spank_get_item(spank, S_JOB_ID, &id) != ESPANK_SUCCESS)
        return false;
    snprintf(job, sizeof(job), "%u", (unsigned)id);
    dt_variable_get(spank, "SLURM_CLUSTER_NAME", cluster, sizeof(cluster));
    dt_jobfile_prefix(prefix, kind, job, node_name(), cluster);
    return true;
}

/* ---- dt-requeue ---- */

enum { ENVIRONMENT = 4, ROOM = 8192 };

struct environment {
    char path[ROOM], conf[ROOM];
    char *list[ENVIRONMENT + 1];
};

/* dt-requeue runs as the user, and finds Slurm's commands in the user's PATH.
 */
static void make_environment(spank_t spank, struct environment *env)
{
    static const char standard[] = "/usr/bin:/bin:/usr/local/bin";
    char value[ROOM - 256];
    size_t n = 0;
    bool known = dt_variable_get(spank, "PATH", value, sizeof(value));
    snprintf(env->path, sizeof(env->path), "PATH=%s%s%s", known ? value : "",
             known ? ":" : "", standard);
    env->list[n++] = env->path;
    env->list[n++] = (char *)"LC_ALL=C";
    env->list[n++] = (char *)"HOME=/";
    const char *own = getenv("SLURM_CONF");
    if (own || dt_variable_get(spank, "SLURM_CONF", value, sizeof(value))) {
        snprintf(env->conf, sizeof(env->conf), "SLURM_CONF=%.4000s",
                 own ? own : value);
        env->list[n++] = env->conf;
    }
    env->list[n] = NULL;
}

/* As scontrol takes it: the number alone may mean all elements of an array. */
static void job_name(spank_t spank, char name[64])
{
    uint32_t id = 0, array, element;
    spank_get_item(spank, S_JOB_ID, &id);
    snprintf(name, 64, "%u", (unsigned)id);
    if (spank_get_item(spank, S_JOB_ARRAY_ID, &array) == ESPANK_SUCCESS &&
        spank_get_item(spank, S_JOB_ARRAY_TASK_ID, &element) ==
            ESPANK_SUCCESS &&
        array && element != NO_VAL)
        snprintf(name, 64, "%u_%u", (unsigned)array, (unsigned)element);
}

static void print_caps(const struct dt_option *option, char text[64])
{
    const uint32_t *cap = option->cap;
    if (option->type == DT_OPTION_SET)
        snprintf(text, 64, "%u,%u,%u,%u,%u", (unsigned)cap[DT_CAP_MAX],
                 (unsigned)cap[DT_CAP_PREEMPT], (unsigned)cap[DT_CAP_NODEFAIL],
                 (unsigned)cap[DT_CAP_TIMEOUT], (unsigned)cap[DT_CAP_ERROR]);
    else
        snprintf(text, 64, "-");
}

/* How often it has been requeued before. */
static void print_restarts(spank_t spank, char text[16])
{
    char value[16] = "";
    int64_t restarts = 0;
    dt_variable_get(spank, "SLURM_RESTART_COUNT", value, sizeof(value));
    dt_number_parse(value, 0, UINT32_MAX, &restarts);
    snprintf(text, 16, "%u", (unsigned)restarts);
}

/* ---- the batch script ---- */

void dt_requeue_batch_init(spank_t spank, const struct spank_dt *dt)
{
    char job[64], restarts[16], caps[64];
    struct environment env;
    char *const argv[] = {(char *)DT_REQUEUE_PROGRAM,
                          (char *)"_started",
                          job,
                          restarts,
                          caps,
                          NULL};
    const struct dt_option *option = &dt->option[DT_OPTION_REQUEUE];
    if (!is_batch(spank))
        return;
    if (*dt->bad_option[DT_OPTION_REQUEUE].text)
        fprintf(stderr, "dt: note: %s\n",
                dt->bad_option[DT_OPTION_REQUEUE].text);
    if (option->type != DT_OPTION_SET)
        return;
    job_name(spank, job);
    print_restarts(spank, restarts);
    print_caps(option, caps);
    make_environment(spank, &env);
    const struct dt_helper how = {.argv = argv, .env = env.list, .holds = true};
    if (dt_helper_run(&how, START_MS, STDERR_FILENO, NULL, 0) ==
        DT_EXIT_NO_RESTART)
        _exit(DT_EXIT_NO_RESTART);
}

/* Root looks for any record of the job, whatever the job's environment says of
 * the cluster. */
static bool has_record(const struct dt_helper_user *user, uint32_t job)
{
    char begin[32];
    snprintf(begin, sizeof(begin), DT_JOBFILE_RECORD ".%u.", (unsigned)job);
    return dt_jobfile_exists(user->uid, begin);
}

static void batch_exit(spank_t spank, const struct spank_dt *dt, int status)
{
    char job[64], restarts[16], caps[64], text[16], record[DT_JOBFILE_NAME];
    char mode[4] = "";
    uint32_t id = 0;
    struct environment env;
    struct dt_helper_user user = {.groups = NULL};
    const struct dt_option *option = &dt->option[DT_OPTION_REQUEUE];
    if (spank_get_item(spank, S_JOB_ID, &id) != ESPANK_SUCCESS ||
        !dt_remote_user(spank, &user) ||
        (option->type != DT_OPTION_SET && !has_record(&user, id)) ||
        !name_files(spank, DT_JOBFILE_RECORD, record))
        return;
    job_name(spank, job);
    print_restarts(spank, restarts);
    print_caps(option, caps);
    snprintf(text, sizeof(text), "%d", status);
    dt_variable_get(spank, "SLURM_OPEN_MODE", mode, sizeof(mode));
    make_environment(spank, &env);
    char *const argv[] = {(char *)DT_REQUEUE_PROGRAM,
                          (char *)"_ended",
                          job,
                          text,
                          restarts,
                          caps,
                          record,
                          (char *)(*mode == 'a' ? "1" : "0"),
                          (char *)(grace_requeues ? "1" : "0"),
                          NULL};
    const struct dt_helper how = {
        .argv = argv, .env = env.list, .holds = true, .user = user};
    /* standard error is the job's log */
    int rc = dt_helper_run(&how, END_MS, STDERR_FILENO, NULL, 0);
    if (rc != 0 && rc != 1)
        fprintf(stderr,
                "dt: note: dt-requeue failed: if the job is not in the queue "
                "now, `scontrol requeue %s` requeues it\n",
                job);
}

/* ---- the notice ---- */

static void make_notice(spank_t spank, struct spank_dt *dt)
{
    uint32_t step = 0;
    char prefix[DT_JOBFILE_NAME];
    struct dt_error why;
    if (!name_files(spank, DT_JOBFILE_NOTICE, prefix) ||
        spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS)
        return;
    if (dt_jobfile_make_notice(prefix, step, dt->notice, &why) != DT_SUCCESS) {
        dt->notice[0] = '\0';
        dt_log_note("the step has no notice file: %s", why.text);
    }
}

/* ---- the process that watches for SIGTERM and the end of the job's time ----
 */

/* It gets the variables by which the tasks, too, learn when to leave. */
static dt_result_t start_watch(spank_t spank, struct spank_dt *dt, pid_t leader,
                               struct dt_error *err)
{
    char number[16], notice[DT_JOBFILE_PATH + 16], end[64], value[32] = "";
    char *const argv[] = {(char *)DT_REQUEUE_PROGRAM, (char *)"_watch", number,
                          NULL};
    char *const env[] = {notice, end, (char *)"LC_ALL=C", NULL};
    struct dt_helper how = {.argv = argv, .env = env, .holds = true};
    const struct dt_option *option = &dt->option[DT_OPTION_NOTICE_SIGNAL];
    snprintf(number, sizeof(number), "%d",
             option->type == DT_OPTION_SET ? option->policy : 0);
    snprintf(notice, sizeof(notice), DT_ENV_NOTICE "=%s", dt->notice);
    if (!dt_variable_get(spank, DT_ENV_JOB_END, value, sizeof(value)))
        dt_variable_get(spank, "SLURM_JOB_END_TIME", value, sizeof(value));
    snprintf(end, sizeof(end), DT_ENV_JOB_END "=%s", value);
    if (dt_remote_user(spank, &how.user))
        return dt_watch_start(&dt->watch, &how, leader, err);
    dt->watch.tried = true;
    return dt_error_set(err, DT_ERR_SYSTEM,
                        "Slurm does not report the user of this job");
}

void dt_requeue_task_post_fork(spank_t spank, struct spank_dt *dt)
{
    struct dt_error why;
    dt_result_t rc = DT_SUCCESS;
    pid_t pid;
    if (!dt_is_task_step(spank) ||
        (!*dt->notice &&
         dt->option[DT_OPTION_NOTICE_SIGNAL].type != DT_OPTION_SET) ||
        spank_get_item(spank, S_TASK_PID, &pid) != ESPANK_SUCCESS)
        return;
    if (!dt->watch.tried)
        rc = start_watch(spank, dt, pid, &why);
    if (rc == DT_SUCCESS)
        rc = dt_watch_add(&dt->watch, pid, &why);
    if (rc != DT_SUCCESS)
        dt_log_note("the step gets no notice but from dt-requeue: %s",
                    why.text);
}

/* ---- steps ---- */

void dt_requeue_user_init(spank_t spank, struct spank_dt *dt)
{
    char prefix[DT_JOBFILE_NAME];
    if (!dt_is_task_step(spank) ||
        (!dt_ckpt_wanted(dt) &&
         dt->option[DT_OPTION_GPUS].type != DT_OPTION_SET))
        return;
    make_notice(spank, dt);
    if (dt->option[DT_OPTION_REQUEUE].type == DT_OPTION_SET &&
        name_files(spank, DT_JOBFILE_RECORD, prefix)) {
        int fd = dt_jobfile_open_record(prefix, false);
        dt->record = fd < 0 ? 0 : fd; /* 0 is taken */
    }
}

/* Add how a task ended to the requeue record. */
static void add_end(const struct spank_dt *dt, int status)
{
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    if (dt->record <= 0)
        return;
    if ((code == DT_EXIT_REQUEUE || code == DT_EXIT_NO_RESTART) &&
        dprintf(dt->record, "%d\n", code) < 0)
        dt_log_note("a task's exit code %d does not count: %s", code,
                    strerror(errno));
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM)
        dprintf(dt->record, "terminated\n");
}

void dt_requeue_task_exit(spank_t spank, struct spank_dt *dt)
{
    int status;
    if (spank_get_item(spank, S_TASK_EXIT_STATUS, &status) != ESPANK_SUCCESS)
        return;
    if (is_batch(spank)) {
        batch_exit(spank, dt, status);
        return;
    }
    pid_t pid;
    if (spank_get_item(spank, S_TASK_PID, &pid) == ESPANK_SUCCESS)
        dt_watch_ended(&dt->watch, pid);
    add_end(dt, status);
}

void dt_requeue_exit(struct spank_dt *dt)
{
    if (dt->record > 0)
        close(dt->record);
    dt->record = 0;
    dt_watch_end(&dt->watch);
    if (*dt->notice)
        unlink(dt->notice);
    dt->notice[0] = '\0';
}
