/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* crash.c - the process is killed, the power goes, or a call fails, at
 * every single system call of a save that changes something: what can be
 * loaded then is the old checkpoint or the new one, whole. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/job.h"
#include "../support/disk-model.h"
#include "../support/faulty-calls.h"
#include "../../tap.h"

/* What was there before, and what is saved. */
static const struct plan {
    const char *what;
    int64_t before; /* the step, -1 for none */
    int64_t step;
    int keep, size;
    bool no_exchange;
} plans[] = {
    {"the first save", -1, 20, 1, 2, false},
    {"a newer step", 10, 20, 0, 2, false},
    {"a newer step that replaces", 10, 20, 1, 1, false},
    {"the same step again", 20, 20, 1, 2, false},
    {"the same step, without exchange", 20, 20, 1, 2, true},
};

#define OLD_SALT 1
#define NEW_SALT 2

static char *prepare(const struct plan *plan)
{
    char *dir = ckpt_temp_dir();
    struct ckpt_job job = {.dir = dir, .step = plan->before, .salt = OLD_SALT};
    if (plan->before >= 0 && ckpt_save(&job, plan->size) != DT_SUCCESS)
        abort();
    return dir;
}

/* Save with these faults, in this process; to be ended by faults_end(). */
static int save(const struct plan *plan, const char *dir, struct faults faults)
{
    struct ckpt_job job = {
        .dir = dir, .keep = plan->keep, .step = plan->step, .salt = NEW_SALT};
    faults.no_exchange = plan->no_exchange;
    faults_begin(&faults);
    return ckpt_save(&job, plan->size);
}

/* Which checkpoint loads: OLD_SALT, NEW_SALT, 0 for none, -1 if it is neither
 * or anything else is wrong. */
static int which(const struct plan *plan, const char *dir)
{
    struct ckpt_job job = {.dir = dir, .salt = NEW_SALT};
    ckpt_stderr_begin();
    int rc = ckpt_load(&job, plan->size);
    const char *said = ckpt_stderr_end();
    if (*said) {
        diag("load says: %s", said);
        return -1;
    }
    if (rc == DT_ERR_NOT_FOUND)
        return 0;
    if (rc == DT_SUCCESS && job.got[0] == plan->step && job.right[0])
        return NEW_SALT;
    job.salt = OLD_SALT;
    rc = ckpt_load(&job, plan->size);
    if (rc == DT_SUCCESS && job.got[0] == plan->before && job.right[0])
        return OLD_SALT;
    diag("load: result %d, step %lld: %s", rc, (long long)job.got[0],
         job.text[0]);
    return -1;
}

/* Is that what a save that did not end may leave? */
static bool may_be(const struct plan *plan, int now)
{
    return now == NEW_SALT || now == (plan->before < 0 ? 0 : OLD_SALT);
}

/* Take the newest checkpoint away. */
static bool remove_newest(const char *dir, int64_t step)
{
    char *path = NULL;
    if (asprintf(&path, "%s/step-%012lld", dir, (long long)step) < 0)
        abort();
    bool there = access(path, F_OK) == 0;
    ckpt_remove_tree(path);
    return there;
}

/* Training goes on as if nothing had been, and what it finds is whole. */
static bool goes_on(const struct plan *plan, const char *dir)
{
    struct ckpt_job job = {.dir = dir, .step = 21, .salt = NEW_SALT};
    int rc = ckpt_save(&job, plan->size);
    if (rc != DT_SUCCESS || strchr(ckpt_list(dir), '.')) {
        diag("next save: %s; left: %s", job.text[0], ckpt_list(dir));
        return false;
    }
    ckpt_stderr_begin();
    while ((rc = ckpt_load(&job, plan->size)) == DT_SUCCESS)
        if (!remove_newest(dir, job.got[0]))
            break;
    const char *said = ckpt_stderr_end();
    if (rc == DT_ERR_NOT_FOUND && !*said)
        return true;
    diag("older ones: result %d, %s%s", rc, job.text[0], said);
    return false;
}

/* ---- power cuts ---- */

static void test_power(const struct plan *plan)
{
    char *dir = prepare(plan);
    int states = 0, wrong = 0, saw_new = 0;
    disk_begin((const char *const[]){dir}, 1);
    int rc = save(plan, dir, (struct faults){0});
    faults_end();
    int events = disk_end();
    for (int at = 0; at <= events && wrong < 5; at++) {
        int n = disk_states(at);
        for (int i = 0; i < n && wrong < 5; i++) {
            disk_restore(at, i, 0);
            int now = which(plan, dir);
            bool good = at < events ? may_be(plan, now) : now == NEW_SALT;
            if (!good || !goes_on(plan, dir)) {
                diag("%s: loads %d", disk_describe(at, i), now);
                wrong++;
            }
            saw_new += now == NEW_SALT;
            states++;
        }
    }
    ok(rc == DT_SUCCESS && wrong == 0 && events > 15,
       "%s: the power goes before any of %d events: %d states (%d new)",
       plan->what, events, states, saw_new);
    ckpt_remove_tree(dir);
}

/* ---- SIGKILL ---- */

/* Kill it before call number at. False if the save was over by then. */
static bool kill_at(const struct plan *plan, int at, int *wrong, int *saw_new)
{
    char *dir = prepare(plan);
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(120);
        _exit(save(plan, dir, (struct faults){.kinds = FAULTS_ANY, .at = at}) !=
              DT_SUCCESS);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        abort();
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    int now = which(plan, dir);
    bool good = killed ? may_be(plan, now) : status == 0 && now == NEW_SALT;
    if (!good || !goes_on(plan, dir)) {
        diag("killed before call %d: status %#x, loads %d", at, status, now);
        (*wrong)++;
    }
    *saw_new += killed && now == NEW_SALT;
    ckpt_remove_tree(dir);
    return killed;
}

static void test_kill(const struct plan *plan)
{
    int at = 1, wrong = 0, saw_new = 0;
    while (wrong < 5 && kill_at(plan, at, &wrong, &saw_new))
        at++;
    ok(wrong == 0 && at > 15, "%s: killed before any of %d calls (%d new)",
       plan->what, at - 1, saw_new);
}

/* ---- failing calls ---- */

static const struct failure {
    unsigned kinds;
    int error;
    bool persist;
} failures[] = {
    {FAULTS_ANY, EIO, false},      {FAULTS_WRITE | FAULTS_NAME, ENOSPC, true},
    {FAULTS_WRITE, EDQUOT, false}, {FAULTS_SYNC, EIO, true},
    {FAULTS_ANY, ESTALE, true},
};

static bool fail(const struct plan *plan, const struct failure *failure, int at,
                 int *wrong)
{
    char *dir = prepare(plan), before[256];
    struct faults faults = {.kinds = failure->kinds,
                            .at = at,
                            .error = failure->error,
                            .persist = failure->persist};
    snprintf(before, sizeof(before), "%s", ckpt_list(dir));
    ckpt_stderr_begin();
    int rc = save(plan, dir, faults), calls = faults_end();
    ckpt_stderr_end();
    int now = which(plan, dir);
    bool good;
    if (rc == DT_SUCCESS)
        good = now == NEW_SALT; /* it was only housekeeping */
    else
        good = (rc == DT_ERR_IO || rc == DT_ERR_NO_SPACE) &&
               (failure->persist || strcmp(ckpt_list(dir), before) == 0) &&
               (failure->persist ? may_be(plan, now)
                                 : now == (plan->before < 0 ? 0 : OLD_SALT));
    if (!good || !goes_on(plan, dir)) {
        diag("call %d fails: result %d, loads %d, left: %s", at, rc, now,
             ckpt_list(dir));
        (*wrong)++;
    }
    ckpt_remove_tree(dir);
    return calls >= at;
}

static void test_failures(const struct plan *plan,
                          const struct failure *failure)
{
    int at = 1, wrong = 0;
    while (wrong < 5 && fail(plan, failure, at, &wrong))
        at++;
    ok(wrong == 0 && at > 3, "%s: %s at any of %d %s%s", plan->what,
       strerror(failure->error), at - 1,
       failure->kinds == FAULTS_ANY     ? "calls"
       : failure->kinds == FAULTS_SYNC  ? "syncs"
       : failure->kinds == FAULTS_WRITE ? "writes"
                                        : "writes and names",
       failure->persist ? " and ever after" : "");
}

static void test_tiny(void)
{
    const struct plan plan = {.before = -1, .step = 20, .size = 2};
    const struct faults faults = {.tiny = true};
    char *dir = ckpt_temp_dir();
    struct ckpt_job job = {.dir = dir, .salt = NEW_SALT};
    ok(save(&plan, dir, faults) == DT_SUCCESS,
       "save with interrupted and partial writes");
    faults_end();
    ok(which(&plan, dir) == NEW_SALT, "writes what it should");
    faults_begin(&faults);
    int rc = ckpt_load(&job, 2);
    faults_end();
    ok(rc == DT_SUCCESS && job.right[0] && job.right[1],
       "load with interrupted and partial reads");
    ckpt_remove_tree(dir);
}

int main(void)
{
    alarm(1200);
    ckpt_temp_in_memory(); /* what is synced is only looked at */
    for (size_t i = 0; i < sizeof(plans) / sizeof(*plans); i++) {
        test_power(&plans[i]);
        test_kill(&plans[i]);
        for (size_t k = 0; k < sizeof(failures) / sizeof(*failures); k++)
            test_failures(&plans[i], &failures[k]);
    }
    test_tiny();
    return tap_done();
}
