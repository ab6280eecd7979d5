/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* jobfile.c - the directories of users, and the files of a job in them, with
 * names that somebody else has taken. */
#include "base/jobfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../tap.h"
#include "base/userdir.h"

enum { OTHER = 12345, SQUATTED = 2000 };

/* ---- the directories, which only root can make ---- */

static char parent[] = "/tmp/dt-userdir.XXXXXX", child[64], elsewhere[64];

static bool made(uid_t uid)
{
    struct dt_error why;
    if (dt_userdir_make(parent, uid, uid, &why) == DT_SUCCESS)
        return true;
    diag("%s", why.text);
    return false;
}

static bool opens(uid_t uid)
{
    int fd = dt_userdir_open(parent, uid);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void test_made(void)
{
    struct stat st;
    mode_t was = umask(077);
    rmdir(parent);
    ok(made(OTHER) && stat(parent, &st) == 0 && (st.st_mode & 07777) == 0755,
       "a directory of root's, whatever the umask is");
    umask(was);
    ok(stat(child, &st) == 0 && (st.st_mode & 07777) == 0700 &&
           st.st_uid == OTHER && st.st_gid == OTHER,
       "and in it one of the user");
    ok(made(OTHER) && opens(OTHER), "it may be there already");
    ok(chown(child, 0, 0) == 0 && !opens(OTHER) && made(OTHER) && opens(OTHER),
       "one that another process of root's has not finished");
    ok(!opens(OTHER + 1) && errno == ENOENT, "no other user has one");
}

static void test_refused(void)
{
    ok(chmod(child, 0750) == 0 && !opens(OTHER) && errno == EPERM &&
           !made(OTHER),
       "not with another mode");
    ok(chmod(child, 0700) == 0 && chown(child, OTHER + 1, 0) == 0 &&
           !opens(OTHER) && errno == EPERM && !made(OTHER),
       "not another user's");
    ok(rmdir(child) == 0 && mkdir(elsewhere, 0700) == 0 &&
           chown(elsewhere, OTHER, OTHER) == 0 &&
           symlink(elsewhere, child) == 0 && !opens(OTHER) && !made(OTHER),
       "not a link to the user's own");
    unlink(child);
    ok(made(OTHER) && chmod(parent, 01777) == 0 && !opens(OTHER) &&
           errno == EPERM && !made(OTHER),
       "not where others may write");
    ok(chmod(parent, 0755) == 0 && chown(parent, OTHER, 0) == 0 &&
           !opens(OTHER) && errno == EPERM && !made(OTHER),
       "not in a directory that is not root's");
    rmdir(child);
    rmdir(parent);
    ok(symlink(elsewhere, parent) == 0 && !opens(OTHER) && !made(OTHER),
       "not in one behind a link");
    unlink(parent);
    rmdir(elsewhere);
}

/* ---- the files ---- */

static char folder[DT_JOBFILE_PATH], prefix[DT_JOBFILE_NAME];

static void test_prefix(void)
{
    char name[DT_JOBFILE_NAME], longer[DT_JOBFILE_NAME + 64];
    dt_jobfile_prefix(name, "dt-notice", "17", "n-0_1", "c");
    ok(!strcmp(name, "dt-notice.17.n-0_1.c."), "%s", name);
    dt_jobfile_prefix(name, "dt-notice", "17", "n.0", "x/../../etc\n\xc3\xa4");
    ok(!strcmp(name, "dt-notice.17.n_0.x_______etc___."),
       "no label leads out of the folder, or is two labels");
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    dt_jobfile_prefix(name, "dt-notice", "17", "n0", longer);
    ok(strlen(name) < DT_JOBFILE_NAME, "no label is too long");
}

static void test_notice(void)
{
    char path[DT_JOBFILE_PATH] = "", second[DT_JOBFILE_PATH] = "";
    struct dt_error why;
    struct stat st;
    mode_t was = umask(0);
    ok(dt_jobfile_make_notice(prefix, 3, path, &why) == DT_SUCCESS &&
           stat(path, &st) == 0 && st.st_size == DT_JOBFILE_SIZE,
       "a notice file");
    umask(was);
    ok((st.st_mode & 07777) == 0600 && st.st_uid == geteuid(),
       "which nobody else reads or writes");
    ok(dt_jobfile_make_notice(prefix, 3, second, &why) == DT_SUCCESS &&
           strcmp(path, second) != 0,
       "its name cannot be guessed");
    unlink(path);
    unlink(second);
    char longer[DT_JOBFILE_NAME];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    ok(dt_jobfile_make_notice(longer, 3, path, &why) == DT_ERR_SYSTEM,
       "too long: %.40s", why.text);
}

static void name_taken(char path[1200], int i)
{
    snprintf(path, 1200, "%s/%s%04d", folder, prefix, i);
}

/* Links are as good as files of somebody else, and anybody can make them. */
static void take_names(void)
{
    char path[1200];
    for (int i = 0; i < SQUATTED; i++) {
        name_taken(path, i);
        int fd = geteuid() == 0 && i % 2
                     ? open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666)
                     : -1;
        if (fd < 0 && symlink("/dev/null", path) != 0)
            abort();
        if (fd >= 0 && fchown(fd, OTHER, OTHER) != 0)
            abort();
        if (fd >= 0)
            close(fd);
    }
}

static void give_names_back(void)
{
    char path[1200];
    for (int i = 0; i < SQUATTED; i++) {
        name_taken(path, i);
        unlink(path);
    }
}

static void test_record(void)
{
    char text[16] = "";
    const char *name;
    take_names();
    ok(dt_jobfile_open_record(prefix, false) < 0,
       "files of others, and links, are no record");
    ok(geteuid() != 0 || !dt_jobfile_exists(OTHER + 1, prefix),
       "and do not look like one");
    int first = dt_jobfile_open_record(prefix, true);
    ok(first >= 0, "a record is made in spite of them");
    int again = dt_jobfile_open_record(prefix, true);
    struct stat one = {0}, two = {0};
    ok(again >= 0 && fstat(first, &one) == 0 && fstat(again, &two) == 0 &&
           one.st_ino == two.st_ino && one.st_nlink == 1 &&
           (one.st_mode & 07777) == 0600,
       "and found in spite of them");
    ok(write(first, "a\n", 2) == 2 && write(again, "b\n", 2) == 2,
       "two processes append to it");
    ok(dt_jobfile_exists(geteuid(), prefix), "it exists");
    DIR *opened = dt_jobfile_folder(geteuid(), NULL);
    int fd = dt_jobfile_next(opened, prefix, O_RDONLY, &name);
    ok(fd >= 0 && read(fd, text, sizeof(text)) == 4 &&
           !memcmp(text, "a\nb\n", 4) && unlinkat(dirfd(opened), name, 0) == 0,
       "its lines");
    ok(dt_jobfile_next(opened, prefix, O_RDONLY, &name) < 0,
       "it is the only one");
    close(fd);
    close(first);
    close(again);
    closedir(opened);
    give_names_back();
}

int main(void)
{
    char number[32];
    alarm(120);
    if (geteuid() == 0 && mkdtemp(parent)) {
        snprintf(child, sizeof(child), "%s/%d", parent, OTHER);
        snprintf(elsewhere, sizeof(elsewhere), "%s.else", parent);
        test_made();
        test_refused();
    } else {
        ok(true, "the directories of users # SKIP only root makes them");
    }
    DIR *opened = dt_jobfile_folder(geteuid(), folder);
    if (!ok(opened != NULL, "the folder is %s", folder))
        return tap_done();
    closedir(opened);
    snprintf(number, sizeof(number), "test-%d", (int)getpid());
    dt_jobfile_prefix(prefix, DT_JOBFILE_RECORD, number, "n0", "c");
    test_prefix();
    test_notice();
    test_record();
    return tap_done();
}
