/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* checkpoint.c - a checkpoint on disk, and its bytes, verified. */
#include "files/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/format/format.h"

/* ---- which one ---- */

static bool has_manifest(int fd)
{
    struct stat st;
    return fstatat(fd, DT_MANIFEST_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Of "DIR/step-150" the directory "DIR/step-000000000150", or -1. */
static int open_short_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    char name[DT_STORE_NAME], *end, *parent = NULL;
    errno = ENOENT;
    if (strncmp(base, "step-", 5) != 0 || base[5] < '0' || base[5] > '9')
        return -1;
    errno = 0;
    long long step = strtoll(base + 5, &end, 10);
    if (errno || *end || !(parent = strdup(path))) {
        errno = ENOENT;
        return -1;
    }
    dt_store_name(name, step);
    int dirfd = dt_store_open(dirname(parent));
    int fd = dirfd < 0 ? -1 : dt_store_open_at(dirfd, name);
    int saved = errno;
    if (dirfd >= 0)
        close(dirfd);
    free(parent);
    errno = saved;
    return fd;
}

/* Open what is at path. */
static dt_result_t open_path(struct checkpoint *c, const char *path,
                             struct dt_error *err)
{
    c->fd = dt_store_open(path);
    if (c->fd < 0 && errno == ENOENT)
        c->fd = open_short_name(path);
    return c->fd < 0 ? dt_failed(err, path) : DT_SUCCESS;
}

/* Open the newest checkpoint in the directory path, which is open as c->fd. */
static dt_result_t enter_newest(struct checkpoint *c, const char *path,
                                struct dt_error *err)
{
    struct dt_store_entry *entry;
    size_t count, i = 0;
    dt_result_t rc = dt_store_list(c->fd, &entry, &count, err);
    if (rc != DT_SUCCESS)
        return dt_failed_in(err, path, rc);
    while (i < count && !entry[i].complete)
        i++;
    if (i == count) {
        free(entry);
        return dt_error_set(err, DT_ERR_NOT_FOUND,
                            "%s: no complete checkpoint here; expected "
                            "step-N/" DT_MANIFEST_NAME,
                            path);
    }
    int fd = dt_store_open_at(c->fd, entry[i].name);
    if (fd < 0 || asprintf(&c->path, "%s/%s", path, entry[i].name) < 0) {
        rc = fd < 0 ? dt_failed(err, entry[i].name) : dt_no_memory(err);
        c->path = NULL;
    }
    free(entry);
    if (fd >= 0) {
        close(c->fd);
        c->fd = fd;
    }
    return rc;
}

/* ---- opening ---- */

/* Set everything except c->fd and c->path, which are set. */
static dt_result_t begin(struct checkpoint *c, struct dt_error *err)
{
    struct dt_manifest *m = &c->manifest;
    dt_result_t rc = dt_manifest_read(m, c->fd, &c->identity, err);
    if (rc != DT_SUCCESS)
        return dt_failed_in(err, c->path, rc);
    dt_store_name(c->name, m->step);
    for (size_t i = 0; i < m->nfiles; i++)
        c->bytes += m->file[i].size;
    c->whole = calloc(m->nfiles + 1, sizeof(*c->whole));
    return c->whole ? DT_SUCCESS : dt_no_memory(err);
}

dt_result_t checkpoint_open(struct checkpoint *c, const char *path,
                            struct dt_error *err)
{
    struct checkpoint found = {.fd = -1, .in = -1, .open_file = -1};
    char *plain = strdup(path); /* without a slash at its end */
    if (!plain)
        return dt_no_memory(err);
    for (size_t len = strlen(plain); len > 1 && plain[len - 1] == '/';)
        plain[--len] = '\0';
    dt_result_t rc = open_path(&found, plain, err);
    if (rc == DT_SUCCESS && !has_manifest(found.fd))
        rc = enter_newest(&found, plain, err);
    if (found.path)
        free(plain);
    else
        found.path = plain;
    if (rc == DT_SUCCESS)
        rc = begin(&found, err);
    if (rc == DT_SUCCESS)
        *c = found;
    else
        checkpoint_close(&found);
    return rc;
}

dt_result_t checkpoint_open_at(struct checkpoint *c, int dirfd, const char *dir,
                               const char *name, struct dt_error *err)
{
    struct checkpoint found = {.in = -1, .open_file = -1};
    found.fd = dt_store_open_at(dirfd, name);
    dt_result_t rc = DT_SUCCESS;
    if (asprintf(&found.path, "%s/%s", dir, name) < 0) {
        found.path = NULL;
        rc = dt_no_memory(err);
    } else if (found.fd < 0) {
        rc = dt_failed(err, found.path);
    } else {
        rc = begin(&found, err);
    }
    if (rc == DT_SUCCESS)
        *c = found;
    else
        checkpoint_close(&found);
    return rc;
}

void checkpoint_close(struct checkpoint *c)
{
    if (c->in >= 0)
        close(c->in);
    if (c->fd >= 0)
        close(c->fd);
    dt_manifest_clear(&c->manifest);
    free(c->path);
    free(c->whole);
    free(c->block);
    *c = (struct checkpoint){.fd = -1, .in = -1, .open_file = -1};
}

/* ---- its files ---- */

static bool file_is_there(const struct checkpoint *c, size_t i)
{
    struct stat st;
    return fstatat(c->fd, c->manifest.file[i].name, &st, AT_SYMLINK_NOFOLLOW) ==
               0 &&
           S_ISREG(st.st_mode) &&
           (size_t)st.st_size == c->manifest.file[i].size;
}

static bool node_is_here(const struct checkpoint *c, int node)
{
    for (size_t i = 0; i < c->manifest.nfiles; i++)
        if (c->manifest.file[i].node == node && file_is_there(c, i))
            return true;
    return false;
}

dt_result_t checkpoint_files(const struct checkpoint *c, struct dt_error *err)
{
    const struct dt_manifest *m = &c->manifest;
    size_t missing = m->nfiles;
    for (size_t i = m->nfiles; i-- > 0;)
        if (!file_is_there(c, i)) {
            missing = i;
            if (m->num_nodes == 1 || node_is_here(c, m->file[i].node))
                return dt_error_set(err, DT_ERR_CORRUPT,
                                    "%s is missing or not of %zu bytes",
                                    m->file[i].name, m->file[i].size);
        }
    if (missing == m->nfiles)
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_NOT_FOUND,
                        "the files of node %d are not here: each node has its "
                        "own on its disk, or they are lost",
                        m->file[missing].node);
}

/* Version 1 has one checksum per file. */
static dt_result_t check_whole(struct checkpoint *c, int i,
                               struct dt_error *err)
{
    const struct dt_manifest_file *file = &c->manifest.file[i];
    uint64_t sum;
    if (c->manifest.version > 1 || c->whole[i])
        return DT_SUCCESS;
    dt_result_t rc = dt_checksum_file(c->in, file->size, &sum, err);
    if (rc == DT_SUCCESS && sum != file->checksum)
        rc = dt_error_set(err, DT_ERR_CORRUPT, "checksum differs");
    c->whole[i] = rc == DT_SUCCESS;
    return rc == DT_SUCCESS ? rc : dt_failed_in(err, file->name, rc);
}

dt_result_t checkpoint_file(struct checkpoint *c, int i, struct dt_error *err)
{
    const struct dt_manifest_file *file = &c->manifest.file[i];
    size_t size;
    if (c->open_file == i)
        return DT_SUCCESS;
    if (c->in >= 0)
        close(c->in);
    c->open_file = -1;
    c->in = dt_file_open(c->fd, file->name, &size);
    if (c->in < 0)
        return dt_failed_in(
            err, c->path,
            errno == ENOENT || errno == ELOOP || errno == EINVAL
                ? dt_error_set(err, DT_ERR_CORRUPT,
                               "%s is missing, or no regular file", file->name)
                : dt_failed(err, file->name));
    if (size != file->size)
        return dt_failed_in(err, c->path,
                            dt_error_set(err, DT_ERR_CORRUPT,
                                         "%s has %zu bytes, expected %zu",
                                         file->name, size, file->size));
    dt_result_t rc = check_whole(c, i, err);
    if (rc != DT_SUCCESS)
        return dt_failed_in(err, c->path, rc);
    c->open_file = i;
    return DT_SUCCESS;
}

/* ---- the bytes of a slice ---- */

/* Read block b of the slice, len bytes, and verify it. */
static dt_result_t read_block(struct checkpoint *c,
                              const struct dt_manifest_slice *slice, size_t b,
                              size_t len, void *to, struct dt_error *err)
{
    const char *name = c->manifest.file[slice->file].name;
    size_t at = b * DT_MANIFEST_BLOCK;
    ssize_t n = dt_file_read(c->in, to, len, (off_t)(slice->offset + at));
    if (n < 0)
        return dt_failed_in(err, c->path, dt_failed(err, name));
    if ((size_t)n < len)
        return dt_error_set(err, DT_ERR_CORRUPT, "%s: %s is truncated", c->path,
                            name);
    if (slice->sum && dt_checksum(to, len) != slice->sum[b])
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "%s: %s: the checksum of the %zu bytes from %zu on "
                            "differs",
                            c->path, name, len, slice->offset + at);
    return DT_SUCCESS;
}

dt_result_t checkpoint_read(struct checkpoint *c,
                            const struct dt_manifest_slice *slice, size_t begin,
                            size_t end, void *to, struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    if (!c->block && !(c->block = malloc(DT_MANIFEST_BLOCK)))
        return dt_no_memory(err);
    if (begin < end)
        rc = checkpoint_file(c, slice->file, err);
    for (size_t at = begin; at < end && rc == DT_SUCCESS;) {
        size_t b = at / DT_MANIFEST_BLOCK, from = b * DT_MANIFEST_BLOCK;
        size_t len = slice->bytes - from < DT_MANIFEST_BLOCK
                         ? slice->bytes - from
                         : DT_MANIFEST_BLOCK;
        size_t until = end < from + len ? end : from + len;
        char *here = (char *)to + (at - begin);
        if (at == from && until == from + len) {
            rc = read_block(c, slice, b, len, here, err);
        } else {
            rc = read_block(c, slice, b, len, c->block, err);
            if (rc == DT_SUCCESS)
                memcpy(here, c->block + (at - from), until - at);
        }
        at = until;
    }
    return rc;
}
