/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* crash-resume.c - the power goes when some nodes have committed and others
 * have not; the next run loads, saves, and there the power goes again, at every
 * single system call that changes something. What was loaded can still be
 * loaded, from the disks of the nodes alone. */
#include <unistd.h>

#include "../support/job.h"
#include "../support/crash-job.h"
#include "../support/disk-model.h"
#include "../../tap.h"

static const struct crash_plan plans[] = {
    {"two nodes", 2, 2, true, false, false, "none", 0},
    {"three nodes, xor", 3, 3, true, false, false, "xor:3", 1},
};

static struct crash_run *run;

static int record(void (*fn)(void))
{
    struct faults faults = {.kinds = FAULTS_ANY};
    crash_record();
    faults_begin(&faults);
    fn();
    faults_end();
    return disk_end();
}

/* The disks when some nodes had committed version and others had not, at the
 * moment number i of those, which all left the disks otherwise. */
static bool cut_within(int version, int i)
{
    int found;
    record(crash_save);
    struct crash_run was = *run;
    for (int at = was.begun_at[version]; at <= was.ended_at[version]; at++) {
        int last = disk_states(at) - 1;
        if (!crash_is_new(at, last, CRASH_SHARED, 0, version, true))
            continue;
        crash_restore(at, last, CRASH_SHARED);
        int unfinished = crash_unfinished();
        if (unfinished == 0 || unfinished == run->plan->nodes ||
            !crash_loads(0, version, &found) || found != version || i-- > 0)
            continue;
        crash_restore(at, last, CRASH_SHARED);
        return true;
    }
    return false;
}

static int loaded;

static void load_and_save(void)
{
    bool good = crash_loads(loaded, loaded, &loaded) && crash_goes_on();
    run->rc = good ? DT_SUCCESS : DT_ERR_IO;
}

/* How many different disks there were; -1: something was wrong. */
static int cut_again(void)
{
    int next = CRASH_VERSIONS + 1, version, want = loaded, disks = 0;
    int events = record(load_and_save);
    if (run->rc != DT_SUCCESS)
        return -1;
    struct crash_run was = *run;
    for (int at = 0; at <= events; at++) {
        int from = was.ended_at[next] <= at ? next : want;
        int to = was.begun_at[next] <= at ? next : want;
        for (int i = disk_states(at) - 1; i >= 0; i--) {
            if (!crash_is_new(at, i, CRASH_SHARED, from, to, false))
                continue;
            disks++;
            crash_restore(at, i, CRASH_SHARED);
            if (crash_loads(from, to, &version))
                continue;
            diag("%s", disk_describe(at, i));
            return -1;
        }
    }
    return disks;
}

static void test_again(const struct crash_plan *plan, int version)
{
    int moments = 0, states = 0, n = 0;
    bool good = true;
    for (bool more = true; good && more; moments += more) {
        if (!crash_has_turn(plan, moments))
            continue;
        crash_begin(plan);
        more = cut_within(version, moments);
        loaded = version;
        if (more)
            n = cut_again();
        good = n >= 0;
        states += good && more ? n : 0;
        crash_end();
    }
    ok(good && moments > 0,
       "%s: version %d is still there after a second cut (%d moments of the "
       "first, %d disks after the second)",
       plan->what, version, moments, states);
}

int main(void)
{
    alarm(1200);
    run = crash_setup();
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
        for (int version = 1; version <= CRASH_VERSIONS; version += 2)
            test_again(&plans[i], version); /* the first; one of two */
    return tap_done();
}
