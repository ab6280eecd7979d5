/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* proxy_client.c - a process that connects to PMIx as a rank that has ended. */
#include "server/proxy_client.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <pmix.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/environ.h"

#define LIFE_SECONDS 10

/* In the child of a process with threads: only system calls. */
static void become(char *const *argv, char *const *env, pid_t parent)
{
    sigset_t none;
    int null = open("/dev/null", O_RDWR);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent || null < 0)
        _exit(1);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(argv[0], argv, env);
    _exit(1);
}

pid_t dt_pmix_proxy_client_start(const struct dt_pmix_job *job,
                                 char *const *argv, size_t rank)
{
    struct dt_error ignored;
    char **env = NULL;
    pid_t pid = -1, parent = getpid();
    if (!argv || dt_environ_copy(&env, &ignored) != DT_SUCCESS)
        return 0;
    if (dt_pmix_job_environ(job, rank, &env, &ignored) == DT_SUCCESS)
        pid = fork();
    if (pid == 0)
        become(argv, env, parent);
    dt_environ_free(env);
    return pid > 0 ? pid : 0;
}

void dt_pmix_proxy_client_end(pid_t pid)
{
    if (pid == 0)
        return;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

_Noreturn void dt_pmix_proxy_client_run(void)
{
    pmix_proc_t self;
    signal(SIGALRM, SIG_DFL); /* dt-pmixd ignores it */
    alarm(LIFE_SECONDS);
    PMIx_Init(&self, NULL, 0);
    _exit(0);
}
