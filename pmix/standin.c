/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* standin.c - a process that connects in the place of a rank. */
#include "standin.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <pmix.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core.h"
#include "environ.h"

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

bool dt_pmix_standin_start(struct dt_pmix *pmix, size_t rank)
{
    struct dt_pmix_client *client = &pmix->clients[rank];
    struct dt_error ignored;
    char **env = NULL;
    pid_t pid = -1, parent = getpid();
    if (!pmix->stand_in || dt_environ_copy(&env, &ignored) != DT_SUCCESS)
        return false;
    if (dt_pmix_environ(pmix, rank, &env, &ignored) == DT_SUCCESS)
        pid = fork();
    if (pid == 0)
        become(pmix->stand_in, env, parent);
    dt_environ_free(env);
    client->stand_in = pid > 0 ? pid : 0;
    return pid > 0;
}

void dt_pmix_standin_end(struct dt_pmix *pmix, size_t rank)
{
    struct dt_pmix_client *client = &pmix->clients[rank];
    if (!client->stand_in)
        return;
    kill(client->stand_in, SIGKILL);
    waitpid(client->stand_in, NULL, 0);
    client->stand_in = 0;
}

_Noreturn void dt_pmix_stand_in(void)
{
    pmix_proc_t self;
    signal(SIGALRM, SIG_DFL); /* dt-pmixd ignores it */
    alarm(LIFE_SECONDS);
    PMIx_Init(&self, NULL, 0);
    _exit(0);
}
