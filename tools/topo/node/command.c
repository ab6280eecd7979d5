/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* command.c - run a program of Slurm's for a limited time, and end all of its
 * processes. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "node.h"

extern char **environ;

enum { LINE = 4096, PATIENCE = 5000, GRACE = 3000 }; /* bytes, ms, ms */

static long long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Pass on the lines in line[0 .. len-1]; returns how many bytes are left. */
static size_t take_lines(const struct command *command, char *line, size_t len)
{
    char *at = line, *newline;
    while ((newline = memchr(at, '\n', len - (size_t)(at - line)))) {
        *newline = '\0';
        command->take(command->arg, at);
        at = newline + 1;
    }
    len -= (size_t)(at - line);
    memmove(line, at, len);
    return len == LINE ? 0 : len; /* too long: not a line of the answer */
}

/* Until the pipe is closed (true), the time is up, or a signal came. */
static bool listen_to(const struct command *command, int pipe, int signals)
{
    char line[LINE];
    size_t len = 0;
    long long end = now_ms() + command->timeout * 1000LL;
    for (;;) {
        struct pollfd entry[] = {{.fd = pipe, .events = POLLIN},
                                 {.fd = signals, .events = POLLIN}};
        long long left = end - now_ms();
        int ready = left > 0 ? poll(entry, 2, (int)left) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0 || entry[1].revents)
            return false;
        ssize_t n = read(pipe, line + len, sizeof(line) - len);
        if (n <= 0)
            return true;
        len = take_lines(command, line, len + (size_t)n);
    }
}

/* SIGTERM lets srun cancel what it started. */
static void end(pid_t pid, bool closed)
{
    long long patience = now_ms() + (closed ? PATIENCE : 0);
    int step = 0;
    while (waitpid(pid, NULL, WNOHANG) == 0) {
        if (now_ms() >= patience) {
            kill(pid, step++ ? SIGKILL : SIGTERM);
            patience = now_ms() + GRACE;
        }
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
}

/* In a process group of its own: ^C signals us only, and we end the program. */
static int start(const struct command *command, int out, const sigset_t *mask,
                 pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    if (command->quiet)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
                                         O_WRONLY, 0);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, mask);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    int rc = posix_spawnp(pid, command->argv[0], &actions, &attributes,
                          (char *const *)(uintptr_t)command->argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

/* Signals that end us, unless they are ignored, as under nohup. */
static void find_signals(sigset_t *set)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action;
    sigemptyset(set);
    for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
        if (!sigaction(ending[i], NULL, &action) &&
            action.sa_handler != SIG_IGN)
            sigaddset(set, ending[i]);
}

dt_result_t command_run(const struct command *command, bool *late,
                        struct dt_error *err)
{
    int pipes[2];
    pid_t pid;
    sigset_t ending, before;
    dt_result_t rc = DT_SUCCESS;
    if (pipe2(pipes, O_CLOEXEC))
        return dt_error_set(err, DT_ERR_SYSTEM, "no pipe: %s", strerror(errno));
    find_signals(&ending);
    sigprocmask(SIG_BLOCK, &ending, &before);
    int signals = signalfd(-1, &ending, SFD_CLOEXEC);
    int why = start(command, pipes[1], &before, &pid);
    close(pipes[1]);
    if (why) {
        rc = dt_error_set(err, DT_ERR_SYSTEM, "%s: %s", command->argv[0],
                          strerror(why));
    } else {
        *late = !listen_to(command, pipes[0], signals);
        end(pid, !*late);
    }
    close(pipes[0]);
    if (signals >= 0)
        close(signals);
    sigprocmask(SIG_SETMASK, &before, NULL); /* a signal that came ends us */
    return rc;
}
