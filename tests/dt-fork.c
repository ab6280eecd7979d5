/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* dt-fork.c - start the ranks of one job on this machine, for tests:
 *
 *   dt-fork -n RANKS [-N NODES] [-c] [-t SECONDS] PROGRAM [ARG ...]
 *
 * libdt places the ranks on NODES nodes, in blocks or, with -c, cyclically: it
 * gets the names of the nodes, and all else that it asks PMIx for, from dt-fork
 * (see fork/fork.h). Names each rank that failed on standard error; exits with
 * the code of the first of them, 128 + signal if it was killed, 124 if the time
 * was over (then all are killed, and have ended when dt-fork does). */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fork/fork.h"

struct job {
    size_t ranks, nodes;
    bool cyclic;
    double seconds;
    char **argv;
    struct fork_area *area;
    int fd;
    pid_t *pids;
    int *status;
};

static size_t node_of(const struct job *job, size_t rank)
{
    return job->cyclic ? rank % job->nodes : rank * job->nodes / job->ranks;
}

static void run_rank(const struct job *job, size_t rank)
{
    const struct fork_place place = {.rank = rank,
                                     .size = job->ranks,
                                     .nodes = job->nodes,
                                     .node = node_of(job, rank),
                                     .fd = job->fd};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fork_become(&place, FORK_LIBRARY);
    execvp(job->argv[0], job->argv);
    fprintf(stderr, "dt-fork: %s: %s\n", job->argv[0], strerror(errno));
    _exit(127);
}

static void kill_all(const struct job *job)
{
    for (size_t r = 0; r < job->ranks; r++)
        if (job->pids[r] > 0)
            kill(job->pids[r], SIGKILL);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* A process has ended: remember which rank it was, and how. */
static void record_end(struct job *job, pid_t pid, int status)
{
    for (size_t r = 0; r < job->ranks; r++)
        if (job->pids[r] == pid) {
            job->pids[r] = 0;
            job->status[r] = status;
        }
    job->area->dead++;
}

/* Wait for all ranks; false if that took too long. A rank that stops itself
 * stays so until all others have ended. */
static bool wait_all(struct job *job)
{
    sigset_t chld;
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    double end = now() + job->seconds;
    for (size_t left = job->ranks, stopped = 0; left;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED);
        if (pid > 0 && WIFSTOPPED(status)) {
            stopped++;
            continue;
        }
        if (stopped == left)
            kill_all(job);
        if (pid > 0) {
            record_end(job, pid, status);
            left--;
            continue;
        }
        double rest = end - now();
        if (rest <= 0)
            return false;
        const struct timespec wait = {
            .tv_sec = rest >= 1, .tv_nsec = rest >= 1 ? 0 : (long)(rest * 1e9)};
        sigtimedwait(&chld, NULL, &wait);
    }
    return true;
}

static int report(const struct job *job)
{
    int rc = 0;
    for (size_t r = 0; r < job->ranks; r++) {
        int status = job->status[r], code = 0;
        if (WIFSIGNALED(status)) {
            code = 128 + WTERMSIG(status);
            fprintf(stderr, "dt-fork: rank %zu: killed by signal %d\n", r,
                    WTERMSIG(status));
        } else if (WEXITSTATUS(status)) {
            code = WEXITSTATUS(status);
            fprintf(stderr, "dt-fork: rank %zu: exit code %d\n", r, code);
        }
        if (!rc)
            rc = code;
    }
    return rc;
}

static int usage(void)
{
    fprintf(stderr, "usage: dt-fork -n RANKS [-N NODES] [-c] [-t SECONDS] "
                    "PROGRAM [ARG ...]\n");
    return 64;
}

static bool parse(struct job *job, int argc, char **argv)
{
    int opt;
    while ((opt = getopt(argc, argv, "+n:N:ct:")) != -1) {
        if (opt == 'n')
            job->ranks = strtoul(optarg, NULL, 10);
        else if (opt == 'N')
            job->nodes = strtoul(optarg, NULL, 10);
        else if (opt == 't')
            job->seconds = strtod(optarg, NULL);
        else if (opt == 'c')
            job->cyclic = true;
        else
            return false;
    }
    job->argv = argv + optind;
    return job->ranks && job->ranks <= 4096 && job->nodes &&
           job->nodes <= job->ranks && job->seconds > 0 && job->argv[0];
}

int main(int argc, char **argv)
{
    struct job job = {.nodes = 1, .seconds = 600};
    if (!parse(&job, argc, argv))
        return usage();
    size_t bytes = fork_area_size(job.ranks);
    job.fd = memfd_create("dt-fork", 0);
    job.pids = calloc(job.ranks, sizeof(*job.pids));
    job.status = calloc(job.ranks, sizeof(*job.status));
    if (job.fd < 0 || !job.pids || !job.status ||
        ftruncate(job.fd, (off_t)bytes)) {
        perror("dt-fork");
        return 71;
    }
    job.area = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, job.fd, 0);
    if (job.area == MAP_FAILED) {
        perror("dt-fork");
        return 71;
    }
    sigset_t chld;
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    sigprocmask(SIG_BLOCK, &chld, NULL);
    for (size_t r = 0; r < job.ranks; r++) {
        job.pids[r] = fork();
        if (job.pids[r] == 0) {
            sigprocmask(SIG_UNBLOCK, &chld, NULL);
            run_rank(&job, r);
        }
    }
    bool in_time = wait_all(&job);
    if (!in_time) {
        fprintf(stderr, "dt-fork: not done after %g s, killing all ranks\n",
                job.seconds);
        kill_all(&job);
        while (wait(NULL) > 0)
            continue;
    }
    int rc = in_time ? report(&job) : 124;
    free(job.pids);
    free(job.status);
    return rc;
}
