/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* input.c - all bytes of a file or a pipe. */
#include "topo/sources/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "topo/sources.h"

enum { SECONDS = 60 }; /* for the writer of a pipe, between two writes */

/* More of fd, which may be a pipe whose writer takes its time; -1 with err. */
static ssize_t read_some(int fd, int seconds, char *into, size_t size,
                         struct dt_error *err)
{
    for (;;) {
        struct pollfd entry = {.fd = fd, .events = POLLIN};
        int ready = poll(&entry, 1, seconds * 1000);
        ssize_t n = ready > 0 ? read(fd, into, size) : -1;
        if (n >= 0)
            return n;
        if (ready == 0) {
            dt_error_set(err, DT_ERR_IO, "no data came within %d s", seconds);
            return -1;
        }
        if (errno != EINTR && errno != EAGAIN) {
            dt_error_set(err, DT_ERR_IO, "cannot read: %s", strerror(errno));
            return -1;
        }
    }
}

dt_result_t dt_input_read(int fd, int seconds, char **data, size_t *len,
                          struct dt_error *err)
{
    size_t size = 64 << 10, used = 0;
    char *buf = malloc(size);
    while (buf) {
        ssize_t n = read_some(fd, seconds, buf + used, size - used - 1, err);
        if (n < 0) {
            free(buf);
            return DT_ERR_IO;
        }
        used += (size_t)n;
        if (used > DT_TOPO_MAX_FILE) {
            free(buf);
            return dt_error_set(err, DT_ERR_CORRUPT,
                                "more than %d MiB: no topology is that large",
                                DT_TOPO_MAX_FILE >> 20);
        }
        if (n == 0) {
            buf[used] = '\0';
            *data = buf;
            *len = used;
            return DT_SUCCESS;
        }
        if (used + 1 == size) {
            char *more = realloc(buf, size *= 2);
            if (!more)
                free(buf);
            buf = more;
        }
    }
    return dt_no_memory(err);
}

/* A file or a pipe; anything else may have no end. O_NONBLOCK: read_some() does
 * the waiting for the writer of a pipe. */
static dt_result_t open_input(const char *path, int *fd, struct dt_error *err)
{
    struct stat st;
    int opened = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (opened < 0)
        return dt_error_set(err, errno == ENOENT ? DT_ERR_NOT_FOUND : DT_ERR_IO,
                            "cannot open: %s", strerror(errno));
    if (fstat(opened, &st) == 0 &&
        (S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode))) {
        *fd = opened;
        return DT_SUCCESS;
    }
    close(opened);
    return dt_error_set(err, DT_ERR_IO, "expected a file or a pipe");
}

dt_result_t dt_input_load(const char *path, char **data, size_t *len,
                          struct dt_error *err)
{
    if (strcmp(path, "-") == 0)
        return dt_input_read(STDIN_FILENO, SECONDS, data, len, err);
    int fd = -1;
    dt_result_t rc = open_input(path, &fd, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = dt_input_read(fd, SECONDS, data, len, err);
    close(fd);
    return rc;
}
