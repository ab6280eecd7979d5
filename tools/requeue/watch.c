/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* watch.c - a signal to the leaders of a step's tasks on this node, once it is
 * to leave. Slurm signals us as it does them, so a SIGTERM of Slurm's is heard
 * here, too. */
#include "requeue.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/notice.h"
#include "base/number.h"

#define PLUGIN STDIN_FILENO
enum { LOOK_MS = 100 };

struct leaders {
    int *fd; /* pidfds */
    size_t n;
};

static void add(struct leaders *leaders, int fd)
{
    int *more = realloc(leaders->fd, (leaders->n + 1) * sizeof(*more));
    if (!more) {
        close(fd);
        return;
    }
    leaders->fd = more;
    more[leaders->n++] = fd;
}

/* Wait a moment for a leader from the plugin; false when the step has ended. */
static bool receive(struct leaders *leaders)
{
    char byte;
    int fd;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(fd))];
    } control;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    struct pollfd waits = {PLUGIN, POLLIN, 0};
    if (poll(&waits, 1, LOOK_MS) <= 0)
        return true;
    ssize_t n = recvmsg(PLUGIN, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(fd))) {
        memcpy(&fd, CMSG_DATA(header), sizeof(fd));
        add(leaders, fd);
    }
    return true;
}

/* Each leader gets the signal once. One that has ended is skipped. */
static void signal_all(struct leaders *leaders, int number)
{
    for (size_t i = 0; i < leaders->n; i++) {
        syscall(SYS_pidfd_send_signal, leaders->fd[i], number, NULL, 0);
        close(leaders->fd[i]);
    }
    leaders->n = 0;
}

/* A signal that arrives meanwhile stays pending until all handlers are set. */
static void set_handlers(int number)
{
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &all, NULL);
    for (int any = 1; any <= SIGRTMAX; any++)
        if (any != SIGTERM)
            signal(any, SIG_IGN);
    /* Slurm sends its SIGTERM to the leaders, too: no second one then */
    signal(SIGTERM, number == SIGTERM ? SIG_IGN : SIG_DFL);
    dt_notice_arm();
    sigprocmask(SIG_SETMASK, &none, NULL);
}

int requeue_watch(char *const argv[])
{
    struct leaders leaders = {.n = 0};
    int64_t number;
    if (!dt_number_parse(argv[0], 1, SIGRTMAX, &number))
        return DT_EXIT_USAGE;
    set_handlers((int)number);
    while (receive(&leaders))
        if (dt_notice_seen())
            signal_all(&leaders, (int)number);
    free(leaders.fd);
    return 0;
}
