/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* errors.c - saving when the disk is full, read-only, elsewhere, taken
 * away, and when a rank dies: every rank says the same, and nothing is left
 * behind. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../support/child.h"
#include "../support/faulty-calls.h"

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
    if (!private_mount(dir, "nr_inodes=10"))
        return 77;
    if (save_older(&job, 2) || /* root, step, 2 files, manifest: 5 left */
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

static const char *turning;

/* The directory turns read-only while the job runs. */
static void save_read_only(void *arg)
{
    dt_ckpt_t ckpt = NULL;
    bool *good = arg;
    if (dt_ckpt_open(turning, 1, &ckpt) != DT_SUCCESS ||
        dt_ckpt_save(ckpt, 10) != DT_SUCCESS)
        return;
    faults_begin(&(struct faults){
        .kinds = FAULTS_ANY, .at = 1, .error = EROFS, .persist = true});
    dt_result_t rc = dt_ckpt_save(ckpt, 20);
    diag("%s", dt_last_error());
    *good = rc == DT_ERR_IO &&
            strstr(dt_last_error(), "Read-only file system; " OLDER) &&
            dt_ckpt_load(ckpt, &(int64_t){0}) == DT_SUCCESS;
    faults_end();
    dt_ckpt_close(ckpt);
}

static int turns_read_only(const char *dir)
{
    bool good = false;
    turning = dir;
    fake_world_run(1, save_read_only, &good);
    return !good;
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

/* ---- the directory goes while a save is under way ---- */

struct removal {
    const char *dir;
    char away[64];
    bool move;
};

static void remove_all(void *arg)
{
    struct removal *r = arg;
    if (r->move)
        rename(r->dir, r->away);
    else
        ckpt_remove_tree(strdup(r->dir));
}

/* Before call number at. False if the save was over by then. */
static bool goes_at(int at, bool move, int *wrong)
{
    char *base = ckpt_temp_dir(), *dir = NULL;
    if (asprintf(&dir, "%s/ckpt", base) < 0)
        abort();
    struct ckpt_job job = {.dir = dir};
    struct removal r = {.dir = dir, .move = move};
    snprintf(r.away, sizeof(r.away), "%s/away", base);
    save_older(&job, 2);
    faults_begin(&(struct faults){
        .kinds = FAULTS_ANY, .at = at, .meanwhile = remove_all, .arg = &r});
    int rc = ckpt_save(&job, 2), calls = faults_end();
    bool good = rc == DT_SUCCESS || rc == DT_ERR_IO || rc == DT_ERR_BUSY;
    if (good && rc == DT_SUCCESS && access(dir, F_OK) == 0)
        good = ckpt_load(&job, 2) == DT_SUCCESS && job.got[0] == 20;
    else if (good && move) /* whole, wherever it is now */
        job.dir = r.away;
    if (good && move && calls >= at)
        good = ckpt_load(&job, 2) == DT_SUCCESS &&
               (job.got[0] == 20 || (rc != DT_SUCCESS && job.got[0] == 10));
    job.dir = dir;
    job.step = 30;
    if (!good || ckpt_save(&job, 2) != DT_SUCCESS) {
        diag("before call %d: result %d, then %s", at, rc, job.text[0]);
        (*wrong)++;
    }
    free(dir);
    ckpt_remove_tree(base);
    return calls >= at;
}

static void test_removal(bool move)
{
    int at = 1, wrong = 0;
    while (wrong < 5 && goes_at(at, move, &wrong))
        at++;
    ok(wrong == 0 && at > 15, "the directory is %s before any of %d calls",
       move ? "moved away" : "removed", at - 1);
}

/* ---- a rank dies ---- */

#define SAVE_VOTES 4 /* collectives of a first save */

static int dead_rank, dead_at; /* of three; the collective it dies in */

/* The dead never close what they opened: another process has the living. */
static int save_with_dead(const char *dir)
{
    struct ckpt_job job = {
        .dir = dir, .step = 20, .die_rank = dead_rank, .die_at = dead_at};
    ckpt_save(&job, 3);
    for (int r = 0; r < 3; r++)
        if (r != dead_rank && (job.rc[r] != DT_ERR_PROC_FAILED ||
                               !strstr(job.text[r], "a rank is gone")))
            return 1;
    return 0;
}

static int dies_in_save(const char *dir)
{
    struct ckpt_job job = {.dir = dir, .step = 10, .keep = 1};
    ckpt_save(&job, 3);
    if (in_child(save_with_dead, dir))
        return 1;
    diag("left: %s", ckpt_list(dir));
    /* rank 0 decides before the last collective */
    int64_t want = dead_at == SAVE_VOTES ? 20 : 10;
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

/* A collective fails on one rank only: rank 0 may be committing, so
 * it must not take its file away. */
static int save_deaf(const char *dir)
{
    struct ckpt_job job = {
        .dir = dir, .step = 20, .die_rank = 2, .die_at = dead_at, .deaf = true};
    ckpt_save(&job, 3);
    for (int r = 0; r < 3; r++)
        if (job.rc[r] != DT_ERR_PROC_FAILED)
            return 1;
    return 0;
}

static int deaf(const char *dir)
{
    struct ckpt_job job = {.dir = dir, .step = 10};
    if (ckpt_save(&job, 3) != DT_SUCCESS || in_child(save_deaf, dir) ||
        ckpt_load(&job, 3) != DT_SUCCESS)
        return 1;
    diag("loads step %lld", (long long)job.got[0]);
    /* rank 0 has all that it needs after the one before the last */
    return job.got[0] != (dead_at == SAVE_VOTES - 1 ? 20 : 10) || !job.right[2];
}

static void test_deaths(void)
{
    for (dead_at = 1; dead_at < SAVE_VOTES; dead_at++) {
        char what[64];
        snprintf(what, sizeof(what), "collective %d fails on rank 2 only",
                 dead_at);
        try(deaf, what);
    }
    for (dead_rank = 0; dead_rank < 3; dead_rank += 2) {
        char what[64];
        for (dead_at = 1; dead_at <= SAVE_VOTES; dead_at++) {
            snprintf(what, sizeof(what),
                     "rank %d dies in collective %d of save", dead_rank,
                     dead_at);
            try(dies_in_save, what);
        }
        for (dead_at = 1; dead_at <= 3; dead_at++) {
            snprintf(what, sizeof(what),
                     "rank %d dies in collective %d of load", dead_rank,
                     dead_at);
            try(dies_in_load, what);
        }
    }
}

int main(void)
{
    alarm(600);
    test_directory();
    try(not_shared, "a directory that is another one for each node");
    try(file_too_large, "a limit on the size of a file");
    try(disk_full, "a full disk");
    try(no_room_for_names, "a disk without room for another file");
    try(read_only, "a read-only directory");
    try(turns_read_only, "a directory that turns read-only");
    test_removal(false);
    test_removal(true);
    test_deaths();
    return tap_done();
}
