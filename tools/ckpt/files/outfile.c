/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* outfile.c - a file that is written completely or not at all. */
#include "files/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/format/format.h"

static dt_result_t exists(const struct outfile *out, struct dt_error *err)
{
    return dt_error_set(err, DT_ERR_INVALID_ARG,
                        "%s is there already; --force replaces it", out->name);
}

/* Open the directory of path; *base is its last component. */
static int open_parent(int dirfd, const char *path, const char **base)
{
    char parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    *base = slash ? slash + 1 : path;
    size_t len = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
    if (len >= sizeof(parent)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(parent, path, len);
    parent[len] = '\0';
    return openat(dirfd, len ? parent : ".",
                  O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

dt_result_t outfile_open(struct outfile *out, int dirfd, const char *path,
                         bool force, struct dt_error *err)
{
    struct outfile o = {.force = force};
    struct stat st;
    const char *base;
    o.dirfd = open_parent(dirfd, path, &base);
    if (o.dirfd < 0)
        return dt_failed(err, path);
    int n = snprintf(o.name, sizeof(o.name), "%s", base);
    /* not made from base, which may be as long as a name can be */
    snprintf(o.tmp, sizeof(o.tmp), ".dt-ckpt.tmp-%ld", (long)getpid());
    dt_result_t rc = DT_SUCCESS;
    if (n == 0 || n >= (int)sizeof(o.name))
        rc = dt_error_set(err, DT_ERR_INVALID_ARG, "%s: no name for a file",
                          path);
    else if (fstatat(o.dirfd, o.name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
             (!force || S_ISDIR(st.st_mode)))
        rc = S_ISDIR(st.st_mode)
                 ? dt_error_set(err, DT_ERR_INVALID_ARG,
                                "%s is a directory, expected a file", path)
                 : exists(&o, err);
    if (rc == DT_SUCCESS) {
        o.fd = openat(o.dirfd, o.tmp,
                      O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        rc = o.fd < 0 ? dt_failed(err, path) : DT_SUCCESS;
    }
    if (rc == DT_SUCCESS)
        *out = o;
    else
        close(o.dirfd);
    return rc;
}

/* Give it its name. */
static dt_result_t publish(const struct outfile *out, struct dt_error *err)
{
    int rc = out->force ? -1
                        : renameat2(out->dirfd, out->tmp, out->dirfd, out->name,
                                    RENAME_NOREPLACE);
    if (rc && !out->force && errno == EEXIST)
        return exists(out, err);
    if (rc) /* forced, or a file system without that call */
        rc = renameat(out->dirfd, out->tmp, out->dirfd, out->name);
    return rc || dt_file_sync(out->dirfd) ? dt_failed(err, out->name)
                                          : DT_SUCCESS;
}

dt_result_t outfile_close(struct outfile *out, dt_result_t rc,
                          struct dt_error *err)
{
    if (rc == DT_SUCCESS && dt_file_sync(out->fd))
        rc = dt_failed(err, out->name);
    if (close(out->fd) && rc == DT_SUCCESS)
        rc = dt_failed(err, out->name);
    if (rc == DT_SUCCESS)
        rc = publish(out, err);
    if (rc != DT_SUCCESS)
        unlinkat(out->dirfd, out->tmp, 0);
    close(out->dirfd);
    return rc;
}
