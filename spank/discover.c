/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* discover.c - run dt-topo, with an end. */
#include "discover.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_COMPLAINT = 4096,
    CHUNK = 4096,
    GRACE_MS = 100,
    CANNOT_RUN = 127,
    NOGROUP = 65534
};

/* What comes through a pipe; fd is -1 once it has ended. */
struct stream {
    int fd;
    bool cut; /* there was more than max bytes */
    size_t size, max;
    char *data; /* max bytes and room for a NUL */
};

struct run {
    pid_t pid;
    struct timespec end;
    struct stream out, complaint;
    int status; /* -1: somebody else has it */
};

/* ---- the child, between fork and exec ---- */

static void close_from(unsigned first)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, first, ~0U, 0) == 0)
        return;
#endif
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > 1 << 20)
        limit.rlim_cur = 1 << 20;
    for (unsigned fd = first; fd < limit.rlim_cur; fd++)
        close((int)fd);
}

/* Nothing may be left by which it could be root again. Nor may the user's own
 * processes take it over, which no cgroup of the job confines: for that, the
 * kernel wants them to have its group, so it gets one that they cannot have. */
static bool become(const struct dt_discover *how)
{
    const gid_t group = how->gid == NOGROUP ? NOGROUP - 1 : NOGROUP;
    const gid_t *groups = how->ngroups ? how->groups : &how->gid;
    if (getuid() != 0)
        return true;
    return seteuid(0) == 0 &&
           setgroups(how->ngroups ? how->ngroups : 1, groups) == 0 &&
           setresgid(group, group, group) == 0 &&
           setresuid(how->uid, how->uid, how->uid) == 0;
}

static void child(const struct dt_discover *how, int out, int complaint)
{
    char *const argv[] = {(char *)how->program,
                          (char *)"--cached",
                          (char *)"--node",
                          (char *)how->node,
                          how->conf ? (char *)"--conf" : NULL,
                          (char *)how->conf,
                          NULL};
    char *const env[] = {(char *)"PATH=/usr/bin:/bin", (char *)"HOME=/",
                         (char *)"LC_ALL=C", NULL};
    const struct rlimit no_core = {0, 0};
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0);
    setrlimit(RLIMIT_CORE, &no_core);
    int null = open("/dev/null", O_RDONLY);
    if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 ||
        dup2(complaint, 2) < 0)
        _exit(CANNOT_RUN);
    close_from(3);
    for (int signal_number = 1; signal_number < NSIG; signal_number++)
        signal(signal_number, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (chdir("/") != 0 || !become(how))
        _exit(CANNOT_RUN);
    execve(how->program, argv, env);
    _exit(CANNOT_RUN);
}

/* ---- the parent ---- */

static int ms_left(const struct run *run)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long long ms = (run->end.tv_sec - now.tv_sec) * 1000LL +
                   (run->end.tv_nsec - now.tv_nsec) / 1000000;
    return ms < 0 ? 0 : (int)ms;
}

static void set_end(struct run *run, int limit_ms)
{
    clock_gettime(CLOCK_MONOTONIC, &run->end);
    run->end.tv_sec += limit_ms / 1000;
    run->end.tv_nsec += limit_ms % 1000 * 1000000L;
    if (run->end.tv_nsec >= 1000000000L) {
        run->end.tv_sec++;
        run->end.tv_nsec -= 1000000000L;
    }
}

/* Pipe ends that no program we start by chance inherits. They must not be 0,
 * 1 or 2, which the child overwrites one by one. */
static bool make_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    for (int i = 0; i < 2; i++)
        if (ends[i] < 3) {
            int high = fcntl(ends[i], F_DUPFD_CLOEXEC, 3);
            close(ends[i]);
            ends[i] = high;
        }
    return ends[0] >= 0 && ends[1] >= 0;
}

static dt_result_t start(const struct dt_discover *how, struct run *run,
                         struct dt_error *err)
{
    int out[2] = {-1, -1}, complaint[2] = {-1, -1};
    bool piped = make_pipe(out) && make_pipe(complaint);
    run->pid = piped ? fork() : -1;
    if (run->pid == 0)
        child(how, out[1], complaint[1]);
    int error = errno;
    if (out[1] >= 0)
        close(out[1]);
    if (complaint[1] >= 0)
        close(complaint[1]);
    run->out.fd = out[0];
    run->complaint.fd = complaint[0];
    if (run->pid < 0)
        return dt_error_set(err, DT_ERR_SYSTEM, "%s cannot be run: %s",
                            how->program, strerror(error));
    setpgid(run->pid, run->pid); /* it may not have got there yet */
    return DT_SUCCESS;
}

static void end_stream(struct stream *stream)
{
    if (stream->fd >= 0)
        close(stream->fd);
    stream->fd = -1;
}

/* Read once. What is beyond max is read and forgotten. */
static void read_some(struct stream *stream)
{
    char chunk[CHUNK];
    ssize_t n = read(stream->fd, chunk, sizeof(chunk));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        end_stream(stream);
        return;
    }
    size_t take = (size_t)n, room = stream->max - stream->size;
    stream->cut = stream->cut || take > room;
    take = take < room ? take : room;
    memcpy(stream->data + stream->size, chunk, take);
    stream->size += take;
}

/* Until there is no more, or too much; false at the end of the time. */
static bool read_all(struct run *run)
{
    while (!run->out.cut && (run->out.fd >= 0 || run->complaint.fd >= 0)) {
        struct pollfd fds[] = {{run->out.fd, POLLIN, 0},
                               {run->complaint.fd, POLLIN, 0}};
        int left = ms_left(run);
        int ready = poll(fds, 2, left);
        if ((ready < 0 && errno != EINTR) || (ready == 0 && left == 0))
            return false;
        if (ready > 0 && fds[0].revents)
            read_some(&run->out);
        if (ready > 0 && fds[1].revents)
            read_some(&run->complaint);
    }
    return true;
}

/* Take the status of the helper, and end what it may have left in its group,
 * whose number is its own until then. slurmstepd waits for any child, and may
 * have got this one. */
static bool reap(struct run *run)
{
    siginfo_t info = {.si_pid = 0};
    if (waitid(P_PID, (id_t)run->pid, &info, WEXITED | WNOHANG | WNOWAIT) ==
        0) {
        if (!info.si_pid)
            return false;
        kill(-run->pid, SIGKILL);
        if (waitpid(run->pid, &run->status, 0) == run->pid)
            return true;
    }
    run->status = -1;
    return true;
}

/* false at the end of the time */
static bool await_end(struct run *run)
{
    while (!reap(run)) {
        if (!ms_left(run))
            return false;
        poll(NULL, 0, 1);
    }
    return true;
}

/* A process inside a driver may not even die: it is left to slurmstepd. */
static void kill_all(struct run *run)
{
    kill(-run->pid, SIGKILL);
    set_end(run, GRACE_MS);
    await_end(run);
}

static dt_result_t judge(const struct dt_discover *how, struct run *run,
                         struct dt_error *err)
{
    struct stream *said = &run->complaint;
    said->data[said->size] = '\0';
    said->data[strcspn(said->data, "\n")] = '\0';
    const char *colon = *said->data ? ": " : "";
    int status = run->status;
    if (run->out.cut)
        return dt_error_set(err, DT_ERR_SYSTEM, "%s printed more than %d bytes",
                            how->program, DT_DISCOVER_MAX_TEXT);
    if (status != -1 && WIFSIGNALED(status))
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "%s was ended by signal %d%s%.200s", how->program,
                            WTERMSIG(status), colon, said->data);
    if (status != -1 && WEXITSTATUS(status))
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "%s ended with status %d%s%.200s", how->program,
                            WEXITSTATUS(status), colon, said->data);
    if (!run->out.size)
        return dt_error_set(err, DT_ERR_SYSTEM, "%s printed nothing%s%.200s",
                            how->program, colon, said->data);
    run->out.data[run->out.size] = '\0';
    dt_error_set(err, DT_SUCCESS, "%.400s", said->data);
    return DT_SUCCESS;
}

static dt_result_t run_to_end(const struct dt_discover *how, struct run *run,
                              struct dt_error *err)
{
    dt_result_t rc = start(how, run, err);
    if (rc == DT_SUCCESS) {
        bool ended = read_all(run) && (run->out.cut || await_end(run));
        if (!ended || run->out.cut)
            kill_all(run);
        rc = ended ? judge(how, run, err)
                   : dt_error_set(err, DT_ERR_TIMED_OUT,
                                  "%s did not end within %d s", how->program,
                                  how->limit_ms / 1000);
    }
    end_stream(&run->out);
    end_stream(&run->complaint);
    return rc;
}

dt_result_t dt_discover(const struct dt_discover *how, char **text,
                        size_t *size, struct dt_error *err)
{
    if (access(how->program, X_OK) != 0)
        return dt_error_set(err, DT_ERR_NOT_FOUND, "%s: %s", how->program,
                            strerror(errno));
    char complaint[MAX_COMPLAINT + 1];
    struct run run = {.out = {.fd = -1, .max = DT_DISCOVER_MAX_TEXT},
                      .complaint = {.fd = -1, .max = MAX_COMPLAINT}};
    run.out.data = malloc(DT_DISCOVER_MAX_TEXT + 1);
    run.complaint.data = complaint;
    if (!run.out.data)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    set_end(&run, how->limit_ms);
    dt_result_t rc = run_to_end(how, &run, err);
    if (rc != DT_SUCCESS) {
        free(run.out.data);
        return rc;
    }
    *text = run.out.data;
    *size = run.out.size;
    return DT_SUCCESS;
}
