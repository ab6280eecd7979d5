/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ckpt-crash.c - the power goes, or a call fails, at every single system call
 * of a save that changes something: what can be loaded then is the old
 * checkpoint or the new one, whole. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckpt-job.h"
#include "faulty-calls.h"
#include "tap.h"

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
static int save(const struct plan *plan, const char *dir,
                const struct faults *faults)
{
    struct ckpt_job job = {
        .dir = dir, .keep = plan->keep, .step = plan->step, .salt = NEW_SALT};
    faults_begin(faults);
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

/* Training goes on as if nothing had been. */
static bool goes_on(const struct plan *plan, const char *dir)
{
    struct ckpt_job job = {
        .dir = dir, .keep = 1, .step = plan->step + 1, .salt = NEW_SALT};
    if (ckpt_save(&job, plan->size) != DT_SUCCESS) {
        diag("next save: %s", job.text[0]);
        return false;
    }
    if (strcmp(ckpt_list(dir), "step-000000000021 ") == 0)
        return true;
    diag("left: %s", ckpt_list(dir));
    return false;
}

/* ---- power cuts ---- */

/* Cut the power before call number at. False if the save was over by then;
 * the power goes all the same, and the new checkpoint must be there. */
static bool cut(const struct plan *plan, int at, int *wrong, int *saw_new)
{
    char *dir = prepare(plan);
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct faults faults = {.at = at, .no_exchange = plan->no_exchange};
        faults_cut_power(save(plan, dir, &faults) != DT_SUCCESS);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        abort();
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    int now = which(plan, dir);
    bool good =
        code == FAULTS_POWER_CUT
            ? now == NEW_SALT || now == (plan->before < 0 ? 0 : OLD_SALT)
            : code == 0 && now == NEW_SALT;
    if (!good || !goes_on(plan, dir)) {
        diag("cut at call %d: exit %d, loads %d", at, code, now);
        (*wrong)++;
    }
    *saw_new += code == FAULTS_POWER_CUT && now == NEW_SALT;
    ckpt_remove_tree(dir);
    return code == FAULTS_POWER_CUT;
}

static void test_power(const struct plan *plan)
{
    int at = 1, wrong = 0, saw_new = 0;
    while (at < 1000 && cut(plan, at, &wrong, &saw_new))
        at++;
    ok(wrong == 0 && at > 15, "%s: the power goes at any of %d calls (%d new)",
       plan->what, at - 1, saw_new);
}

/* ---- failing calls ---- */

static bool fail(const struct plan *plan, int at, int error, bool persist,
                 int *wrong)
{
    char *dir = prepare(plan), before[256];
    struct faults faults = {.at = at,
                            .error = error,
                            .persist = persist,
                            .no_exchange = plan->no_exchange};
    snprintf(before, sizeof(before), "%s", ckpt_list(dir));
    ckpt_stderr_begin();
    int rc = save(plan, dir, &faults), calls = faults_end();
    ckpt_stderr_end();
    int now = which(plan, dir);
    bool good;
    if (rc == DT_SUCCESS)
        good = now == NEW_SALT; /* it was only housekeeping */
    else
        good = (rc == DT_ERR_IO || rc == DT_ERR_NO_SPACE) &&
               (persist || strcmp(ckpt_list(dir), before) == 0) &&
               (now == (plan->before < 0 ? 0 : OLD_SALT) ||
                (persist && now == NEW_SALT));
    if (!good || !goes_on(plan, dir)) {
        diag("call %d fails: result %d, loads %d, left: %s", at, rc, now,
             ckpt_list(dir));
        (*wrong)++;
    }
    ckpt_remove_tree(dir);
    return calls >= at;
}

static void test_failures(const struct plan *plan, int error, bool persist)
{
    int at = 1, wrong = 0;
    while (at < 1000 && fail(plan, at, error, persist, &wrong))
        at++;
    ok(wrong == 0 && at > 15, "%s: %s at any of %d calls%s", plan->what,
       strerror(error), at - 1, persist ? " and ever after" : "");
}

static void test_tiny(void)
{
    const struct plan plan = {.before = -1, .step = 20, .size = 2};
    const struct faults faults = {.tiny = true};
    char *dir = ckpt_temp_dir();
    struct ckpt_job job = {.dir = dir, .salt = NEW_SALT};
    ok(save(&plan, dir, &faults) == DT_SUCCESS,
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
    alarm(300);
    for (size_t i = 0; i < sizeof(plans) / sizeof(*plans); i++) {
        test_power(&plans[i]);
        test_failures(&plans[i], EIO, false);
        test_failures(&plans[i], ENOSPC, true);
    }
    test_tiny();
    return tap_done();
}
