/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fdpass.c - each descriptor is the one message of a connection. It waits in
 * the listener's queue, also when its sender has ended. */
#include "gpu/coll/fdpass.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Connections that are accepted; other programs may have made some. */
#define CONNECTIONS 1024

#define PREFIX "dt-gpu-"

/* "\0dt-gpu-" and the name in hex */
static socklen_t address(const struct dt_fdpass_address *name,
                         struct sockaddr_un *at)
{
    char *to = at->sun_path + 1;
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    to += sprintf(to, PREFIX);
    for (size_t i = 0; i < sizeof(name->bytes); i++)
        to += sprintf(to, "%02x", name->bytes[i]);
    return (socklen_t)(to - (char *)at);
}

static int new_socket(void)
{
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static bool is_ours(int socket)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    return !getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &len) &&
           peer.uid == geteuid();
}

dt_result_t dt_fdpass_open(int *listener, struct dt_fdpass_address *name,
                           struct dt_error *err)
{
    struct sockaddr_un at;
    if (getrandom(name, sizeof(*name), 0) != (ssize_t)sizeof(*name))
        return dt_error_set(err, DT_ERR_SYSTEM, "no random numbers: %s",
                            strerror(errno));
    int made = new_socket();
    if (made < 0 || bind(made, (void *)&at, address(name, &at)) ||
        listen(made, SOMAXCONN)) {
        dt_error_set(err, DT_ERR_SYSTEM, "no socket for descriptors: %s",
                     strerror(errno));
        if (made >= 0)
            close(made);
        return DT_ERR_SYSTEM;
    }
    *listener = made;
    return DT_SUCCESS;
}

/* ---- out ---- */

static bool send_fd(int socket, uint32_t from, int fd)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec part = {&from, sizeof(from)};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(fd));
    memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
    return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(from);
}

static dt_result_t put(int socket, const struct dt_fdpass_address *name,
                       uint32_t from, int fd, struct dt_error *err)
{
    struct sockaddr_un at;
    if (connect(socket, (void *)&at, address(name, &at)))
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "its socket is not to be reached, as in another "
                            "network namespace: %s",
                            strerror(errno));
    if (!is_ours(socket))
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "its socket is another user's");
    if (!send_fd(socket, from, fd))
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "a descriptor cannot be sent: %s", strerror(errno));
    return DT_SUCCESS;
}

dt_result_t dt_fdpass_send(const struct dt_fdpass_address *name, uint32_t from,
                           int fd, struct dt_error *err)
{
    int socket = new_socket();
    if (socket < 0)
        return dt_error_set(err, DT_ERR_SYSTEM, "no socket: %s",
                            strerror(errno));
    dt_result_t rc = put(socket, name, from, fd, err);
    close(socket);
    return rc;
}

/* ---- in ---- */

/* The descriptor that came, and whose; or -1. */
static int receive_fd(int socket, uint32_t *from)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec part = {from, sizeof(*from)};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             /* the padding would hold a second one */
                             .msg_controllen = CMSG_LEN(sizeof(int))};
    int fd = -1;
    ssize_t n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (n >= 0 && header && header->cmsg_level == SOL_SOCKET &&
        header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    if (fd >= 0 &&
        (n != (ssize_t)sizeof(*from) || message.msg_flags & MSG_CTRUNC)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

void dt_fdpass_receive(int listener, int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fds[i] = -1;
    for (int i = 0; i < CONNECTIONS; i++) {
        uint32_t from = 0;
        int socket =
            accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (socket < 0)
            return;
        int fd = is_ours(socket) ? receive_fd(socket, &from) : -1;
        close(socket);
        if (fd >= 0 && from < n && fds[from] < 0)
            fds[from] = fd;
        else if (fd >= 0)
            close(fd);
    }
}
