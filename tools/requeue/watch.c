/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* watch.c - one process per step and node, which writes the notice when Slurm
 * sends SIGTERM or the job's time is nearly over, signals the leaders of the
 * tasks, and removes the notice file after them. Slurm signals this process as
 * it does the leaders, so that its SIGTERM arrives here, too. */
#include "requeue.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/deadline.h"
#include "base/env.h"
#include "base/exit.h"
#include "base/notice.h"
#include "base/number.h"
#include "jobfile.h"

#define PLUGIN STDIN_FILENO
/* The notice of dt-requeue is a change of the file. Without a signal to send,
 * only the clock is to be read. */
enum { LOOK_MS = 100, CLOCK_MS = 1000 };

struct watch {
    const char *notice; /* NULL: the step has no file */
    int number;         /* of the signal for the leaders; 0: none */
    int term;           /* a signalfd of SIGTERM */
    bool leave;         /* the step is to leave */
    bool spared;        /* the leaders need no signal, or none any more */
    int *leader;        /* pidfds */
    size_t n, signalled;
};

/* ---- leaders ---- */

static void add(struct watch *watch, int fd)
{
    int *more = realloc(watch->leader, (watch->n + 1) * sizeof(*more));
    if (!more) {
        close(fd);
        return;
    }
    watch->leader = more;
    more[watch->n++] = fd;
}

/* A leader from the plugin; false when the plugin has closed its end, or
 * slurmstepd is gone. */
static bool receive(struct watch *watch)
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
    ssize_t n = recvmsg(PLUGIN, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(fd))) {
        memcpy(&fd, CMSG_DATA(header), sizeof(fd));
        add(watch, fd);
    }
    return true;
}

/* Each leader gets the signal once. One that has ended is skipped. */
static void signal_leaders(struct watch *watch)
{
    for (; watch->signalled < watch->n; watch->signalled++)
        syscall(SYS_pidfd_send_signal, watch->leader[watch->signalled],
                watch->number, NULL, 0);
}

/* At once where the step has ended; if slurmstepd was killed, its tasks go on,
 * and look at the file as long as they run. */
static void await_leaders(const struct watch *watch)
{
    for (size_t i = 0; i < watch->n; i++) {
        struct pollfd ended = {watch->leader[i], POLLIN, 0};
        while (poll(&ended, 1, -1) < 0 && errno == EINTR)
            continue;
    }
}

/* ---- the notice ---- */

static bool take_term(const struct watch *watch)
{
    struct signalfd_siginfo info;
    return read(watch->term, &info, sizeof(info)) == sizeof(info);
}

/* Once. Slurm sends its SIGTERM to the leaders, too: no second one then. */
static void look(struct watch *watch)
{
    bool term = take_term(watch);
    if (watch->leave || (!term && !dt_notice_seen()))
        return;
    watch->leave = true;
    watch->spared = !watch->number || (term && watch->number == SIGTERM);
    if (watch->notice)
        jobfile_write_notice(watch->notice,
                             term ? "Slurm sent SIGTERM"
                                  : "the job's time is nearly over");
}

/* false: the step has ended. */
static bool wait_for_event(struct watch *watch)
{
    struct pollfd event[] = {{PLUGIN, POLLIN, 0}, {watch->term, POLLIN, 0}};
    int ms = watch->leave ? -1 : watch->number ? LOOK_MS : CLOCK_MS;
    return poll(event, 2, ms) <= 0 || !event[0].revents || receive(watch);
}

/* SIGTERM stays pending from the start of this process on. */
static int block_signals(void)
{
    sigset_t all, term;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    return signalfd(-1, &term, SFD_NONBLOCK | SFD_CLOEXEC);
}

int requeue_watch(char *const argv[])
{
    struct watch watch = {.notice = getenv(DT_ENV_NOTICE)};
    int64_t number;
    if (!dt_number_parse(argv[0], 0, SIGRTMAX, &number))
        return DT_EXIT_USAGE;
    watch.number = (int)number;
    if (watch.notice && !*watch.notice)
        watch.notice = NULL;
    watch.term = block_signals();
    dt_notice_arm();
    while (wait_for_event(&watch)) {
        look(&watch);
        if (watch.leave && !watch.spared)
            signal_leaders(&watch);
    }
    await_leaders(&watch);
    if (watch.notice)
        unlink(watch.notice);
    return 0;
}
