/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* peer-check.c - accept() of a process that is a PMIx server: connections of
 * other users never come out of it. */
#include "server/peer_check.h"

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tap.h"

enum { LONG = 60000 /* ms */ };

static int listener;
static struct sockaddr_in at;

static bool open_listener(void)
{
    socklen_t len = sizeof(at);
    at = (struct sockaddr_in){.sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    listener = socket(AF_INET, SOCK_STREAM, 0);
    return listener >= 0 && bind(listener, (struct sockaddr *)&at, len) == 0 &&
           listen(listener, 16) == 0 &&
           getsockname(listener, (struct sockaddr *)&at, &len) == 0;
}

static int connect_here(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0 ? fd : -1;
}

/* As user 65534: connect, report that, and wait for the end of the connection.
 * Its exit code: 0 if that came. */
static pid_t fork_stranger(int report)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    char byte = 0;
    if (setgid(65534) != 0 || setuid(65534) != 0)
        _exit(2);
    struct pollfd fd = {connect_here(), POLLIN, 0};
    if (fd.fd < 0 || write(report, &byte, 1) != 1 || poll(&fd, 1, LONG) != 1)
        _exit(3);
    _exit(recv(fd.fd, &byte, 1, 0) == 1 ? 4 : 0);
}

/* The connection that comes out of accept() is our own, made here. */
static bool accepts_own(int client)
{
    struct sockaddr_in from = {0}, here = {0};
    socklen_t from_len = sizeof(from), here_len = sizeof(here);
    int fd = accept(listener, (struct sockaddr *)&from, &from_len);
    bool own = fd >= 0 &&
               getsockname(client, (struct sockaddr *)&here, &here_len) == 0 &&
               from.sin_port == here.sin_port;
    close(fd);
    return own;
}

int main(void)
{
    int pipes[2], status = 0;
    char byte;
    if (!open_listener() || pipe(pipes) < 0)
        return skip_all("no loopback device");
    ok(dt_peer_check_works(), "the kernel tells whose a socket is");
    int own = connect_here();
    ok(own >= 0 && accepts_own(own), "a connection of this user is accepted");
    close(own);
    if (geteuid() != 0) {
        ok(true, "another user's # SKIP needs root");
        return tap_done();
    }
    fflush(stdout);
    pid_t pid = fork_stranger(pipes[1]);
    close(pipes[1]);
    bool came = read(pipes[0], &byte, 1) == 1;
    own = connect_here(); /* it is behind the stranger's in the queue */
    ok(came && accepts_own(own), "another user's is passed over");
    waitpid(pid, &status, 0);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
       "and closed without a byte");
    close(own);
    return tap_done();
}
