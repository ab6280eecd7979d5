/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ckpt-trouble.c - saving when the disk is full, read-only or elsewhere, and
 * when a rank dies: every rank says the same, and nothing is left behind. */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckpt-job.h"
#include "tap.h"

#define OLDER "step-000000000010"

/* Run test(dir) in a child, which may change its limits and mounts. Its
 * result: 0 good, 77 cannot be tried here. The child prints diagnoses. */
static int in_child(int (*test)(const char *dir), const char *dir)
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

static void try(int (*test)(const char *dir), const char *what)
{
    char *dir = ckpt_temp_dir();
    int rc = in_child(test, dir);
    ok(rc == 0 || rc == 77, "%s%s", what,
       rc == 77 ? " # SKIP needs a mount namespace" : "");
    ckpt_remove_tree(dir);
}

/* A save of step 20 fails like this and leaves only step 10, which loads. */
static int fails(struct ckpt_job *job, int size, dt_result_t want,
                 const char *says)
{
    int rc = ckpt_save(job, size);
    diag("%s", job->text[size - 1]);
    if (rc != (int)want || !strstr(job->text[0], says) ||
        !strstr(job->text[0], "step-000000000020 not saved: ") ||
        !strstr(job->text[0], OLDER " is kept")) {
        diag("result %d", rc);
        return 1;
    }
    if (strcmp(ckpt_list(job->dir), OLDER " ") != 0) {
        diag("left: %s", ckpt_list(job->dir));
        return 1;
    }
    return 0;
}

static int save_older(struct ckpt_job *job, int size)
{
    job->step = 10;
    int rc = ckpt_save(job, size);
    job->step = 20;
    if (rc != DT_SUCCESS)
        diag("%s", job->text[0]);
    return rc != DT_SUCCESS;
}

static int load_older(struct ckpt_job *job, int size)
{
    int rc = ckpt_load(job, size);
    if (rc == DT_SUCCESS && job->got[0] == 10 && job->right[size - 1])
        return 0;
    diag("load: result %d, step %lld: %s", rc, (long long)job->got[0],
         job->text[0]);
    return 1;
}

static int file_too_large(const char *dir)
{
    struct ckpt_job job = {.dir = dir, .model = MODEL_LARGE};
    if (save_older(&job, 3))
        return 1;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){300000, RLIM_INFINITY});
    if (fails(&job, 3, DT_ERR_NO_SPACE,
              "rank 0: rank-00000-of-00003.safetensors: File too large"))
        return 1;
    return load_older(&job, 3);
}

static bool put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    return file && fputs(text, file) >= 0 && fclose(file) == 0;
}

/* Mount something on dir that only this process sees; without privilege, as
 * root of a namespace. */
static bool private_mount(const char *dir, const char *options)
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

static int disk_full(const char *dir)
{
    struct ckpt_job job = {.dir = dir, .model = MODEL_LARGE};
    if (!private_mount(dir, "size=5m"))
        return 77;
    if (save_older(&job, 3) ||
        fails(&job, 3, DT_ERR_NO_SPACE, "No space left on device"))
        return 1;
    return load_older(&job, 3);
}

/* The tensors find room, the manifest does not. */
static int no_room_for_names(const char *dir)
{
    struct ckpt_job job = {.dir = dir};
    if (!private_mount(dir, "nr_inodes=9"))
        return 77;
    if (save_older(&job, 2) || /* root, step, 2 files, manifest: 4 left */
        fails(&job, 3, DT_ERR_NO_SPACE, "No space left on device"))
        return 1;
    return load_older(&job, 2);
}

static int read_only(const char *dir)
{
    struct ckpt_job job = {.dir = dir};
    if (!private_mount(dir, "size=5m"))
        return 77;
    if (save_older(&job, 2) ||
        mount(NULL, dir, NULL, MS_REMOUNT | MS_RDONLY, NULL))
        return 1;
    int rc = ckpt_save(&job, 2);
    diag("%s", job.text[1]);
    return rc != DT_ERR_IO || !strstr(job.text[1], "Read-only file system");
}

/* The directory turns read-only while the job runs. */
static void save_read_only(void *arg)
{
    const char *dir = arg;
    dt_ckpt_t ckpt = NULL;
    if (dt_ckpt_open(dir, 1, &ckpt) == DT_SUCCESS &&
        dt_ckpt_save(ckpt, 10) == DT_SUCCESS) {
        mount(NULL, dir, NULL, MS_REMOUNT | MS_RDONLY, NULL);
        dt_result_t rc = dt_ckpt_save(ckpt, 20);
        diag("%s", dt_last_error());
        if (rc == DT_ERR_IO &&
            strstr(dt_last_error(), "Read-only file system; " OLDER) &&
            dt_ckpt_load(ckpt, &(int64_t){0}) == DT_SUCCESS)
            diag("good");
        else
            _exit(1);
    }
    dt_ckpt_close(ckpt);
}

static int turns_read_only(const char *dir)
{
    if (!private_mount(dir, "size=5m"))
        return 77;
    fake_world_run(1, save_read_only, (void *)dir);
    return 0;
}

/* ---- the directory ---- */

static void test_directory(void)
{
    char *dir = ckpt_temp_dir(), *path = NULL, *below = NULL;
    if (asprintf(&path, "%s/file", dir) < 0 ||
        asprintf(&below, "%s/file/ckpt", dir) < 0)
        abort();
    FILE *file = fopen(path, "w");
    if (!file || fclose(file))
        abort();
    struct ckpt_job job = {.dir = path};
    ok(ckpt_save(&job, 2) == DT_ERR_IO && strstr(job.text[1], path) &&
           strstr(job.text[1], "Not a directory"),
       "a file in its place: %s", job.text[1]);
    job.dir = below;
    ok(ckpt_load(&job, 2) == DT_ERR_IO &&
           strstr(job.text[1], "Not a directory"),
       "a file above it: %s", job.text[1]);
    if (geteuid() == 0) {
        ok(true, "an unwritable directory # SKIP root may write anywhere");
    } else {
        chmod(dir, 0500);
        job.dir = dir;
        ok(ckpt_save(&job, 2) == DT_ERR_IO &&
               strstr(job.text[1], "Permission denied"),
           "an unwritable directory: %s", job.text[1]);
        chmod(dir, 0700);
    }
    free(path);
    free(below);
    ckpt_remove_tree(dir);
}

static int not_shared(const char *dir)
{
    char *a = NULL, *b = NULL;
    if (asprintf(&a, "%s/a", dir) < 0 || asprintf(&b, "%s/ckpt", dir) < 0 ||
        mkdir(a, 0700) || mkdir(b, 0700) || chdir(a))
        return 1;
    struct ckpt_job job = {.dir = "ckpt", .elsewhere = dir};
    int rc = ckpt_save(&job, 3);
    diag("%s", job.text[0]);
    if (rc != DT_ERR_IO || !strstr(job.text[0], "rank 1 does not find") ||
        !strstr(job.text[0], "a file system that all nodes share"))
        return 1;
    if (strcmp(ckpt_list("ckpt"), "") != 0)
        return 1;
    free(a);
    free(b);
    return 0;
}

/* ---- a rank dies ---- */

static int dead_rank, dead_at; /* of three; the collective it dies in */

static int dies_in_save(const char *dir)
{
    struct ckpt_job job = {.dir = dir, .step = 10, .keep = 1};
    ckpt_save(&job, 3);
    job.step = 20;
    job.die_rank = dead_rank;
    job.die_at = dead_at;
    ckpt_save(&job, 3);
    for (int r = 0; r < 3; r++)
        if (r != dead_rank && (job.rc[r] != DT_ERR_PROC_FAILED ||
                               !strstr(job.text[r], "a rank is gone")))
            return 1;
    diag("left: %s", ckpt_list(dir));
    /* rank 0 decides between the two collectives */
    int64_t want = dead_at == 2 ? 20 : 10;
    job.die_at = 0;
    if (ckpt_load(&job, 3) != DT_SUCCESS || !job.right[0] || job.got[0] != want)
        return 1;
    job.step = 30;
    return ckpt_save(&job, 3) != DT_SUCCESS ||
           strcmp(ckpt_list(dir), "step-000000000030 ") != 0;
}

static int dies_in_load(const char *dir)
{
    struct ckpt_job job = {.dir = dir, .step = 10};
    ckpt_save(&job, 3);
    job.die_rank = dead_rank;
    job.die_at = dead_at;
    ckpt_load(&job, 3);
    for (int r = 0; r < 3; r++)
        if (r != dead_rank && job.rc[r] != DT_ERR_PROC_FAILED)
            return 1;
    return 0;
}

/* One rank alone is told that the vote failed: rank 0 has all votes and goes
 * on, so it must not take its file away. */
static int deaf(const char *dir)
{
    struct ckpt_job job = {
        .dir = dir, .step = 20, .die_rank = 2, .die_at = 1, .deaf = true};
    ckpt_save(&job, 3);
    for (int r = 0; r < 3; r++)
        if (job.rc[r] != DT_ERR_PROC_FAILED)
            return 1;
    job.die_at = 0;
    return ckpt_load(&job, 3) != DT_SUCCESS || job.got[0] != 20;
}

static void test_deaths(void)
{
    try(deaf, "a rank that does not hear of the others' votes");
    for (dead_rank = 0; dead_rank < 3; dead_rank += 2) {
        char what[64];
        for (dead_at = 1; dead_at <= 2; dead_at++) {
            snprintf(what, sizeof(what), "rank %d dies in vote %d of save",
                     dead_rank, dead_at);
            try(dies_in_save, what);
        }
        for (dead_at = 1; dead_at <= 3; dead_at++) {
            snprintf(what, sizeof(what), "rank %d dies in vote %d of load",
                     dead_rank, dead_at);
            try(dies_in_load, what);
        }
    }
}

int main(void)
{
    alarm(120);
    test_directory();
    try(not_shared, "a directory that is another one for each node");
    try(file_too_large, "a limit on the size of a file");
    try(disk_full, "a full disk");
    try(no_room_for_names, "a disk without room for another file");
    try(read_only, "a read-only directory");
    try(turns_read_only, "a directory that turns read-only");
    test_deaths();
    return tap_done();
}
