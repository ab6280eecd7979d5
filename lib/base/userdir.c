/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* userdir.c - a directory per user, below one of root's. */
#include "base/userdir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

/* Close fd; -1 with this errno. */
static int give_up(int fd, int why)
{
    close(fd);
    errno = why;
    return -1;
}

static int open_parent(const char *parent)
{
    struct stat st;
    int fd = open(parent, FLAGS);
    if (fd >= 0 && (fstat(fd, &st) || st.st_uid != 0 || (st.st_mode & 022)))
        return give_up(fd, EPERM);
    return fd;
}

static int open_child(int parent, uid_t uid)
{
    char name[16];
    struct stat st;
    snprintf(name, sizeof(name), "%u", (unsigned)uid);
    int fd = openat(parent, name, FLAGS);
    if (fd >= 0 &&
        (fstat(fd, &st) || st.st_uid != uid || (st.st_mode & 0777) != 0700))
        return give_up(fd, EPERM);
    return fd;
}

int dt_userdir_open(const char *parent, uid_t uid)
{
    int above = open_parent(parent);
    if (above < 0)
        return -1;
    int fd = open_child(above, uid);
    return fd < 0 ? give_up(above, errno) : (close(above), fd);
}

/* In a directory of root's, one that is root's was made here or by another
 * process just now, which has not got further. */
static bool make_child(int parent, uid_t uid, gid_t gid)
{
    char name[16];
    struct stat st;
    snprintf(name, sizeof(name), "%u", (unsigned)uid);
    if (mkdirat(parent, name, 0700) && errno != EEXIST)
        return false;
    int fd = openat(parent, name, FLAGS);
    if (fd < 0)
        return false;
    bool good = fstat(fd, &st) == 0 &&
                (uid == 0 || st.st_uid != 0 ||
                 (fchmod(fd, 0700) == 0 && fchown(fd, uid, gid) == 0));
    close(fd);
    return good;
}

dt_result_t dt_userdir_make(const char *parent, uid_t uid, gid_t gid,
                            struct dt_error *err)
{
    bool made = mkdir(parent, 0755) == 0;
    int above = open_parent(parent), fd = -1;
    if (above >= 0 && made)
        fchmod(above, 0755); /* whatever the umask is */
    if (above >= 0 && make_child(above, uid, gid))
        fd = open_child(above, uid);
    int why = errno;
    if (above >= 0)
        close(above);
    if (fd >= 0) {
        close(fd);
        return DT_SUCCESS;
    }
    return dt_error_set(err, DT_ERR_SYSTEM,
                        "%s must be a directory of root's that nobody else can "
                        "write, and %s/%u one of that user's with mode 0700: "
                        "%s; check where they come from, and remove them",
                        parent, parent, (unsigned)uid, strerror(why));
}
