/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* hand.c - dt-requeue as a user calls it, and what it does on the nodes. */
#include "requeue.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "common/streams.h"
#include "counts.h"
#include "jobfile.h"
#include "slurm.h"

enum { LIMIT = 60, NOTIFY_LIMIT = 45 }; /* seconds */

__attribute__((format(printf, 2, 3))) static int fail(const char *job,
                                                      const char *format, ...)
{
    char text[WHY + 256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    note(stderr, "job %s: %s", job, text);
    return 1;
}

/* 0 if it can be requeued. */
static int check(const char *id, const struct job *job)
{
    static const char *const ended[] = {
        "COMPLETED", "FAILED",    "CANCELLED", "TIMEOUT",      "NODE_FAIL",
        "PREEMPTED", "BOOT_FAIL", "DEADLINE",  "OUT_OF_MEMORY"};
    if (job->several)
        return fail(id, "has several elements: name one, as in %s_4", id);
    if (geteuid() != 0 && job->uid != geteuid())
        return fail(id, "is %s's, not yours", job->owner);
    for (size_t i = 0; i < sizeof(ended) / sizeof(ended[0]); i++)
        if (!strcmp(job->state, ended[i]))
            return fail(id, "has ended already (%s): submit it again",
                        job->state);
    if (!strcmp(job->state, "COMPLETING"))
        return fail(id, "is just ending: squeue shows soon whether it runs "
                        "again");
    if (!strcmp(job->state, "PENDING"))
        return fail(id, "is waiting already");
    if (!job->batch)
        return fail(id, "is no batch job: only those of sbatch can be "
                        "requeued");
    if (!job->requeue)
        return fail(id,
                    "must not be requeued: it was submitted with "
                    "--no-requeue; scontrol update JobId=%s Requeue=1 allows "
                    "it",
                    id);
    return 0;
}

/* ---- at once ---- */

static int requeue_now(const struct by_hand *hand, const struct job *job,
                       deadline_t deadline)
{
    struct counts counts;
    char text[COMMENT + 16] = "Comment=", soon[START_ITEM], why[WHY];
    counts_read(job->comment, &counts);
    counts.n[CAUSE_HAND]++;
    counts_write(&counts, job->comment, text + strlen(text));
    const char *const comment[] = {text, NULL};
    const char *const start[] = {soon, NULL};
    if (!slurm_update(job->id, comment, deadline, why) ||
        !slurm_requeue(hand->hold ? "requeuehold" : "requeue", job->id,
                       deadline, why))
        return fail(job->id, "Slurm says: %s", why);
    slurm_start(0, soon);
    if (!hand->hold)
        slurm_update(job->id, start, deadline, why);
    printf("job %s is requeued%s\n", job->id,
           hand->hold ? " and held: scontrol release lets it go" : "");
    return 0;
}

/* ---- when its script has ended ---- */

/* The step that writes the notice needs neither the plugin nor a PMIx server.
 */
static void clear_environment(void)
{
    static const char *const name[] = {
        "SLURM_DT_GPUS",          "SLURM_DT_NICS",
        "SLURM_DT_CPU_BIND",      "SLURM_DT_PMIX",
        "SLURM_DT_CKPT",          "SLURM_DT_CKPT_FLUSH",
        "SLURM_DT_CKPT_INTERVAL", "SLURM_DT_CKPT_REDUNDANCY",
        "SLURM_DT_CKPT_KEEP",     "SLURM_DT_REQUEUE",
        "SLURM_DT_NOTICE_SIGNAL", "SLURM_DT_ELASTIC",
        "SLURM_DT_RENDEZVOUS",    "SLURM_MPI_TYPE",
        "SLURM_NTASKS",           "SLURM_NPROCS",
        "SLURM_NNODES",           "SLURM_NTASKS_PER_NODE",
        "SLURM_CPUS_PER_TASK"};
    for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++)
        unsetenv(name[i]);
}

/* Each node prints a number; any other line is an error message. */
static unsigned long add_up(const char *out, char why[WHY])
{
    unsigned long sum = 0;
    while (*out) {
        const char *end = out;
        size_t length = strcspn(out, "\n");
        uint64_t n;
        if (dt_number_scan(&end, 10, UINT32_MAX, &n) && end == out + length)
            sum += n;
        else if (length)
            snprintf(why, WHY, "%.*s", (int)length, out);
        out += length + (out[length] == '\n');
    }
    return sum;
}

/* The files on the nodes are read and written by their owner only, and so the
 * step that writes them is the owner's, who sees nothing of root's variables.
 */
static bool become_owner(const struct job *job)
{
    const char *path = getenv("PATH"), *conf = getenv("SLURM_CONF");
    if (geteuid() != 0 || job->uid == 0)
        return true;
    const struct passwd *user = getpwuid(job->uid);
    gid_t gid = user ? user->pw_gid : 0;
    return user && initgroups(user->pw_name, gid) == 0 && setgid(gid) == 0 &&
           setuid(job->uid) == 0 && chdir("/") == 0 && clearenv() == 0 &&
           (!path || setenv("PATH", path, 1) == 0) &&
           (!conf || setenv("SLURM_CONF", conf, 1) == 0);
}

static int notify(const struct by_hand *hand, const struct job *job)
{
    char self[4096], id[80], cluster[64], why[WHY] = "";
    if (!slurm_cluster(deadline_in(LIMIT), cluster, why))
        return fail(job->id, "Slurm says: %s", why);
    if (!become_owner(job))
        return fail(job->id, "root cannot become its owner, uid %u", job->uid);
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *out = malloc(OUTPUT);
    if (!out || length < 0) {
        free(out);
        return fail(job->id, "no memory, or no /proc");
    }
    self[length] = '\0';
    snprintf(id, sizeof(id), "--jobid=%s", job->raw);
    const char *const argv[] = {"srun",
                                id,
                                "--overlap",
                                "-N",
                                job->nnodes,
                                "--quiet",
                                "--ntasks-per-node=1",
                                "--mpi=none",
                                "--mem=0",
                                "--immediate=20",
                                "--input=none",
                                "--dt-gpus=none",
                                "--dt-pmix=none",
                                "--dt-requeue=none",
                                "--dt-ckpt=none",
                                "--dt-notice-signal=none",
                                "--",
                                self,
                                "_notify",
                                hand->hold ? "1" : "0",
                                job->batch_host,
                                hand->reason ? hand->reason : "",
                                cluster,
                                NULL};
    clear_environment();
    int rc = slurm_run(argv, deadline_in(NOTIFY_LIMIT), true, out, why);
    unsigned long notified = add_up(out, why);
    free(out);
    if (!notified && (rc != 0 || *why))
        return fail(job->id, "its nodes were not reached: %s", why);
    if (!notified)
        return fail(job->id,
                    "no step of it can be notified: none has --dt-gpus, "
                    "--dt-ckpt, --dt-requeue or --dt-notice-signal; --now "
                    "requeues it at once");
    printf("job %s is notified; it is requeued%s when its script ends\n",
           job->id, hand->hold ? " and held" : "");
    return 0;
}

int requeue_by_hand(const struct by_hand *hand)
{
    deadline_t deadline = deadline_in(LIMIT);
    struct job job;
    char why[WHY];
    if (!slurm_job(hand->job, deadline, &job, why))
        return fail(hand->job, "Slurm says: %s", why);
    int rc = check(hand->job, &job);
    if (rc)
        return rc;
    return hand->now ? requeue_now(hand, &job, deadline) : notify(hand, &job);
}

/* ---- on each node ---- */

int requeue_notify(char *const argv[])
{
    const char *number = getenv("SLURM_JOB_ID");
    const char *node = getenv("SLURMD_NODENAME");
    if (!number || !node)
        return 1;
    /* before the notice, after which the job may end at any time */
    if (!strcmp(node, argv[1]) &&
        !jobfile_record_hand(number, node, argv[3], *argv[0] == '1', argv[2])) {
        fprintf(stderr, "%s: its requeue record cannot be written: %s\n", node,
                strerror(errno));
        return 1;
    }
    printf("%zu\n", jobfile_notify(number, node, argv[3], argv[2]));
    return 0;
}

int requeue_end(char *const argv[])
{
    long long end = slurm_end(argv[0], deadline_in(5));
    printf("%lld\n", end);
    return 0;
}
