/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* crash-async.c - a training that saves again and again is killed, the
 * power goes, or a call fails, at every single system call, of any rank, that
 * changes something. What can be loaded then is whole, is not older than the
 * last save that had ended, and is not newer than the last one that had begun:
 * also from the nodes alone without those that the redundancy bears, and from
 * the directory that all see alone. Where more are lost it may be said instead
 * what is missing. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/job.h"
#include "../support/crash-job.h"
#include "../support/disk-model.h"
#include "../../tap.h"

static const struct crash_plan plans[] = {
    {"in the foreground", 2, 1, false, false, false, NULL, 0},
    {"in the background", 2, 1, true, false, false, NULL, 0},
    {"one rank, without exchange", 1, 1, true, true, false, NULL, 0},
    {"without links", 2, 1, true, false, true, NULL, 0},
    {"two nodes, flushed", 2, 2, true, false, false, "none", 0},
    {"two nodes, partner", 2, 2, true, false, false, "partner", 1},
    {"three nodes, xor", 3, 3, true, false, false, "xor:3", 1},
    {"four nodes, rs", 4, 4, true, false, false, "rs:2+2", 2},
};

#ifndef PLANS_FROM /* programs for some each, to run side by side */
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

/* Of disks from which as many nodes are lost as count says, and the directory
 * that all see. */
static bool loads_without(unsigned nodes, int count, int from, int to)
{
    int version;
    bool good = count > run->plan->bears ? crash_refuses(from, to)
                                         : crash_loads(from, to, &version);
    if (!good)
        diag("without the nodes %#x", nodes);
    return good;
}

/* After call number at, another choice of lost nodes at each. All choices at
 * each are tried on the same disks below: what is left when no power goes is
 * the last state there. */
static bool is_well(int at, int from, int to, int *version)
{
    int count = run->plan->bears;
    if (!crash_loads(from, to, version))
        return false;
    if (count > 0) {
        unsigned nodes = crash_choose(count, at);
        crash_forget_memory();
        crash_lose(nodes);
        if (!loads_without(nodes, count, from, to))
            return false;
    }
    return crash_goes_on();
}

/* ---- power cuts ---- */

/* Each choice of so many nodes. Most states differ on one node only, and are
 * the same without it: that is not tried twice. */
static bool bears(int at, int state, int count, int from, int to)
{
    unsigned first = crash_choose(count, 0), nodes = first;
    int i = 0;
    do {
        unsigned lost = nodes | CRASH_SHARED;
        if (crash_is_new(at, state, lost, from, to, false)) {
            crash_restore(at, state, lost);
            if (!loads_without(nodes, count, from, to))
                return false;
        }
        nodes = crash_choose(count, ++i);
    } while (nodes != first);
    return true;
}

/* All nodes are lost. */
static bool loads_shared(int at, int state, int from, int to)
{
    unsigned all = (1u << run->plan->nodes) - 1;
    int version;
    if (!run->plan->redundancy ||
        !crash_is_new(at, state, all, from, to, false))
        return true;
    crash_restore(at, state, all);
    return crash_loads(from, to, &version);
}

/* last: the disk has all that was written. */
static bool cut(int at, int i, bool last, int from, int to, int *newer)
{
    int version = from, count = run->plan->bears;
    bool good = true;
    if (crash_is_new(at, i, 0, from, to, last)) {
        crash_restore(at, i, 0);
        good = crash_loads(from, to, &version) && (!last || crash_goes_on());
    }
    good = good && loads_shared(at, i, from, to);
    if (good && count > 0)
        good = bears(at, i, count, from, to);
    if (good && count > 0 && last && count + 1 < run->plan->nodes)
        good = bears(at, i, count + 1, from, to);
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
        int n = crash_has_turn(plan, at) ? disk_states(at) : 0;
        for (int i = n - 1; i >= 0 && wrong < 5; i--, states++)
            wrong += !cut(at, i, i == n - 1, from, to, &newer);
    }
    ok(good && wrong == 0 && events > 50,
       "%s: the power goes before any of %d events: %d states, %d loads of "
       "different disks (%d newer)",
       plan->what, events, states, crash_count_new(), newer);
    crash_end();
}

/* ---- SIGKILL ---- */

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
    while (wrong < 5 &&
           (!crash_has_turn(plan, at) || kill_at(plan, at, &wrong, &newer)))
        at++;
    ok(wrong == 0 && at > 50, "%s: killed before any of %d calls (%d newer)",
       plan->what, at - 1, newer);
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
    int at = 1, wrong = 0;
    while (wrong < 5 && (!crash_has_turn(plan, at) ||
                         fail_at(plan, at, error, persist, &wrong)))
        at++;
    ok(wrong == 0 && at > 50, "%s: %s at any of %d calls%s", plan->what,
       strerror(error), at - 1, persist ? " and ever after" : "");
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
