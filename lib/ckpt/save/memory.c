/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* memory.c - the directory of the memory tier on this node. */
#include "ckpt/save/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/userdir.h"
#include "ckpt/format/format.h"

#define SHM       "/dev/shm"
#define LOCK_NAME "lock"
#define DAY       86400
#define DEPTH     3 /* directories of the user's own in a path */
#define TRIES     1000

/* ---- the name ---- */

/* Identify the directory dir: another one of that name has another inode number
 * or time of birth. */
static bool identify(const char *dir, uint64_t *identity)
{
    struct {
        uint64_t path, inode;
        int64_t born[2];
    } key = {0};
    struct statx sx;
    char *path = realpath(dir, NULL);
    if (!path || statx(AT_FDCWD, path, 0, STATX_INO | STATX_BTIME, &sx)) {
        free(path);
        return false;
    }
    key.path = dt_checksum(path, strlen(path));
    key.inode = sx.stx_ino;
    if (sx.stx_mask & STATX_BTIME) {
        key.born[0] = sx.stx_btime.tv_sec;
        key.born[1] = sx.stx_btime.tv_nsec;
    }
    *identity = dt_checksum(&key, sizeof(key));
    free(path);
    return true;
}

char *dt_memory_path(const char *run_id, const char *dir)
{
    char *path = NULL, name[129];
    uint64_t identity;
    if (!identify(dir, &identity))
        return NULL;
    snprintf(name, sizeof(name), "%s", *run_id ? run_id : "none");
    for (char *c = name; *c; c++)
        if (!((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') ||
              (*c >= 'A' && *c <= 'Z') || strchr("-_", *c)))
            *c = '_'; /* so that the name cannot lead out of the directory */
    int fd = dt_userdir_open(DT_USERDIR_SHM, geteuid());
    if (fd >= 0)
        close(fd);
    if (asprintf(&path, "%s%u/%s/%016" PRIx64,
                 fd >= 0 ? DT_USERDIR_SHM "/" : SHM "/slurm-dt-",
                 (unsigned)geteuid(), name, identity) < 0)
        return NULL;
    return path;
}

static bool is_below_roots(const char *path)
{
    return strncmp(path, DT_USERDIR_SHM "/", sizeof(DT_USERDIR_SHM)) == 0;
}

/* ---- opening ---- */

static dt_result_t no_directory(const char *what, const char *name,
                                struct dt_error *err)
{
    int why = errno;
    return dt_error_set(
        err, why == ENOENT ? DT_ERR_NOT_FOUND : dt_file_result(why),
        "cannot %s the directory %s: %s", what, name, strerror(why));
}

dt_result_t dt_memory_private_dir(int dirfd, const char *name, int *fd,
                                  struct dt_error *err)
{
    struct stat st;
    if (mkdirat(dirfd, name, 0700) && errno != EEXIST)
        return no_directory("make", name, err);
    int dir = dt_store_open_at(dirfd, name);
    if (dir < 0 && errno != ELOOP && errno != ENOTDIR && errno != EACCES)
        return no_directory("open", name, err);
    if (dir >= 0 && fstat(dir, &st) == 0 && st.st_uid == geteuid() &&
        (st.st_mode & 077) == 0) {
        *fd = dir;
        return DT_SUCCESS;
    }
    if (dir >= 0)
        close(dir);
    return dt_error_set(err, DT_ERR_INVALID_ARG,
                        "%s is not a directory of this user's alone (mode "
                        "0700): check where it comes from, and remove it",
                        name);
}

/* Walk down to path; make: create what is missing. NOT_FOUND: another process
 * that had ended removed a part of it meanwhile. */
static dt_result_t walk_once(const char *path, bool make, int *result,
                             struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    size_t top = strlen(SHM "/");
    bool given = is_below_roots(path);
    if (given) /* as far as the plugin has made it */
        top = (size_t)(strchr(path + sizeof(DT_USERDIR_SHM), '/') + 1 - path);
    char *name = strdup(path + top), *at = name;
    int fd = given ? dt_userdir_open(DT_USERDIR_SHM, geteuid())
                   : open(SHM, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!name || fd < 0) {
        rc = dt_error_set(err, DT_ERR_IO, "%.*s: %s", (int)top, path,
                          strerror(errno));
        goto free_name;
    }
    while (at && rc == DT_SUCCESS) {
        char *rest = strchr(at, '/');
        struct stat st;
        int below = -1;
        if (rest)
            *rest++ = '\0';
        if (!make && fstatat(fd, at, &st, AT_SYMLINK_NOFOLLOW))
            break; /* nothing that could be wrong */
        rc = dt_memory_private_dir(fd, at, &below, err);
        if (rc == DT_SUCCESS) {
            close(fd);
            fd = below;
        }
        at = rest;
    }
    if (rc == DT_SUCCESS)
        *result = fd;
    else
        close(fd);
free_name:
    free(name);
    return rc;
}

static dt_result_t walk(const char *path, bool make, int *fd,
                        struct dt_error *err)
{
    struct dt_error why = {0};
    dt_result_t rc = DT_ERR_NOT_FOUND;
    for (int i = 0; rc == DT_ERR_NOT_FOUND && i < TRIES; i++)
        rc = walk_once(path, make, fd, &why);
    if (rc != DT_SUCCESS) /* the errors of earlier attempts do not matter */
        *err = why;
    return rc;
}

dt_result_t dt_memory_open(const char *path, int *fd, struct dt_error *err)
{
    return walk(path, true, fd, err);
}

dt_result_t dt_memory_check(const char *path, struct dt_error *err)
{
    int fd;
    dt_result_t rc = walk(path, false, &fd, err);
    if (rc == DT_SUCCESS)
        close(fd);
    return rc;
}

/* ---- the lock ---- */

/* Locks of fcntl are not inherited by what the process forks. */
static int try_lock(int lock)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(lock, F_SETLK, &whole);
}

dt_result_t dt_memory_lock(int fd, int *lock, struct dt_error *err)
{
    int new =
        openat(fd, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (new < 0)
        return dt_error_set(err, dt_file_result(errno), LOCK_NAME ": %s",
                            strerror(errno));
    if (try_lock(new)) {
        close(new);
        return dt_error_set(err, DT_ERR_BUSY,
                            "another process of this run has it");
    }
    *lock = new;
    return DT_SUCCESS;
}

/* ---- removing ---- */

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    remove(path); /* a file that cannot be removed stays */
    return 0;
}

void dt_memory_remove(const char *path)
{
    char *above = strdup(path);
    nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    /* the plugin's directory stays: only root could make it anew */
    for (int i = 1; above && i < DEPTH - is_below_roots(path); i++) {
        *strrchr(above, '/') = '\0';
        if (rmdir(above))
            break;
    }
    free(above);
}

/* Is the directory, which belongs to another run, a leftover? */
static bool is_leftover(const char *path)
{
    char *name = NULL;
    struct stat st;
    bool old = lstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
               time(NULL) - st.st_mtime > DAY;
    if (!old || asprintf(&name, "%s/" LOCK_NAME, path) < 0)
        return false;
    int lock = open(name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    bool locked = lock < 0 ? errno != ENOENT : try_lock(lock) != 0;
    if (lock >= 0)
        close(lock);
    free(name);
    return !locked;
}

static void sweep_run(const char *run, const char *mine)
{
    struct dirent *entry;
    DIR *dir = opendir(run);
    while (dir && (entry = readdir(dir))) {
        char path[PATH_MAX];
        if (entry->d_name[0] == '.' ||
            snprintf(path, sizeof(path), "%s/%s", run, entry->d_name) >=
                (int)sizeof(path))
            continue;
        if (strcmp(path, mine) != 0 && is_leftover(path))
            dt_memory_remove(path);
    }
    if (dir)
        closedir(dir);
}

void dt_memory_sweep(const char *path)
{
    char *top = strdup(path);
    struct dirent *entry;
    for (int i = 1; top && i < DEPTH; i++)
        *strrchr(top, '/') = '\0';
    DIR *dir = top ? opendir(top) : NULL;
    while (dir && (entry = readdir(dir))) {
        char run[PATH_MAX];
        if (entry->d_name[0] != '.' &&
            snprintf(run, sizeof(run), "%s/%s", top, entry->d_name) <
                (int)sizeof(run))
            sweep_run(run, path);
    }
    if (dir)
        closedir(dir);
    free(top);
}
