/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* door.c - where supervisors ask for a dead rank's place. */
#include "door.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { GUESTS = DT_DOOR_POLLS - 1, BACKLOG = 16 };

struct guest {
    int fd; /* -1: none */
    bool asks;
    size_t rank;
    int code; /* -1: has been told */
};

struct dt_door {
    int fd;
    struct sockaddr_un at;
    dt_door_replace_t *replace;
    void *arg;
    struct guest guest[GUESTS];
};

dt_result_t dt_door_open(struct dt_door **door, const char *directory,
                         dt_door_replace_t *replace, void *arg,
                         struct dt_error *err)
{
    struct dt_door *made = calloc(1, sizeof(*made));
    if (!made)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    made->at.sun_family = AF_UNIX;
    made->replace = replace;
    made->arg = arg;
    for (size_t i = 0; i < GUESTS; i++)
        made->guest[i].fd = -1;
    int length = snprintf(made->at.sun_path, sizeof(made->at.sun_path),
                          "%s/control", directory);
    made->fd =
        socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if ((size_t)length < sizeof(made->at.sun_path) && made->fd >= 0 &&
        bind(made->fd, (const struct sockaddr *)&made->at, sizeof(made->at)) ==
            0 &&
        listen(made->fd, BACKLOG) == 0) {
        *door = made;
        return DT_SUCCESS;
    }
    dt_error_set(err, DT_ERR_SYSTEM, "no socket in %s: %s", directory,
                 strerror((size_t)length < sizeof(made->at.sun_path)
                              ? errno
                              : ENAMETOOLONG));
    if (made->fd >= 0)
        close(made->fd);
    free(made);
    return DT_ERR_SYSTEM;
}

static void dismiss(struct guest *guest)
{
    close(guest->fd);
    *guest = (struct guest){.fd = -1};
}

void dt_door_close(struct dt_door *door)
{
    if (!door)
        return;
    for (size_t i = 0; i < GUESTS; i++)
        if (door->guest[i].fd >= 0)
            dismiss(&door->guest[i]);
    close(door->fd);
    unlink(door->at.sun_path);
    free(door);
}

const char *dt_door_path(const struct dt_door *door)
{
    return door->at.sun_path;
}

static struct guest *free_seat(struct dt_door *door)
{
    for (size_t i = 0; i < GUESTS; i++)
        if (door->guest[i].fd < 0)
            return &door->guest[i];
    return NULL;
}

/* Who finds no seat waits in the kernel's queue. */
void dt_door_poll(const struct dt_door *door, struct pollfd *polls)
{
    short listens = 0;
    for (size_t i = 0; i < GUESTS; i++) {
        const struct guest *guest = &door->guest[i];
        polls[i] = (struct pollfd){guest->asks ? -1 : guest->fd, POLLIN, 0};
        if (guest->fd < 0)
            listens = POLLIN;
    }
    polls[GUESTS] = (struct pollfd){listens ? door->fd : -1, POLLIN, 0};
}

static void welcome(struct dt_door *door)
{
    for (struct guest *seat; (seat = free_seat(door));) {
        struct ucred who = {.uid = (uid_t)-1};
        socklen_t size = sizeof(who);
        int fd = accept4(door->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
            who.uid == getuid())
            seat->fd = fd;
        else
            close(fd);
    }
}

static void answer(struct guest *guest, const char *text)
{
    if (send(guest->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        dismiss(guest);
    else
        guest->asks = false;
}

static bool read_question(const char *text, struct guest *guest)
{
    static const char replace[] = "replace ";
    const char *rank = text + sizeof(replace) - 1;
    char *end;
    if (strncmp(text, replace, sizeof(replace) - 1) != 0 || *rank < '0' ||
        *rank > '9')
        return false;
    errno = 0;
    guest->rank = strtoul(rank, &end, 10);
    if (errno || *end != ' ' || end[1] < '0' || end[1] > '9')
        return false;
    guest->code = (int)strtoul(end + 1, &end, 10);
    return !*end && guest->code >= 0 && guest->code <= 255;
}

static void hear(struct guest *guest)
{
    char text[64];
    ssize_t n = recv(guest->fd, text, sizeof(text) - 1, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        dismiss(guest);
        return;
    }
    text[n] = '\0';
    if (read_question(text, guest))
        guest->asks = true;
    else
        answer(guest, "error expected: replace RANK CODE");
}

static void try(struct dt_door *door, struct guest *guest)
{
    struct dt_error why;
    char text[sizeof(why.text) + 8];
    dt_result_t rc = door->replace(door->arg, guest->rank, guest->code, &why);
    guest->code = -1;
    if (rc == DT_IN_PROGRESS)
        return;
    if (rc == DT_SUCCESS)
        snprintf(text, sizeof(text), "ok");
    else
        snprintf(text, sizeof(text), "error %s", why.text);
    answer(guest, text);
}

bool dt_door_turn(struct dt_door *door)
{
    bool pending = false;
    welcome(door);
    for (size_t i = 0; i < GUESTS; i++) {
        struct guest *guest = &door->guest[i];
        if (guest->fd >= 0 && !guest->asks)
            hear(guest);
        if (guest->fd >= 0 && guest->asks)
            try(door, guest);
        pending = pending || guest->asks;
    }
    return pending;
}
