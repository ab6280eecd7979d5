/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* discover.c - run dt-topo, with a limit. */
#include "placement/discover.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_ERROR_TEXT = 4096, CHUNK = 4096 };

/* The data of a pipe; fd is -1 after end of file. */
struct stream {
    int fd;
    bool cut; /* there was more than max bytes */
    size_t size, max;
    char *data; /* max bytes and room for a NUL */
};

struct run {
    pid_t pid;
    long long end;
    struct stream out, error;
    int status; /* -1: another thread has reaped it */
};

static bool make_pipes(int out[2], int error[2])
{
    return dt_helper_pipe(out) && dt_helper_pipe(error);
}

/* It is not confined by the job's cgroup, so the user's other processes must
 * not control it by ptrace: it gets a group that they cannot have. */
static dt_result_t start(const struct dt_discover *how, struct run *run,
                         struct dt_error *err)
{
    int out[2] = {-1, -1}, error[2] = {-1, -1};
    char *const argv[] = {(char *)how->program,
                          (char *)"--cached",
                          (char *)"--node",
                          (char *)how->node,
                          how->conf ? (char *)"--conf" : NULL,
                          (char *)how->conf,
                          NULL};
    const gid_t none = DT_HELPER_NOGROUP;
    struct dt_helper helper = {.argv = argv, .user = how->user};
    helper.user.gid = how->user.gid == none ? none - 1 : none;
    if (!helper.user.groups) {
        helper.user.groups = &how->user.gid;
        helper.user.ngroups = 1;
    }
    dt_result_t rc = DT_ERR_SYSTEM;
    if (make_pipes(out, error)) {
        helper.fd[0] = -1;
        helper.fd[1] = out[1];
        helper.fd[2] = error[1];
        rc = dt_helper_start(&helper, &run->pid, err);
    } else {
        dt_error_set(err, rc, "no pipe: %s", strerror(errno));
    }
    if (out[1] >= 0)
        close(out[1]);
    if (error[1] >= 0)
        close(error[1]);
    run->out.fd = out[0];
    run->error.fd = error[0];
    return rc;
}

static void end_stream(struct stream *stream)
{
    if (stream->fd >= 0)
        close(stream->fd);
    stream->fd = -1;
}

/* Read once; what is beyond max is dropped. */
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

/* Read until both pipes end, or there is too much; false: the limit passed. */
static bool read_all(struct run *run)
{
    while (!run->out.cut && (run->out.fd >= 0 || run->error.fd >= 0)) {
        struct pollfd fds[] = {{run->out.fd, POLLIN, 0},
                               {run->error.fd, POLLIN, 0}};
        int left = dt_helper_ms_left(run->end);
        int ready = poll(fds, 2, left);
        if ((ready < 0 && errno != EINTR) || (ready == 0 && left == 0))
            return false;
        if (ready > 0 && fds[0].revents)
            read_some(&run->out);
        if (ready > 0 && fds[1].revents)
            read_some(&run->error);
    }
    return true;
}

static dt_result_t check_end(const struct dt_discover *how, struct run *run,
                             struct dt_error *err)
{
    struct stream *text = &run->error;
    text->data[text->size] = '\0';
    text->data[strcspn(text->data, "\n")] = '\0';
    const char *colon = *text->data ? ": " : "";
    int status = run->status;
    if (run->out.cut)
        return dt_error_set(err, DT_ERR_SYSTEM, "%s printed more than %d bytes",
                            how->program, DT_DISCOVER_MAX_TEXT);
    if (status != -1 && WIFSIGNALED(status))
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "%s was ended by signal %d%s%.200s", how->program,
                            WTERMSIG(status), colon, text->data);
    if (status != -1 && WEXITSTATUS(status))
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "%s ended with status %d%s%.200s", how->program,
                            WEXITSTATUS(status), colon, text->data);
    if (!run->out.size)
        return dt_error_set(err, DT_ERR_SYSTEM, "%s printed nothing%s%.200s",
                            how->program, colon, text->data);
    run->out.data[run->out.size] = '\0';
    dt_error_set(err, DT_SUCCESS, "%.400s", text->data);
    return DT_SUCCESS;
}

static dt_result_t run_to_end(const struct dt_discover *how, struct run *run,
                              struct dt_error *err)
{
    dt_result_t rc = start(how, run, err);
    if (rc == DT_SUCCESS) {
        bool ended = read_all(run) &&
                     (run->out.cut ||
                      dt_helper_await(run->pid, dt_helper_ms_left(run->end),
                                      &run->status));
        if (!ended || run->out.cut)
            dt_helper_kill(run->pid);
        rc = ended ? check_end(how, run, err)
                   : dt_error_set(err, DT_ERR_TIMED_OUT,
                                  "%s did not end within %d s", how->program,
                                  how->limit_ms / 1000);
    }
    end_stream(&run->out);
    end_stream(&run->error);
    return rc;
}

dt_result_t dt_discover(const struct dt_discover *how, char **text,
                        size_t *size, struct dt_error *err)
{
    char error[MAX_ERROR_TEXT + 1];
    struct run run = {.out = {.fd = -1, .max = DT_DISCOVER_MAX_TEXT},
                      .error = {.fd = -1, .max = MAX_ERROR_TEXT}};
    run.out.data = malloc(DT_DISCOVER_MAX_TEXT + 1);
    run.error.data = error;
    if (!run.out.data)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory");
    run.end = dt_helper_end(how->limit_ms);
    dt_result_t rc = run_to_end(how, &run, err);
    if (rc != DT_SUCCESS) {
        free(run.out.data);
        return rc;
    }
    *text = run.out.data;
    *size = run.out.size;
    return DT_SUCCESS;
}
