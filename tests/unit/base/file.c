/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* file.c - files of one's own: what is opened, and what is refused. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../tap.h"

static int dir;

/* Its errno; 0: it was opened. */
static int refused(const char *name, int flags)
{
    int fd = dt_file_open_own(dir, name, flags);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static void test_own(void)
{
    struct stat st;
    mode_t was = umask(0);
    ok(refused("mine", O_RDWR) == ENOENT, "an absent file is not made");
    ok(refused("mine", O_RDWR | O_CREAT | O_EXCL) == 0 &&
           fstatat(dir, "mine", &st, 0) == 0 && (st.st_mode & 07777) == 0600,
       "it is made with mode 0600, whatever the umask is");
    umask(was);
    ok(refused("mine", O_RDWR) == 0, "and opened");
    ok(refused("mine", O_RDWR | O_CREAT | O_EXCL) == EEXIST, "not made twice");
}

static void test_links(void)
{
    ok(symlinkat("mine", dir, "link") == 0 &&
           refused("link", O_RDWR | O_CREAT) == ELOOP,
       "a link to one's own file is refused");
    ok(symlinkat("absent", dir, "dangling") == 0 &&
           refused("dangling", O_RDWR | O_CREAT) == ELOOP &&
           faccessat(dir, "absent", F_OK, 0) != 0,
       "a link to nothing makes nothing");
    ok(linkat(dir, "mine", dir, "second", 0) == 0 &&
           refused("mine", O_RDWR) == EPERM,
       "nor a file with a second name");
    unlinkat(dir, "second", 0);
}

static void test_kinds(void)
{
    ok(mkfifoat(dir, "pipe", 0600) == 0 && refused("pipe", O_RDONLY) == EPERM,
       "nor a pipe, and no wait for its writer");
    ok(refused(".", O_RDONLY) == EPERM, "nor a directory");
}

static void test_owner(void)
{
    if (geteuid() != 0) {
        ok(refused("/etc/passwd", O_RDONLY) == EPERM,
           "another user's file is refused");
        return;
    }
    ok(fchownat(dir, "mine", 12345, 0, 0) == 0 &&
           refused("mine", O_RDONLY) == EPERM,
       "another user's file is refused");
}

int main(void)
{
    static const char *const name[] = {"mine", "link", "dangling", "pipe"};
    char path[] = "/tmp/dt-file.XXXXXX";
    alarm(60);
    if (!mkdtemp(path) || (dir = open(path, O_RDONLY | O_DIRECTORY)) < 0)
        return skip_all("no directory in /tmp");
    test_own();
    test_links();
    test_kinds();
    test_owner();
    for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++)
        unlinkat(dir, name[i], 0);
    close(dir);
    rmdir(path);
    return tap_done();
}
