/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* directory.c - the private directory of a step's PMIx server. */
#include "daemon/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/step.h"
#include "base/userdir.h"

enum { SAMPLE = 16384, OPEN_AT_ONCE = 16 };

/* PMIx's message, when it cannot write its files, names no file. */
static bool can_write(const char *path)
{
    char file[sizeof(((struct sockaddr_un *)0)->sun_path)], sample[SAMPLE];
    memset(sample, 1, sizeof(sample));
    snprintf(file, sizeof(file), "%s/sample", path);
    int fd = open(file, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    ssize_t n = write(fd, sample, sizeof(sample));
    int error = n < 0 ? errno : ENOSPC;
    close(fd);
    unlink(file);
    errno = error;
    return n == (ssize_t)sizeof(sample);
}

dt_result_t dt_directory_make(const char *path, struct dt_error *err)
{
    if (strlen(path) + sizeof("/control") >
        sizeof(((struct sockaddr_un *)0)->sun_path))
        return dt_error_set(err, DT_ERR_SYSTEM,
                            "%.128s: too long for sockets in it", path);
    if (mkdir(path, 0700) != 0)
        return dt_error_set(err,
                            errno == ENOSPC ? DT_ERR_NO_SPACE : DT_ERR_SYSTEM,
                            "%s cannot be made: %s", path, strerror(errno));
    if (can_write(path))
        return DT_SUCCESS;
    int error = errno;
    rmdir(path);
    return dt_error_set(err, DT_ERR_NO_SPACE,
                        "nothing can be written in %s: %s", path,
                        strerror(error));
}

static int remove_entry(const char *path, const struct stat *st, int type,
                        struct FTW *where)
{
    (void)st, (void)type, (void)where;
    remove(path);
    return 0;
}

static bool is_ours(const char *path)
{
    static const char begin[] = "/" DT_STEP_DIRECTORY;
    char run[32];
    const char *name = strrchr(path, '/');
    size_t length = name ? (size_t)(name - path) : 0;
    snprintf(run, sizeof(run), DT_USERDIR_RUN "/%u", (unsigned)geteuid());
    return name && strncmp(name, begin, sizeof(begin) - 1) == 0 &&
           ((length == strlen("/tmp") && !strncmp(path, "/tmp", length)) ||
            (length == strlen(run) && !strncmp(path, run, length)));
}

dt_result_t dt_directory_remove(const char *path, struct dt_error *err)
{
    struct stat st;
    if (!is_ours(path))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%.128s: not a directory of dt-pmixd, which are "
                            "called /tmp/" DT_STEP_DIRECTORY
                            "... or " DT_USERDIR_RUN "/UID/" DT_STEP_DIRECTORY
                            "...",
                            path);
    if (lstat(path, &st) != 0 && errno == ENOENT)
        return DT_SUCCESS;
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%s: not a directory of this user", path);
    nftw(path, remove_entry, OPEN_AT_ONCE, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    if (lstat(path, &st) == 0)
        return dt_error_set(err, DT_ERR_SYSTEM, "%s cannot be removed", path);
    return DT_SUCCESS;
}
