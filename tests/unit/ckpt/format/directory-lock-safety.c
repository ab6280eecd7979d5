/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* directory-lock-safety.c - what others may have planted in a directory, and
 * whose it may be. */
#include <sys/stat.h>

#include "ckpt/save/memory.h"
#include "directory-lock.h"

static bool refused(const char *what)
{
    dt_result_t rc = take();
    bool good = rc == DT_ERR_INVALID_ARG && strstr(err.text, "remove it");
    if (rc == DT_SUCCESS)
        dt_directory_lock_release(guard);
    ok(good, "%s: %s", what, err.text);
    unlinkat(dirfd, ".lock", 0);
    unlinkat(dirfd, ".lock", AT_REMOVEDIR);
    return good;
}

static void test_traps(void)
{
    struct stat st;
    begin();
    put("victim", "precious", 8);
    (void)!symlinkat("victim", dirfd, ".lock");
    refused("a link");
    (void)!symlinkat("nowhere", dirfd, ".lock");
    refused("a link to nothing");
    ok(fstatat(dirfd, "nowhere", &st, 0) < 0, "which stays nothing");
    (void)!linkat(dirfd, "victim", dirfd, ".lock", 0);
    refused("another name of a file");
    mkfifoat(dirfd, ".lock", 0666);
    refused("a FIFO");
    mkdirat(dirfd, ".lock", 0777);
    refused("a directory");
    ok(fstatat(dirfd, "victim", &st, 0) == 0 && st.st_size == 8,
       "the file is as it was");
    end();
}

static void test_contents(void)
{
    static const char *const text[] = {
        "",
        "\n",
        "slurm-dt lock 1",
        "slurm-dt lock 1\ngeneration 18446744073709551616\npid -1\nwhere",
        "slurm-dt lock 9\ngeneration -3\n\n\n\ngeneration \njob\n",
        "generation 7\n",
    };
    static char large[5000];
    begin();
    memset(large, 'x', sizeof(large));
    memcpy(large, "slurm-dt lock 1\nhost ", 21);
    int good = 0, n = (int)(sizeof(text) / sizeof(*text));
    for (int i = 0; i <= n; i++) {
        if (i < n)
            put(".lock", text[i], strlen(text[i]));
        else
            put(".lock", large, sizeof(large));
        good += take() == DT_SUCCESS && dt_directory_lock_held(guard) &&
                child_takes("1", "r", 0) == DT_ERR_BUSY;
        dt_directory_lock_release(guard);
    }
    ok(good == n + 1, "%d of %d contents of .lock that mean nothing", good,
       n + 1);
    ok(take_as("4\n711", "r\nun \xff", -1) == DT_SUCCESS &&
           strstr(contents(), "job 4?711\nrun r?un ?\n"),
       "no name breaks a line");
    dt_directory_lock_release(guard);
    end();
}

static void test_others(void)
{
    begin();
    if (geteuid() != 0) {
        ok(true, "another user's directory # SKIP needs root");
        end();
        return;
    }
    fchmod(dirfd, 01777);
    ok(take() == DT_SUCCESS, "one's own, in which all may write");
    dt_directory_lock_release(guard);
    if (fchown(dirfd, 12345, 0))
        abort();
    ok(take() == DT_ERR_INVALID_ARG &&
           strstr(err.text, "belongs to user 12345"),
       "another user's: %s", err.text);
    fchmod(dirfd, 0775);
    ok(take() == DT_SUCCESS, "another user's, of a group");
    dt_directory_lock_release(guard);
    end();
}

static void test_private(void)
{
    struct stat st;
    struct dt_error why;
    int fd = -1;
    begin();
    mode_t was = umask(0);
    ok(dt_memory_private_dir(dirfd, "mine", &fd, &why) == DT_SUCCESS &&
           fstat(fd, &st) == 0 && (st.st_mode & 07777) == 0700,
       "a directory of one's own");
    close(fd);
    umask(was);
    ok(dt_memory_private_dir(dirfd, "mine", &fd, &why) == DT_SUCCESS, "again");
    fchmod(fd, 0710);
    close(fd);
    ok(dt_memory_private_dir(dirfd, "mine", &fd, &why) == DT_ERR_INVALID_ARG,
       "not if others may enter: %s", why.text);
    (void)!symlinkat("mine", dirfd, "link");
    ok(dt_memory_private_dir(dirfd, "link", &fd, &why) == DT_ERR_INVALID_ARG,
       "nor through a link");
    if (geteuid() == 0) {
        (void)!fchmodat(dirfd, "mine", 0700, 0);
        (void)!fchownat(dirfd, "mine", 12345, 0, 0);
        ok(dt_memory_private_dir(dirfd, "mine", &fd, &why) ==
               DT_ERR_INVALID_ARG,
           "nor another user's");
    }
    unlinkat(dirfd, "link", 0);
    unlinkat(dirfd, "mine", AT_REMOVEDIR);
    end();
}

int main(void)
{
    alarm(300);
    test_traps();
    test_contents();
    test_others();
    test_private();
    return tap_done();
}
