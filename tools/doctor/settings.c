/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* settings.c - rules: settings of Slurm that lose the work of jobs. */
#include <string.h>

#include "base/number.h"
#include "facts.h"

/* What Slurm has where slurm.conf says nothing. */
enum { KILL_WAIT = 30, SLURMD_TIMEOUT = 300 };

/* "30 sec"; -1: it is not known. */
static int64_t seconds(const char *value)
{
    uint64_t number;
    return value && dt_number_scan(&value, 10, UINT32_MAX, &number)
               ? (int64_t)number
               : -1;
}

void look_requeue(struct doctor *doctor)
{
    const char *value = fact_setting(doctor, "JobRequeue");
    if (!value || strcmp(value, "0") != 0)
        return;
    found(doctor, "JobRequeue = 0 in Slurm's configuration",
          "a job that is preempted or loses a node ends for good, unless it "
          "was submitted with --requeue",
          "sbatch --requeue; for all jobs: JobRequeue=1 in slurm.conf, then "
          "scontrol reconfigure");
}

void look_kill_wait(struct doctor *doctor)
{
    int64_t wait = seconds(fact_setting(doctor, "KillWait"));
    if (wait < 0 || wait >= KILL_WAIT)
        return;
    found(doctor,
          text(doctor, "KillWait = %lld seconds; Slurm's own value is %d",
               (long long)wait, KILL_WAIT),
          "at its time limit a job has only this long between SIGTERM and "
          "SIGKILL: a checkpoint that takes longer is lost",
          "sbatch --dt-requeue, whose notice comes earlier; for all jobs: "
          "KillWait=30 in slurm.conf, then scontrol reconfigure");
}

void look_slurmd_timeout(struct doctor *doctor)
{
    int64_t timeout = seconds(fact_setting(doctor, "SlurmdTimeout"));
    if (timeout < 0 || (timeout > 0 && timeout <= SLURMD_TIMEOUT))
        return;
    found(doctor,
          timeout
              ? text(doctor, "SlurmdTimeout = %lld seconds", (long long)timeout)
              : "SlurmdTimeout = 0: a silent node never counts as down",
          "the jobs of a node that was lost are requeued only after this time",
          "SlurmdTimeout=300 in slurm.conf, then scontrol reconfigure");
}

/* ---- preemption ---- */

static int64_t tier(struct doctor *doctor, const char *record)
{
    return seconds(fact_value(doctor, record, "PriorityTier"));
}

/* Call each for every partition whose jobs another one preempts. */
static void each_preempted(struct doctor *doctor,
                           void (*each)(struct doctor *doctor,
                                        const char *record))
{
    static const char *const argv[] = {"scontrol", "--oneliner", "show",
                                       "partition", NULL};
    const char *type = fact_setting(doctor, "PreemptType"), *out;
    int64_t highest = -1;
    bool late;
    if (!type || strcmp(type, "preempt/partition_prio") != 0)
        return;
    if (fact_run(doctor, argv, false, &out, &late) != 0) {
        unseen(doctor, "partitions: scontrol show partition failed");
        return;
    }
    for (int run = 0; run < 2; run++)
        for (const char *at = out; *at;) {
            size_t length = strcspn(at, "\n");
            const char *record = text(doctor, "%.*s", (int)length, at);
            if (run == 0 && tier(doctor, record) > highest)
                highest = tier(doctor, record);
            if (run == 1 && tier(doctor, record) < highest)
                each(doctor, record);
            at += length + (at[length] == '\n');
        }
}

static bool has_mode(struct doctor *doctor, const char *record,
                     const char *mode)
{
    return strstr(fact_value(doctor, record, "PreemptMode"), mode) != NULL;
}

static void grace_of(struct doctor *doctor, const char *record)
{
    if ((!has_mode(doctor, record, "REQUEUE") &&
         !has_mode(doctor, record, "CANCEL")) ||
        strcmp(fact_value(doctor, record, "GraceTime"), "0") != 0)
        return;
    const char *name = fact_value(doctor, record, "PartitionName");
    found(doctor,
          text(doctor, "partition %s: PreemptMode=%s GraceTime=0", name,
               fact_value(doctor, record, "PreemptMode")),
          "a preempted job is killed at once, with no time for a checkpoint",
          text(doctor,
               "scontrol update PartitionName=%s GraceTime=120; to keep it: "
               "GraceTime=120 in the partition's line of slurm.conf",
               name));
}

static void cancel_of(struct doctor *doctor, const char *record)
{
    if (!has_mode(doctor, record, "CANCEL"))
        return;
    const char *name = fact_value(doctor, record, "PartitionName");
    found(doctor, text(doctor, "partition %s: PreemptMode=CANCEL", name),
          "a preempted job ends for good, although it could be requeued",
          text(doctor,
               "scontrol update PartitionName=%s PreemptMode=REQUEUE; to keep "
               "it: PreemptMode=REQUEUE in the partition's line of slurm.conf",
               name));
}

void look_grace(struct doctor *doctor)
{
    each_preempted(doctor, grace_of);
}

void look_cancel(struct doctor *doctor)
{
    each_preempted(doctor, cancel_of);
}
