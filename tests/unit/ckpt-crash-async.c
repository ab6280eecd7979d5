/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ckpt-crash-async.c - a training that saves again and again is killed, the
 * power goes, or a call fails, at every single system call that changes
 * something. What can be loaded then is whole, is not older than the last save
 * that had ended, and is not newer than the last one that had begun: also from
 * the nodes alone without those that the redundancy bears. Where more are lost
 * it may be said instead what is missing. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckpt-job.h"
#include "crash-job.h"
#include "disk-model.h"
#include "tap.h"

static const struct crash_plan plans[] = {
    {"in the foreground", 2, 1, false, false, false, NULL, 0, 1},
    {"behind the program", 2, 1, true, false, false, NULL, 0, 1},
    {"one rank, without exchange", 1, 1, true, true, false, NULL, 0, 1},
    {"without links", 2, 1, true, false, true, NULL, 0, 1},
    {"two nodes, flushed", 2, 2, true, false, false, "none", 0, 1},
    {"two nodes, partner", 2, 2, true, false, false, "partner", 1, 1},
    {"three nodes, xor", 3, 3, true, false, false, "xor:3", 1, 2},
    {"four nodes, rs", 4, 4, true, false, false, "rs:2+2", 2, 5},
};

#ifndef PLANS_FROM /* a program for some of them each, for the time it takes   \
                    */
#define PLANS_FROM 0
#define PLANS_TO   4
#endif

static struct crash_run *run;

static struct faults faults_of(const struct crash_plan *plan)
{
    return (struct faults){.kinds = FAULTS_ANY,
                           .no_exchange = plan->no_exchange,
                           .no_link = plan->no_link};
}

/* Many nodes take their time: it is not done twice what is nearly the same. */
static bool with_many(void)
{
    return run->plan->nodes > 2;
}

/* Nodes are lost, and the directory that all see. */
static bool loads_without(int count, int i, int from, int to)
{
    int version;
    unsigned nodes = crash_choose(count, i);
    crash_forget_memory();
    crash_lose(nodes);
    bool good = count > run->plan->bears ? crash_refuses(from, to)
                                         : crash_loads(from, to, &version);
    if (!good)
        diag("without the nodes %#x", nodes);
    return good;
}

/* After call number at. */
static bool is_well(int at, int from, int to, int *version)
{
    bool whole = !with_many() || at % 3 == 0;
    *version = from;
    if (whole && !crash_loads(from, to, version))
        return false;
    if (run->plan->bears && !(whole && with_many()) &&
        !loads_without(run->plan->bears, at, from, to))
        return false;
    return !whole || crash_goes_on();
}

/* ---- power cuts ---- */

/* As many as are borne, before a sync each of them, and one more. */
static bool bears(int at, int state, bool last, int from, int to)
{
    int count = run->plan->bears;
    unsigned first = crash_choose(count, 0);
    bool every = last && disk_syncs(at), good = true;
    for (int i = 0; good; i++) {
        if (i > 0 && (!every || crash_choose(count, i) == first))
            break;
        disk_restore(at, state);
        good = loads_without(count, every ? i : at + state, from, to);
    }
    if (good && every && count + 1 < run->plan->nodes) {
        disk_restore(at, state);
        good = loads_without(count + 1, at, from, to);
    }
    return good;
}

/* last: the disk has all that was written. */
static bool cut(int at, int i, bool last, int from, int to, int *newer)
{
    int version = from;
    bool good = true;
    disk_restore(at, i);
    if (!crash_is_new(from, to, last))
        return true;
    crash_forget_memory();
    if (last || !with_many())
        good = crash_loads(from, to, &version) && (!last || crash_goes_on());
    if (good && run->plan->bears)
        good = bears(at, i, last, from, to);
    if (!good)
        diag("%s", disk_describe(at, i));
    *newer += version > from;
    return good;
}

static void test_power(const struct crash_plan *plan)
{
    int states = 0, wrong = 0, newer = 0;
    struct faults faults = faults_of(plan);
    crash_begin(plan);
    crash_record();
    ckpt_stderr_begin();
    faults_begin(&faults);
    crash_save();
    faults_end();
    int events = disk_end();
    ckpt_stderr_end(); /* without links there is no memory */
    bool good = run->rc == DT_SUCCESS;
    struct crash_run was = *run;
    for (int at = 0, from = 0, to = 0; good && at <= events; at++) {
        while (to < CRASH_VERSIONS && was.begun_at[to + 1] <= at)
            to++;
        while (from < CRASH_VERSIONS && was.ended_at[from + 1] <= at)
            from++;
        int n = disk_states(at);
        int first = with_many() && !disk_syncs(at) ? n - 1 : 0;
        int step = plan->nodes > 3 ? 3 : 1;
        for (int i = n - 1; i >= first && wrong < 5; i -= step, states++)
            wrong += !cut(at, i, i == n - 1, from, to, &newer);
    }
    ok(good && wrong == 0 && events > 50,
       "%s: the power goes before any of %d events: %d states, %d of them "
       "different (%d newer)",
       plan->what, events, states, crash_count_new(), newer);
    crash_end();
}

/* ---- kill -9 ---- */

static const char *which(const struct crash_plan *plan)
{
    return plan->stride > 1 ? "many" : "any";
}

static bool kill_at(const struct crash_plan *plan, int at, int *wrong,
                    int *newer)
{
    int status, version = 0;
    struct faults faults = faults_of(plan);
    faults.at = at;
    crash_begin(plan);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(120);
        ckpt_stderr_begin();
        faults_begin(&faults);
        crash_save();
        _exit(run->rc != DT_SUCCESS);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        abort();
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    int from = run->ended, to = run->begun;
    if ((!killed && status != 0) || !is_well(at, from, to, &version)) {
        diag("killed before call %d: status %#x", at, status);
        (*wrong)++;
    }
    *newer += killed && version > from;
    crash_end();
    return killed;
}

static void test_kill(const struct crash_plan *plan)
{
    int at = 1, wrong = 0, newer = 0;
    while (wrong < 5 && kill_at(plan, at, &wrong, &newer))
        at += plan->stride;
    ok(wrong == 0 && at > 50, "%s: killed before %s of %d calls (%d newer)",
       plan->what, which(plan), at - 1, newer);
}

/* ---- failing calls ---- */

static bool fail_at(const struct crash_plan *plan, int at, int error,
                    bool persist, int *wrong)
{
    int version;
    struct faults faults = faults_of(plan);
    faults.at = at;
    faults.error = error;
    faults.persist = persist;
    crash_begin(plan);
    ckpt_stderr_begin();
    faults_begin(&faults);
    crash_save();
    int calls = faults_end(), from = run->ended, to = run->begun;
    const char *said = ckpt_stderr_end();
    bool heard = from == CRASH_VERSIONS || *run->text || *said;
    crash_forget_memory(); /* what is not on disk does not count */
    if (!heard || !is_well(at, from, to, &version)) {
        diag("call %d fails: %s", at, said);
        (*wrong)++;
    }
    crash_end();
    return calls >= at;
}

static void test_failures(const struct crash_plan *plan, int error,
                          bool persist)
{
    int at = persist ? plan->stride : 1, wrong = 0;
    while (wrong < 5 && fail_at(plan, at, error, persist, &wrong))
        at += plan->stride;
    ok(wrong == 0 && at > 50, "%s: %s at %s of %d calls%s", plan->what,
       strerror(error), which(plan), at - 1, persist ? " and ever after" : "");
}

int main(void)
{
    alarm(1200);
    run = crash_setup();
    for (int i = PLANS_FROM; i < PLANS_TO; i++) {
        test_kill(&plans[i]);
        test_failures(&plans[i], EIO, false);
        test_failures(&plans[i], ENOSPC, true);
        test_power(&plans[i]); /* what it records would slow down a fork */
    }
    return tap_done();
}
