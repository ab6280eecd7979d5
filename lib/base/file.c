/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* file.c - complete reads and writes, and files opened with checks. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int dt_file_write(int fd, const void *buf, size_t len)
{
    const char *at = buf;
    while (len > 0) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n < 0 ? errno : EIO;
            return -1;
        }
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

ssize_t dt_file_read(int fd, void *buf, size_t len, off_t offset)
{
    size_t done = 0;
    while (done < len) {
        ssize_t n =
            pread(fd, (char *)buf + done, len - done, offset + (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

int dt_file_sync(int fd)
{
    int rc;
    do
        rc = fsync(fd);
    while (rc < 0 && errno == EINTR);
    struct stat st;
    if (rc < 0 && errno == EINVAL && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
        return 0;
    return rc;
}

static int open_regular(int dirfd, const char *name, int flags, size_t *size)
{
    int fd = openat(dirfd, name, flags | O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -1;
    struct stat st;
    int why = fstat(fd, &st) ? errno : S_ISREG(st.st_mode) ? 0 : EINVAL;
    if (why) {
        close(fd);
        errno = why;
        return -1;
    }
    *size = (size_t)st.st_size;
    return fd;
}

int dt_file_open(int dirfd, const char *name, size_t *size)
{
    return open_regular(dirfd, name, O_NOFOLLOW, size);
}

int dt_file_open_any(int dirfd, const char *name, size_t *size)
{
    return open_regular(dirfd, name, 0, size);
}

int dt_file_open_own(int dirfd, const char *name, int flags)
{
    struct stat st;
    int fd =
        openat(dirfd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
        st.st_uid == geteuid())
        return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

/* mkdir; the new entry is only safe once its parent is synced. */
static int make_dir(const char *path)
{
    if (mkdir(path, 0777))
        return errno == EEXIST ? 0 : -1;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int parent = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int saved = errno;
    close(fd);
    errno = saved;
    if (parent < 0)
        return errno == EACCES ? 0 : -1; /* a parent may be unreadable */
    int rc = dt_file_sync(parent);
    saved = errno;
    close(parent);
    errno = saved;
    return rc;
}

int dt_file_make_dirs(const char *path)
{
    char *prefix = strdup(path);
    if (!prefix)
        return -1;
    int rc = 0;
    for (size_t i = 1; rc == 0 && path[i - 1]; i++) {
        if (path[i - 1] == '/' || (path[i] && path[i] != '/'))
            continue; /* not the end of a component */
        prefix[i] = '\0';
        rc = make_dir(prefix);
        prefix[i] = path[i];
    }
    int saved = errno;
    free(prefix);
    errno = saved;
    return rc;
}

dt_result_t dt_file_result(int errnum)
{
    switch (errnum) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return DT_ERR_NO_SPACE;
    case ENOMEM:
        return DT_ERR_NO_MEMORY;
    default:
        return DT_ERR_IO;
    }
}
