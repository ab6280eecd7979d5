/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* rendezvous.c - srun's side of the rendezvous. */
#include "server/rendezvous.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper.h"

enum { FORK_MS = 5000, BACKLOG = 1024 };

/* For IPv6 and IPv4, where the kernel has both. */
static int open_socket(void)
{
    const struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    const struct sockaddr_in four = {.sin_family = AF_INET};
    const int no = 0;
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)) == 0 &&
        bind(fd, (const struct sockaddr *)&six, sizeof(six)) == 0 &&
        listen(fd, BACKLOG) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 &&
        bind(fd, (const struct sockaddr *)&four, sizeof(four)) == 0 &&
        listen(fd, BACKLOG) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool port_of(int fd, uint16_t *port)
{
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } at;
    socklen_t length = sizeof(at);
    if (getsockname(fd, &at.any, &length) != 0)
        return false;
    *port = ntohs(at.any.sa_family == AF_INET ? at.four.sin_port
                                              : at.six.sin6_port);
    return true;
}

static dt_result_t spawn(const struct dt_rendezvous *self, int listener,
                         int life, struct dt_error *err)
{
    char number[5][16];
    const uint32_t numbers[] = {self->job, self->step, self->nodes, self->ranks,
                                (uint32_t)self->limit};
    char *argv[9] = {(char *)self->program, (char *)"--meet"};
    for (size_t i = 0; i < 5; i++) {
        snprintf(number[i], sizeof(number[i]), "%u", (unsigned)numbers[i]);
        argv[2 + i] = number[i];
    }
    argv[7] = (char *)self->munge;
    const struct dt_helper helper = {
        .argv = argv,
        .fd = {listener, life, -1},
        .user = {.uid = getuid(), .gid = getgid()},
    };
    pid_t pid;
    int status;
    dt_result_t rc = dt_helper_start(&helper, &pid, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (!dt_helper_await(pid, FORK_MS, &status)) {
        dt_helper_kill(pid);
        status = 1;
    }
    if (status && status != -1)
        return dt_error_set(err, DT_ERR_SYSTEM, "%s cannot be run",
                            self->program);
    return DT_SUCCESS;
}

dt_result_t dt_rendezvous_open(const struct dt_rendezvous *self, uint16_t *port,
                               struct dt_error *err)
{
    int life[2] = {-1, -1};
    dt_result_t rc = DT_ERR_SYSTEM;
    int low = open_socket(), listener = -1;
    if (low >= 0)
        listener = fcntl(low, F_DUPFD_CLOEXEC, 3);
    if (listener >= 0 && port_of(listener, port) && dt_helper_pipe(life))
        rc = spawn(self, listener, life[0], err);
    else
        dt_error_set(err, rc, "cannot create the socket of the rendezvous: %s",
                     strerror(errno));
    if (low >= 0)
        close(low);
    if (listener >= 0)
        close(listener);
    if (life[0] >= 0)
        close(life[0]);
    /* the other end stays open for as long as this process lives */
    if (rc != DT_SUCCESS && life[1] >= 0)
        close(life[1]);
    return rc;
}

bool dt_rendezvous_names_mpi(FILE *command_line, size_t program)
{
    static const char name[] = "--mpi";
    const size_t length = sizeof(name) - 1;
    size_t room = 0, count = 0, before = 0;
    char *argument = NULL;
    bool named = false;
    while (getdelim(&argument, &room, '\0', command_line) >= 0) {
        named = named || (!strncmp(argument, name, length) &&
                          (!argument[length] || argument[length] == '='));
        before += !named;
        count++;
    }
    free(argument);
    return before + program < count;
}

void dt_rendezvous_first_node(const char *nodelist, char *name, size_t size)
{
    size_t length = 0;
    bool inside = false, skip = false; /* of a bracket, past its first */
    for (const char *c = nodelist; *c && (inside || *c != ','); c++) {
        if (*c == '[')
            inside = true;
        else if (*c == ']')
            inside = skip = false;
        else if (inside && (*c == '-' || *c == ','))
            skip = true;
        else if (!skip && length + 1 < size)
            name[length++] = *c;
    }
    name[length] = '\0';
}

bool dt_rendezvous_is_host(const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.:%"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return *text && !text[strspn(text, plain)];
}
