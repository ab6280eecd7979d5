/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ckpt-child.h - a test of checkpoints in a process of its own. */
#ifndef CKPT_CHILD_H
#define CKPT_CHILD_H

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckpt-job.h"
#include "tap.h"

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
