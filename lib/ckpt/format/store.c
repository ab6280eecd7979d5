/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* store.c - the checkpoint directory. */
#include "ckpt/format/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/format/failure.h"
#include "ckpt/format/manifest_file.h"

/* ---- names ---- */

void dt_store_name(char name[DT_STORE_NAME], int64_t step)
{
    snprintf(name, DT_STORE_NAME, "step-%012" PRId64, step);
}

void dt_store_partial_name(char name[DT_STORE_NAME], int64_t step, uint64_t tag)
{
    snprintf(name, DT_STORE_NAME, ".step-%012" PRId64 ".partial-%016" PRIx64,
             step, tag);
}

void dt_store_old_name(char name[DT_STORE_NAME], int64_t step, uint64_t tag)
{
    snprintf(name, DT_STORE_NAME, ".step-%012" PRId64 ".old-%016" PRIx64, step,
             tag);
}

/* Parse a name. It is one of the three kinds if printing the fields reproduces
 * it. */
static bool parse_name(const char *name, struct dt_store_entry *entry)
{
    char printed[DT_STORE_NAME];
    entry->hidden = name[0] == '.';
    const char *digits = name + entry->hidden + strlen("step-");
    if (strlen(name) >= sizeof(entry->name) ||
        strncmp(name + entry->hidden, "step-", strlen("step-")) != 0 ||
        *digits < '0' || *digits > '9')
        return false;
    char *end;
    errno = 0;
    entry->step = strtoll(digits, &end, 10);
    if (errno)
        return false;
    const char *dash = strrchr(end, '-');
    uint64_t tag = dash ? strtoull(dash + 1, NULL, 16) : 0;
    strcpy(entry->name, name);
    dt_store_name(printed, entry->step);
    if (strcmp(printed, name) == 0)
        return true;
    dt_store_partial_name(printed, entry->step, tag);
    if (strcmp(printed, name) == 0)
        return true;
    dt_store_old_name(printed, entry->step, tag);
    return strcmp(printed, name) == 0;
}

/* ---- listing ---- */

int dt_store_open(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int dt_store_open_at(int dirfd, const char *name)
{
    return openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static dt_result_t failed(struct dt_error *err, const char *what,
                          const char *name)
{
    int why = errno;
    return dt_error_set(err, dt_file_result(why), "cannot %s %s: %s", what,
                        name, strerror(why));
}

/* A link of such a name could point anywhere. */
static bool is_directory(int dirfd, const char *name)
{
    struct stat st;
    return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(st.st_mode);
}

static bool is_complete(int dirfd, const char *name)
{
    char path[DT_STORE_NAME + sizeof("/" DT_MANIFEST_NAME)];
    struct stat st;
    snprintf(path, sizeof(path), "%s/%s", name, DT_MANIFEST_NAME);
    return fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int newest_first(const void *a, const void *b)
{
    const struct dt_store_entry *x = a, *y = b;
    if (x->step != y->step)
        return x->step > y->step ? -1 : 1;
    if (x->hidden != y->hidden)
        return x->hidden ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* Open a stream over the directory with a position of its own. */
static DIR *open_stream(int dirfd)
{
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (!stream && fd >= 0)
        close(fd);
    return stream;
}

dt_result_t dt_store_list(int dirfd, struct dt_store_entry **entries,
                          size_t *count, struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    struct dt_store_entry *list = NULL;
    size_t used = 0, room = 0;
    DIR *stream = open_stream(dirfd);
    if (!stream)
        return failed(err, "list", "the directory");
    for (;;) {
        if (used == room) {
            room = room ? 2 * room : 64;
            void *more = realloc(list, room * sizeof(*list));
            if (!more) {
                rc = dt_no_memory(err);
                goto free_list;
            }
            list = more;
        }
        errno = 0;
        struct dirent *dirent = readdir(stream);
        if (!dirent)
            break;
        if (parse_name(dirent->d_name, &list[used]) &&
            is_directory(dirfd, dirent->d_name)) {
            list[used].complete = is_complete(dirfd, dirent->d_name);
            used++;
        }
    }
    if (errno) {
        rc = failed(err, "list", "the directory");
        goto free_list;
    }
    closedir(stream);
    qsort(list, used, sizeof(*list), newest_first);
    *entries = list;
    *count = used;
    return DT_SUCCESS;
free_list:
    free(list);
    closedir(stream);
    return rc;
}

/* ---- removing ---- */

static int unlink_if_there(int dirfd, const char *name, int flags)
{
    return unlinkat(dirfd, name, flags) && errno != ENOENT ? -1 : 0;
}

/* Remove the files of a directory. The removal of the manifest is on disk
 * before any other file is removed: after a power cut it must not be there
 * without them. */
static int empty_directory(int fd)
{
    if (unlinkat(fd, DT_MANIFEST_NAME, 0) == 0) {
        if (dt_file_sync(fd))
            return -1;
    } else if (errno != ENOENT) {
        return -1;
    }
    DIR *stream = open_stream(fd);
    if (!stream)
        return -1;
    int rc = 0;
    struct dirent *dirent;
    while (rc == 0 && (errno = 0, dirent = readdir(stream)))
        if (strcmp(dirent->d_name, ".") != 0 &&
            strcmp(dirent->d_name, "..") != 0)
            rc = unlink_if_there(fd, dirent->d_name, 0);
    rc = rc || errno ? -1 : 0;
    int saved = errno;
    closedir(stream);
    errno = saved;
    return rc;
}

dt_result_t dt_store_remove(int dirfd, const char *name, struct dt_error *err)
{
    int fd = dt_store_open_at(dirfd, name);
    if (fd < 0)
        return errno == ENOENT ? DT_SUCCESS : failed(err, "remove", name);
    int rc = empty_directory(fd);
    int saved = errno;
    close(fd);
    errno = saved;
    if (rc || unlink_if_there(dirfd, name, AT_REMOVEDIR))
        return failed(err, "remove", name);
    return DT_SUCCESS;
}

/* ---- publishing ---- */

/* Rename partial to name, which exists. On success *aside is the hidden name of
 * what was there; after an error everything is as before. */
static int replace(int dirfd, const char *partial, const char *name,
                   const char *old, const char **aside)
{
    if (renameat2(dirfd, partial, dirfd, name, RENAME_EXCHANGE) == 0) {
        *aside = partial;
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
        return -1;
    /* NFS and others cannot exchange */
    if (renameat(dirfd, name, dirfd, old))
        return -1;
    if (renameat(dirfd, partial, dirfd, name)) {
        int saved = errno;
        renameat(dirfd, old, dirfd, name);
        errno = saved;
        return -1;
    }
    *aside = old;
    return 0;
}

/* Undo the renames of dt_store_publish. */
static void withdraw(int dirfd, const char *partial, const char *name,
                     const char *old, const char *aside)
{
    if (aside == partial) {
        renameat2(dirfd, partial, dirfd, name, RENAME_EXCHANGE);
        return;
    }
    renameat(dirfd, name, dirfd, partial);
    if (aside)
        renameat(dirfd, old, dirfd, name);
}

dt_result_t dt_store_publish(int dirfd, const char *partial, int64_t step,
                             uint64_t tag, struct dt_error *err)
{
    char name[DT_STORE_NAME], old[DT_STORE_NAME];
    const char *aside = NULL;
    dt_store_name(name, step);
    dt_store_old_name(old, step, tag);
    int rc = renameat(dirfd, partial, dirfd, name);
    if (rc && errno == ENOTDIR)
        return dt_error_set(err, DT_ERR_IO,
                            "%s exists and is not a directory: check where it "
                            "comes from, and remove it",
                            name);
    if (rc && (errno == EEXIST || errno == ENOTEMPTY))
        rc = replace(dirfd, partial, name, old, &aside);
    if (rc)
        return failed(err, "rename the finished directory to", name);
    if (dt_file_sync(dirfd)) {
        dt_result_t result = failed(err, "sync the directory of", name);
        withdraw(dirfd, partial, name, old, aside);
        return result;
    }
    if (aside)
        dt_store_remove(dirfd, aside, NULL); /* else the next sweep does */
    return DT_SUCCESS;
}

/* ---- housekeeping ---- */

void dt_store_sweep(int dirfd, const char *except)
{
    struct dt_store_entry *entry;
    size_t count;
    if (dt_store_list(dirfd, &entry, &count, NULL) != DT_SUCCESS)
        return;
    for (size_t i = 0; i < count; i++) {
        if (!entry[i].hidden || strcmp(entry[i].name, except) == 0)
            continue;
        char name[DT_STORE_NAME];
        dt_store_name(name, entry[i].step);
        /* a crash between the two renames of replace() left both hidden */
        if (entry[i].complete && !is_complete(dirfd, name))
            renameat(dirfd, entry[i].name, dirfd, name);
        else
            dt_store_remove(dirfd, entry[i].name, NULL);
    }
    free(entry);
}

dt_result_t dt_store_prune(int dirfd, int64_t step, int newest, int64_t every,
                           uint64_t tag, struct dt_error *err)
{
    struct dt_store_entry *entry;
    size_t count;
    if (newest == 0)
        return DT_SUCCESS;
    dt_result_t rc = dt_store_list(dirfd, &entry, &count, err);
    if (rc != DT_SUCCESS)
        return rc;
    int kept = 1; /* step itself */
    for (size_t i = 0; i < count && rc == DT_SUCCESS; i++) {
        if (entry[i].hidden || !entry[i].complete || entry[i].step >= step ||
            (every > 0 && entry[i].step % every == 0) || kept++ < newest)
            continue;
        char old[DT_STORE_NAME];
        dt_store_old_name(old, entry[i].step, tag);
        if (renameat(dirfd, entry[i].name, dirfd, old) || dt_file_sync(dirfd))
            rc = failed(err, "rename", entry[i].name);
        else
            rc = dt_store_remove(dirfd, old, err);
    }
    free(entry);
    return rc;
}
