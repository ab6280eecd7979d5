/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* daemon.c - the process dt-pmixd, of an ordinary user, as the plugin starts
 * it: what it lets others see, and that it serves and ends. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/step.h"
#include "../tap.h"

enum { LONG = 60000 /* ms */ };

static char directory[64];

/* The program is opened before the user changes, who may not reach it. */
static bool start(int theirs, const char *program)
{
    int status = 0;
    int file = open(program, O_RDONLY | O_CLOEXEC);
    char *const argv[] = {(char *)program, NULL};
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        /* as slurmstepd, whose score spares it, or else one that may be set */
        int fd = open("/proc/self/oom_score_adj", O_WRONLY);
        if (fd < 0 || (write(fd, "-500", 4) < 0 && write(fd, "500", 3) < 0))
            _exit(3);
        close(fd);
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
            _exit(2);
        dup2(theirs, STDIN_FILENO);
        fexecve(file, argv, environ);
        _exit(127);
    }
    close(file);
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

/* The next packet, and who has sent it. */
static ssize_t receive(int fd, char *text, size_t size, pid_t *pid)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct iovec part = {text, size - 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    struct pollfd poll_fd = {fd, POLLIN, 0};
    struct ucred sender = {.pid = 0};
    ssize_t n =
        poll(&poll_fd, 1, LONG) == 1 ? recvmsg(fd, &message, 0) : (ssize_t)-1;
    if (n >= 0 && CMSG_FIRSTHDR(&message))
        memcpy(&sender, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(sender));
    if (sender.pid)
        *pid = sender.pid;
    text[n < 0 ? 0 : n] = '\0';
    return n;
}

static uid_t owner_of(pid_t pid, const char *name)
{
    char path[64];
    struct stat st = {.st_uid = (uid_t)-1};
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    return stat(path, &st) == 0 ? st.st_uid : (uid_t)-1;
}

static void test_serves(int fd)
{
    char text[DT_STEP_PACKET], path[64], score[16] = "";
    struct stat st;
    pid_t pid = 0;
    ssize_t n = receive(fd, text, sizeof(text), &pid);
    if (!ok(n > 0 && !strncmp(text, "ready\n", 6) && pid > 0, "it serves: %.*s",
            (int)strcspn(text, "\n"), text))
        return;
    ok(owner_of(pid, "mem") == 0 && owner_of(pid, "environ") == 0,
       "its files in /proc are root's: it leaves no core file");
    ok(stat(directory, &st) == 0 && (st.st_mode & 07777) == 0700 &&
           st.st_uid == (geteuid() ? geteuid() : 65534),
       "its directory is its user's alone");
    snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
    FILE *file = fopen(path, "r");
    if (file && !fgets(score, sizeof(score), file))
        score[0] = '\0';
    if (file)
        fclose(file);
    ok(!strcmp(score, "0\n"), "the OOM killer does not spare it");
    send(fd, "ended 0 0", 9, MSG_NOSIGNAL);
    n = receive(fd, text, sizeof(text), &pid);
    ok(n > 0 && !strcmp(text, "bye"), "it ends with its ranks: %s", text);
    ok(stat(directory, &st) != 0, "and leaves no directory");
}

int main(void)
{
    const char *build = getenv("DT_BUILD");
    char program[4096], config[1024];
    int ends[2], yes = 1;
    snprintf(program, sizeof(program), "%s/pmix/dt-pmixd", build ? build : ".");
    if (access(program, X_OK) != 0)
        return skip_all("no pmix/dt-pmixd");
    snprintf(directory, sizeof(directory),
             "/tmp/" DT_STEP_DIRECTORY "%d.0-test", (int)getpid());
    int length =
        snprintf(config, sizeof(config),
                 "version %d\njob 1\nstep 0\nnode 0\nnodes 1\nname n0\n"
                 "ranks 1\nlocal 0\ndirectory %s\nheartbeat 30\nlimit 60\n"
                 "auth native\ncommand test\n",
                 DT_STEP_VERSION, directory);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) < 0 ||
        setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) != 0 ||
        send(ends[0], config, (size_t)length, 0) != length)
        return skip_all("no socket");
    if (ok(start(ends[1], program), "it puts itself into the background")) {
        close(ends[1]);
        test_serves(ends[0]);
    }
    return tap_done();
}
