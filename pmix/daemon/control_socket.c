/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* control_socket.c - where supervisors ask for replacements. */
#include "daemon/control_socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/number.h"

enum { CLIENTS = DT_CONTROL_POLLS - 1, BACKLOG = 16 };

struct client {
    int fd; /* -1: none */
    bool asks;
    size_t rank;
    int code; /* -1: the callback has it */
};

struct dt_control {
    int fd;
    struct sockaddr_un at;
    dt_control_replace_t *replace;
    void *arg;
    struct client client[CLIENTS];
};

dt_result_t dt_control_open(struct dt_control **control, const char *directory,
                            dt_control_replace_t *replace, void *arg,
                            struct dt_error *err)
{
    struct dt_control *made = calloc(1, sizeof(*made));
    if (!made)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    made->at.sun_family = AF_UNIX;
    made->replace = replace;
    made->arg = arg;
    for (size_t i = 0; i < CLIENTS; i++)
        made->client[i].fd = -1;
    int length = snprintf(made->at.sun_path, sizeof(made->at.sun_path),
                          "%s/control", directory);
    made->fd =
        socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if ((size_t)length < sizeof(made->at.sun_path) && made->fd >= 0 &&
        bind(made->fd, (const struct sockaddr *)&made->at, sizeof(made->at)) ==
            0 &&
        listen(made->fd, BACKLOG) == 0) {
        *control = made;
        return DT_SUCCESS;
    }
    dt_error_set(err, DT_ERR_SYSTEM,
                 "cannot create the control socket in %s: %s", directory,
                 strerror((size_t)length < sizeof(made->at.sun_path)
                              ? errno
                              : ENAMETOOLONG));
    if (made->fd >= 0)
        close(made->fd);
    free(made);
    return DT_ERR_SYSTEM;
}

static void drop(struct client *client)
{
    close(client->fd);
    *client = (struct client){.fd = -1};
}

void dt_control_close(struct dt_control *control)
{
    if (!control)
        return;
    for (size_t i = 0; i < CLIENTS; i++)
        if (control->client[i].fd >= 0)
            drop(&control->client[i]);
    close(control->fd);
    unlink(control->at.sun_path);
    free(control);
}

const char *dt_control_path(const struct dt_control *control)
{
    return control->at.sun_path;
}

static struct client *free_client(struct dt_control *control)
{
    for (size_t i = 0; i < CLIENTS; i++)
        if (control->client[i].fd < 0)
            return &control->client[i];
    return NULL;
}

/* A connection beyond these waits in the kernel's queue. */
void dt_control_poll(const struct dt_control *control, struct pollfd *polls)
{
    short listens = 0;
    for (size_t i = 0; i < CLIENTS; i++) {
        const struct client *client = &control->client[i];
        polls[i] = (struct pollfd){client->asks ? -1 : client->fd, POLLIN, 0};
        if (client->fd < 0)
            listens = POLLIN;
    }
    polls[CLIENTS] = (struct pollfd){listens ? control->fd : -1, POLLIN, 0};
}

static void accept_clients(struct dt_control *control)
{
    for (struct client *client; (client = free_client(control));) {
        struct ucred who = {.uid = (uid_t)-1};
        socklen_t size = sizeof(who);
        int fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
            who.uid == getuid())
            client->fd = fd;
        else
            close(fd);
    }
}

static void answer(struct client *client, const char *text)
{
    if (send(client->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        drop(client);
    else
        client->asks = false;
}

static bool read_request(const char *text, struct client *client)
{
    static const char replace[] = "replace ";
    const char *at = text + sizeof(replace) - 1;
    uint64_t rank, code;
    if (strncmp(text, replace, sizeof(replace) - 1) != 0 ||
        !dt_number_scan(&at, 10, SIZE_MAX, &rank) || *at++ != ' ' ||
        !dt_number_scan(&at, 10, 255, &code) || *at)
        return false;
    client->rank = rank;
    client->code = (int)code;
    return true;
}

static void receive(struct client *client)
{
    char text[64];
    ssize_t n = recv(client->fd, text, sizeof(text) - 1, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        drop(client);
        return;
    }
    text[n] = '\0';
    if (read_request(text, client))
        client->asks = true;
    else
        answer(client, "error expected: replace RANK CODE");
}

static void try_replace(struct dt_control *control, struct client *client)
{
    struct dt_error why;
    char text[sizeof(why.text) + 8];
    dt_result_t rc =
        control->replace(control->arg, client->rank, client->code, &why);
    client->code = -1;
    if (rc == DT_IN_PROGRESS)
        return;
    if (rc == DT_SUCCESS)
        snprintf(text, sizeof(text), "ok");
    else
        snprintf(text, sizeof(text), "error %s", why.text);
    answer(client, text);
}

bool dt_control_progress(struct dt_control *control)
{
    bool pending = false;
    accept_clients(control);
    for (size_t i = 0; i < CLIENTS; i++) {
        struct client *client = &control->client[i];
        if (client->fd >= 0 && !client->asks)
            receive(client);
        if (client->fd >= 0 && client->asks)
            try_replace(control, client);
        pending = pending || client->asks;
    }
    return pending;
}
