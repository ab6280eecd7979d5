/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* daemon.c - the plugin's end of the socket to dt-pmixd. */
#include "server/daemon.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/step.h"
#include "base/userdir.h"

enum { FORK_MS = 5000, END_MS = 3000, CLEAN_MS = 2000, STUCK_MS = 1000 };
enum { LINGER_MS = 60000 }; /* of one wait of many */
enum { AT_ONCE = 1000 };    /* packets, of a daemon that does not stop */

dt_result_t dt_daemon_name(struct dt_daemon *daemon, uint32_t job,
                           uint32_t step, struct dt_error *err)
{
    char top[32] = "/tmp";
    uint64_t chance;
    int fd = dt_userdir_open(DT_USERDIR_RUN, daemon->user.uid);
    if (fd >= 0) {
        snprintf(top, sizeof(top), DT_USERDIR_RUN "/%u",
                 (unsigned)daemon->user.uid);
        close(fd);
    }
    if (getrandom(&chance, sizeof(chance), GRND_NONBLOCK) != sizeof(chance))
        return dt_error_set(err, DT_ERR_SYSTEM, "getrandom: %s",
                            strerror(errno));
    snprintf(daemon->directory, sizeof(daemon->directory),
             "%s/" DT_STEP_DIRECTORY "%u.%u-%016llx", top, (unsigned)job,
             (unsigned)step, (unsigned long long)chance);
    return DT_SUCCESS;
}

/* ---- packets ---- */

enum packet { NOTHING, READY, FAILED, SAY, BYE, GONE };

static const struct {
    const char *word;
    enum packet packet;
} packets[] = {
    {"ready\n", READY}, {"failed ", FAILED}, {"say ", SAY}, {"bye", BYE}};

/* The control buffer has room for the sender's credentials only: descriptors
 * that the daemon, a process of the user's, may send are dropped. */
static ssize_t receive(struct dt_daemon *daemon, char *room)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct iovec part = {room, DT_STEP_PACKET};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    struct ucred sender;
    ssize_t n = recvmsg(daemon->fd, &message, MSG_DONTWAIT | MSG_TRUNC);
    const struct cmsghdr *header = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header && header->cmsg_level == SOL_SOCKET &&
        header->cmsg_type == SCM_CREDENTIALS &&
        header->cmsg_len == CMSG_LEN(sizeof(sender))) {
        memcpy(&sender, CMSG_DATA(header), sizeof(sender));
        daemon->pid = sender.pid;
    }
    return n;
}

/* The next packet; *text is what follows its first word. One that is not in the
 * protocol counts as the end of the daemon. */
static enum packet take(struct dt_daemon *daemon, char *room, const char **text)
{
    ssize_t n = receive(daemon, room);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return NOTHING;
    if (n <= 0 || n >= DT_STEP_PACKET)
        return GONE;
    room[n] = '\0';
    for (size_t i = 0; i < sizeof(packets) / sizeof(packets[0]); i++) {
        size_t length = strlen(packets[i].word);
        if (!strncmp(room, packets[i].word, length)) {
            *text = room + length;
            return packets[i].packet;
        }
    }
    return GONE;
}

static enum packet await(struct dt_daemon *daemon, long long end, char *room,
                         const char **text)
{
    for (;;) {
        struct pollfd poll_fd = {daemon->fd, POLLIN, 0};
        int left = dt_helper_ms_left(end);
        int ready = poll(&poll_fd, 1, left);
        enum packet packet = ready > 0 ? take(daemon, room, text) : NOTHING;
        if (packet != NOTHING || (ready == 0 && left == 0) ||
            (ready < 0 && errno != EINTR))
            return packet;
    }
}

/* A daemon that is gone is no error here: its end is reported elsewhere. */
static void notify(struct dt_daemon *daemon, const char *what, uint32_t rank,
                   int number)
{
    char text[64];
    int length =
        snprintf(text, sizeof(text), "%s %u %d", what, (unsigned)rank, number);
    const int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    if (!daemon->fd || daemon->stuck ||
        send(daemon->fd, text, (size_t)length, flags) >= 0)
        return;
    struct pollfd room = {daemon->fd, POLLOUT, 0};
    daemon->stuck = errno != EAGAIN || poll(&room, 1, STUCK_MS) != 1 ||
                    send(daemon->fd, text, (size_t)length, flags) < 0;
}

/* ---- starting ---- */

/* The daemon forks twice; as a subreaper, slurmstepd becomes its parent. Then
 * Slurm takes it for a process of the step also where it finds these by their
 * parents, and kills and suspends it with the step. */
static bool start_to_adopt(void)
{
    int already = 0;
    return prctl(PR_GET_CHILD_SUBREAPER, &already, 0, 0, 0) == 0 && !already &&
           prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
}

static dt_result_t spawn(const struct dt_daemon *daemon, int theirs,
                         struct dt_error *err)
{
    char *const argv[] = {(char *)daemon->program, NULL};
    const struct dt_helper helper = {
        .argv = argv, .fd = {theirs, -1, -1}, .user = daemon->user};
    pid_t pid;
    int status;
    bool adopting = start_to_adopt();
    dt_result_t rc = dt_helper_start(&helper, &pid, err);
    bool ended = rc == DT_SUCCESS && dt_helper_await(pid, FORK_MS, &status);
    if (adopting) /* other processes of the user are not adopted */
        prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
    if (rc != DT_SUCCESS)
        return rc;
    if (!ended) {
        dt_helper_kill(pid);
        return dt_error_set(err, DT_ERR_TIMED_OUT,
                            "%s did not start within %d s", daemon->program,
                            FORK_MS / 1000);
    }
    if (status != -1 && (!WIFEXITED(status) || WEXITSTATUS(status)))
        return dt_error_set(err, DT_ERR_SYSTEM, "%s cannot be run",
                            daemon->program);
    return DT_SUCCESS;
}

static dt_result_t await_ready(struct dt_daemon *daemon, int limit_ms,
                               char *room, struct dt_error *err)
{
    const char *text = "";
    switch (await(daemon, dt_helper_end(limit_ms), room, &text)) {
    case READY:
        daemon->env = strdup(text);
        return daemon->env ? DT_SUCCESS
                           : dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    case FAILED:
        return dt_error_set(err, DT_ERR_BOOTSTRAP, "%.*s",
                            (int)strcspn(text, "\n"), text);
    case NOTHING:
        return dt_error_set(err, DT_ERR_TIMED_OUT,
                            "%s was not ready after %d s", daemon->program,
                            limit_ms / 1000);
    default:
        return dt_error_set(err, DT_ERR_SYSTEM, "%s ended without a message",
                            daemon->program);
    }
}

static dt_result_t start(struct dt_daemon *daemon, const char *config,
                         int limit_ms, char *room, struct dt_error *err)
{
    const int yes = 1;
    int ends[2] = {-1, -1};
    dt_result_t rc = DT_ERR_SYSTEM;
    if (!dt_helper_socket(ends) ||
        setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) != 0)
        dt_error_set(err, rc, "cannot create a socket to the daemon: %s",
                     strerror(errno));
    else if (send(ends[0], config, strlen(config),
                  MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        dt_error_set(err, rc, "the configuration of %s cannot be sent: %s",
                     daemon->program, strerror(errno));
    else /* the configuration is in the socket before the daemon starts */
        rc = spawn(daemon, ends[1], err);
    if (ends[1] >= 0)
        close(ends[1]);
    if (rc != DT_SUCCESS) {
        if (ends[0] >= 0)
            close(ends[0]);
        return rc;
    }
    daemon->fd = ends[0];
    return await_ready(daemon, limit_ms, room, err);
}

dt_result_t dt_daemon_start(struct dt_daemon *daemon, const char *config,
                            int limit_ms, struct dt_error *err)
{
    char *room = malloc(DT_STEP_PACKET);
    if (!room)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    dt_result_t rc = start(daemon, config, limit_ms, room, err);
    free(room);
    if (rc != DT_SUCCESS)
        dt_daemon_end(daemon, NULL);
    return rc;
}

/* ---- while it runs ---- */

void dt_daemon_notify_started(struct dt_daemon *daemon, uint32_t rank, int pid)
{
    notify(daemon, "started", rank, pid);
}

bool dt_daemon_notify_ended(struct dt_daemon *daemon, uint32_t rank, int status)
{
    if (!daemon->fd || daemon->ended == rank + 1)
        return false;
    daemon->ended = rank + 1;
    notify(daemon, "ended", rank,
           WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    return --daemon->running == 0;
}

static void print_line(struct dt_daemon *daemon, const char *text,
                       dt_daemon_print_t *print)
{
    if (!print || daemon->lines >= DT_DAEMON_LINES)
        return;
    print(text);
    if (++daemon->lines == DT_DAEMON_LINES)
        print("further lines of this step's PMIx server are left out");
}

void dt_daemon_receive(struct dt_daemon *daemon, dt_daemon_print_t *print)
{
    const char *text;
    enum packet packet = SAY;
    char *room = daemon->fd ? malloc(DT_STEP_PACKET) : NULL;
    for (int i = 0; room && packet == SAY && i < AT_ONCE; i++) {
        packet = take(daemon, room, &text);
        if (packet == SAY)
            print_line(daemon, text, print);
    }
    daemon->ended_itself = daemon->ended_itself || packet == BYE;
    free(room);
}

dt_result_t dt_daemon_pass_services(const struct dt_daemon *daemon, int socket,
                                    struct dt_error *err)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec part = {(char *)"services", strlen("services")};
    const struct msghdr message = {.msg_iov = &part,
                                   .msg_iovlen = 1,
                                   .msg_control = &control,
                                   .msg_controllen = sizeof(control)};
    control.header = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                                      .cmsg_type = SCM_RIGHTS,
                                      .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(&control.header), &socket, sizeof(socket));
    return daemon->fd && sendmsg(daemon->fd, &message, MSG_NOSIGNAL) >= 0
               ? DT_SUCCESS
               : dt_error_set(err, DT_ERR_SYSTEM,
                              "dt-pmixd takes no services: %s",
                              strerror(errno));
}

void dt_daemon_linger(struct dt_daemon *daemon, dt_daemon_print_t *print)
{
    const char *text;
    enum packet packet = SAY;
    char *room = daemon->fd ? malloc(DT_STEP_PACKET) : NULL;
    while (room && packet != BYE && packet != GONE) {
        packet = await(daemon, dt_helper_end(LINGER_MS), room, &text);
        if (packet == SAY)
            print_line(daemon, text, print);
    }
    daemon->ended_itself = daemon->ended_itself || packet == BYE;
    free(room);
}

bool dt_daemon_variable(const char **at, char *room, size_t size,
                        const char **value)
{
    while (*at && **at) {
        const char *line = *at;
        size_t length = strcspn(line, "\n");
        *at = line + length + (line[length] == '\n');
        char *equals = memchr(line, '=', length);
        if (!equals || length >= size)
            continue;
        memcpy(room, line, length);
        room[length] = '\0';
        room[equals - line] = '\0';
        *value = room + (equals - line) + 1;
        return true;
    }
    return false;
}

/* ---- the end ---- */

/* Slurm kills a step by its cgroup, and the daemon may be in that of the job
 * only. If it is no child of this process any more, its number may be another
 * process's by now. */
static void kill_daemon(const struct dt_daemon *daemon)
{
    siginfo_t info;
    if (daemon->pid > 0 && waitid(P_PID, (id_t)daemon->pid, &info,
                                  WEXITED | WNOHANG | WNOWAIT) == 0)
        dt_helper_kill(daemon->pid);
}

/* Remove the files of a daemon that was killed. */
static void clean(const struct dt_daemon *daemon)
{
    char *const argv[] = {(char *)daemon->program, (char *)"--clean",
                          (char *)daemon->directory, NULL};
    const struct dt_helper helper = {
        .argv = argv, .fd = {-1, -1, -1}, .user = daemon->user};
    pid_t pid;
    int status;
    if (dt_helper_start(&helper, &pid, NULL) == DT_SUCCESS &&
        !dt_helper_await(pid, CLEAN_MS, &status))
        dt_helper_kill(pid);
}

void dt_daemon_end(struct dt_daemon *daemon, dt_daemon_print_t *print)
{
    const char *text;
    enum packet packet = SAY;
    char *room = malloc(DT_STEP_PACKET);
    if (!daemon->fd) {
        free(room);
        return;
    }
    shutdown(daemon->fd, SHUT_WR);
    long long end = dt_helper_end(END_MS);
    while (room && !daemon->ended_itself &&
           (packet == SAY || packet == READY || packet == FAILED)) {
        packet =
            dt_helper_ms_left(end) ? await(daemon, end, room, &text) : NOTHING;
        if (packet == SAY)
            print_line(daemon, text, print);
    }
    if (packet != BYE && !daemon->ended_itself) {
        kill_daemon(daemon);
        clean(daemon);
    }
    free(room);
    free(daemon->env);
    close(daemon->fd);
    daemon->env = NULL;
    daemon->fd = 0;
}
