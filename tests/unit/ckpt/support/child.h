/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* child.h - a test of checkpoints in a process of its own. */
#ifndef CKPT_CHILD_H
#define CKPT_CHILD_H

#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job.h"
#include "../../tap.h"

#define OLDER "step-000000000010"

/* Run test(dir) in a child, which may change its limits and mounts. Its
 * result: 0 good, 77 cannot be tried here. The child prints diagnoses. */
__attribute__((unused)) static int in_child(int (*test)(const char *dir),
                                            const char *dir)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        int rc = test(dir);
        fflush(stdout);
        _exit(rc);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        abort();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

__attribute__((unused)) static void try(int (*test)(const char *dir),
                                        const char *what)
{
    char *dir = ckpt_temp_dir();
    int rc = in_child(test, dir);
    ok(rc == 0 || rc == 77, "%s%s", what,
       rc == 77 ? " # SKIP needs privileges" : "");
    ckpt_remove_tree(dir);
}

__attribute__((unused)) static bool put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    return file && fputs(text, file) >= 0 && fclose(file) == 0;
}

/* Mount something on dir that only this process sees; without privilege, as
 * root of a namespace. */
__attribute__((unused)) static bool private_mount(const char *dir,
                                                  const char *options)
{
    char uid_map[32], gid_map[32];
    snprintf(uid_map, sizeof(uid_map), "0 %u 1", geteuid());
    snprintf(gid_map, sizeof(gid_map), "0 %u 1", getegid());
    if (unshare(CLONE_NEWNS) && (unshare(CLONE_NEWUSER | CLONE_NEWNS) ||
                                 !put("/proc/self/uid_map", uid_map) ||
                                 !put("/proc/self/setgroups", "deny") ||
                                 !put("/proc/self/gid_map", gid_map)))
        return false;
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("test", dir, "tmpfs", 0, options) == 0;
}

__attribute__((unused)) static int save_older(struct ckpt_job *job, int size)
{
    job->step = 10;
    int rc = ckpt_save(job, size);
    job->step = 20;
    if (rc != DT_SUCCESS)
        diag("%s", job->text[0]);
    return rc != DT_SUCCESS;
}

__attribute__((unused)) static int load_older(struct ckpt_job *job, int size)
{
    int rc = ckpt_load(job, size);
    if (rc == DT_SUCCESS && job->got[0] == 10 && job->right[size - 1])
        return 0;
    diag("load: result %d, step %lld: %s", rc, (long long)job->got[0],
         job->text[0]);
    return 1;
}

#endif
