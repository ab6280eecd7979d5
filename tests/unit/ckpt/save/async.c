/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* async.c - checkpoints that are written in the background: the copy in
 * the node's memory, which outlives it; full disks. */
#include <glob.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/child.h"
#include "base/userdir.h"
#include "ckpt/save/memory.h"

static const char *id; /* of the runs of this test: unique */

/* ---- processes ---- */

static pid_t start(void (*fn)(void *), void *arg)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0)
        abort();
    if (pid == 0) {
        fn(arg);
        fflush(stdout);
        _exit(0);
    }
    return pid;
}

static int end(pid_t pid)
{
    int status;
    if (waitpid(pid, &status, 0) != pid)
        abort();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool loads(struct ckpt_job *job, int size, int64_t step)
{
    int rc = ckpt_load(job, size);
    bool good = rc == DT_SUCCESS && job->got[0] == step;
    for (int r = 0; r < size; r++)
        good = good && job->right[r];
    if (!good)
        diag("result %d (%s), step %lld", rc, job->text[0],
             (long long)job->got[0]);
    return good;
}

/* Is there anything of this test in the node's memory? */
static bool memory_is_empty(const char *dir)
{
    char *path = dt_memory_path(id, dir);
    bool empty = path && access(path, F_OK) != 0;
    free(path);
    return empty;
}

/* ---- in good health ---- */

static void test_round_trip(void)
{
    for (int size = 1; size <= 4; size += 3) {
        char *dir = ckpt_temp_dir();
        struct ckpt_job job = {
            .dir = dir, .keep = 1, .step = 150, .behind = true};
        if (!ok(ckpt_save(&job, size) == DT_SUCCESS, "%d ranks save", size))
            diag("%s", job.text[0]);
        ok(strcmp(ckpt_list(dir), "step-000000000150 ") == 0,
           "it is on disk after wait: %s", ckpt_list(dir));
        ok(loads(&job, size, 150), "as it was when save_async was called");
        job.no_wait = true;
        job.step = 160;
        ok(ckpt_save(&job, size) == DT_SUCCESS && loads(&job, size, 160),
           "close waits for it, too");
        ok(memory_is_empty(dir), "and leaves nothing in the node's memory");
        ckpt_remove_tree(dir);
    }
}

/* ---- one handle, many saves ---- */

#define BIG ((1 << 20) + 5) /* is copied in two ways */

struct series {
    const char *dir;
    int rc;
    bool right;
};

/* Two slots, each used again; every save is checked from disk. */
static void many_rank(void *arg)
{
    struct series *s = arg;
    int64_t step, shape[] = {BIG};
    int rank = dt_rank();
    dt_ckpt_t ckpt = NULL;
    char *data = malloc(BIG), state[100];
    bool right = dt_ckpt_open(s->dir, 2, &ckpt) == DT_SUCCESS &&
                 dt_ckpt_add_tensor(ckpt, "data", data, DT_DTYPE_U8, 1, shape,
                                    0) == DT_SUCCESS;
    for (int i = 1; i < 8 && right; i++) {
        size_t room = sizeof(state), len = (size_t)(10 * i + rank);
        memset(data, i + 10 * rank, BIG);
        memset(state, i, sizeof(state));
        right = dt_ckpt_set_blob(ckpt, "state", state, len, 0) == DT_SUCCESS &&
                dt_ckpt_save_async(ckpt, i) == DT_SUCCESS;
        memset(data, 99, BIG);
        dt_ckpt_set_blob(ckpt, "state", "", 0, 0);
        if (i % 2)
            right = right && dt_ckpt_wait(ckpt) == DT_SUCCESS;
        else /* load waits for the writer itself */
            right =
                right && dt_ckpt_load(ckpt, &step) == DT_SUCCESS && step == i &&
                data[0] == i + 10 * rank && data[BIG - 1] == data[0] &&
                dt_ckpt_get_blob(ckpt, "state", state, &room) == DT_SUCCESS &&
                room == len && state[len - 1] == i;
        if (!right)
            diag("rank %d, step %d: %s", rank, i, dt_last_error());
    }
    right = right && dt_ckpt_latest(ckpt, &step) == DT_SUCCESS && step == 7;
    dt_ckpt_close(ckpt);
    free(data);
    if (rank == 0)
        s->right = right;
}

static void test_many(void)
{
    char *dir = ckpt_temp_dir();
    struct series s = {.dir = dir};
    fake_world_run(3, many_rank, &s);
    ok(s.right, "saves one after the other, of tensors and blobs");
    ok(strcmp(ckpt_list(dir), "step-000000000006 step-000000000007 ") == 0,
       "two are kept");
    ckpt_remove_tree(dir);
}

#define LARGE (17 << 20) /* enough for the thread that also removes */

/* What is too old is gone when the next save has begun. */
static void keep_rank(void *arg)
{
    struct series *s = arg;
    int64_t shape[] = {LARGE};
    dt_ckpt_t ckpt = NULL;
    char *data = calloc(1, LARGE);
    s->right = dt_ckpt_open(s->dir, 1, &ckpt) == DT_SUCCESS &&
               dt_ckpt_add_tensor(ckpt, "data", data, DT_DTYPE_U8, 1, shape,
                                  0) == DT_SUCCESS;
    for (int i = 1; i < 5 && s->right; i++) {
        char old[300];
        snprintf(old, sizeof(old), "%s/step-%012d", s->dir, i - 2);
        memset(data, i, LARGE);
        s->right = dt_ckpt_save_async(ckpt, i) == DT_SUCCESS &&
                   access(old, F_OK) != 0 && dt_ckpt_wait(ckpt) == DT_SUCCESS;
    }
    dt_ckpt_close(ckpt);
    free(data);
}

static void test_keep(void)
{
    char *dir = ckpt_temp_dir();
    struct series s = {.dir = dir};
    fake_world_run(1, keep_rank, &s);
    ok(s.right && strcmp(ckpt_list(dir), "step-000000000004 ") == 0,
       "the one before goes, at the latest when the next save begins");
    ckpt_remove_tree(dir);
}

/* ---- killed ---- */

static void save_slowly(void *arg)
{
    setenv("DT_CKPT_RATE", "1", 1);
    ckpt_save(arg, 3);
}

/* Wait until the node's memory has the step. False if that takes for ever. */
static bool appears(const char *dir, const char *step)
{
    char *path = dt_memory_path(id, dir), *name = NULL;
    bool there = false;
    if (!path || asprintf(&name, "%s/%s/manifest.json", path, step) < 0)
        abort();
    for (int i = 0; i < 120000 && !there; i++) {
        there = access(name, F_OK) == 0;
        usleep(1000);
    }
    free(name);
    free(path);
    return there;
}

static void test_kill(void)
{
    char *dir = ckpt_temp_dir();
    struct ckpt_job job = {.dir = dir, .step = 10, .model = MODEL_LARGE};
    ckpt_save(&job, 3);
    job.step = 20;
    job.behind = true;
    pid_t pid = start(save_slowly, &job);
    bool there = appears(dir, "step-000000000020");
    kill(pid, SIGKILL);
    end(pid);
    ok(there && !strstr(ckpt_list(dir), " step-000000000020"),
       "killed when the copy is in the node's memory and not on disk: %s",
       ckpt_list(dir));
    ok(loads(&job, 3, 20), "nothing is lost: it loads from memory");
    ok(strstr(ckpt_list(dir), " step-000000000020") && memory_is_empty(dir),
       "and what was loaded is on disk when it closes, no more in memory: %s",
       ckpt_list(dir));
    ok(loads(&job, 3, 20), "from where it loads then");
    job.step = 30;
    ok(ckpt_save(&job, 3) == DT_SUCCESS && loads(&job, 3, 30),
       "the next one is saved as if nothing had been");
    ok(memory_is_empty(dir), "and clears the memory");
    ckpt_remove_tree(dir);
}

/* Disk has that step, but of another run. */
static void test_kill_same_step(void)
{
    char *dir = ckpt_temp_dir();
    struct ckpt_job job = {
        .dir = dir, .step = 20, .model = MODEL_LARGE, .salt = 5};
    ckpt_save(&job, 3);
    job.salt = 6;
    job.behind = true;
    pid_t pid = start(save_slowly, &job);
    bool there = appears(dir, "step-000000000020");
    kill(pid, SIGKILL);
    end(pid);
    ok(there && loads(&job, 3, 20) && memory_is_empty(dir) &&
           loads(&job, 3, 20),
       "another save of that step on disk is replaced by what memory has");
    ckpt_remove_tree(dir);
}

/* Killed when the step is on disk and in memory. */
static void hold_rank(void *arg)
{
    struct series *s = arg;
    int64_t shape[] = {BIG};
    dt_ckpt_t ckpt = NULL;
    char *data = malloc(BIG);
    memset(data, 7, BIG);
    dt_ckpt_open(s->dir, 1, &ckpt);
    dt_ckpt_add_tensor(ckpt, "data", data, DT_DTYPE_U8, 1, shape, 0);
    dt_ckpt_save_async(ckpt, 7);
    for (;;)
        pause();
}

static void hold(void *arg)
{
    fake_world_run(2, hold_rank, arg);
}

static void hold_until_saved(struct series *s, const char *manifest)
{
    pid_t pid = start(hold, s);
    for (int i = 0; i < 120000 && access(manifest, F_OK); i++)
        usleep(1000);
    kill(pid, SIGKILL);
    end(pid);
}

static void load_once(void *arg);

static void test_kill_when_saved(void)
{
    char *dir = ckpt_temp_dir(), manifest[300], command[600];
    struct series s = {.dir = dir};
    struct stat before, after;
    snprintf(manifest, sizeof(manifest), "%s/step-000000000007/manifest.json",
             dir);
    hold_until_saved(&s, manifest);
    bool good = !memory_is_empty(dir) && stat(manifest, &before) == 0;
    fake_world_run(2, load_once, &s);
    ok(good && s.right && s.rc == 7 && memory_is_empty(dir) &&
           stat(manifest, &after) == 0 && before.st_ino == after.st_ino,
       "what is on disk already is not written again, and memory is cleared");
    unlink(manifest);
    hold_until_saved(&s, manifest);
    char *path = dt_memory_path(id, dir);
    snprintf(command, sizeof(command), "%s/step-000000000007/manifest.json",
             path);
    good = unlink(command) == 0;
    fake_world_run(2, load_once, &s);
    ok(good && s.right && s.rc == 7 && memory_is_empty(dir),
       "nor do damaged leftovers stay in memory when disk has the step");
    free(path);
    ckpt_remove_tree(dir);
}

/* Killed while memory is being written: at any moment, the one before or this
 * one is there. */
static void save_forever(void *arg)
{
    struct series *s = arg;
    int64_t shape[] = {BIG};
    dt_ckpt_t ckpt = NULL;
    char *data = malloc(BIG);
    setenv("DT_CKPT_RATE", "100", 1);
    dt_ckpt_open(s->dir, 1, &ckpt);
    dt_ckpt_add_tensor(ckpt, "data", data, DT_DTYPE_U8, 1, shape, 0);
    for (int i = 1; i < 100000; i++) {
        memset(data, i % 100, BIG);
        if (dt_ckpt_save_async(ckpt, i) != DT_SUCCESS)
            _exit(1);
    }
}

static void forever(void *arg)
{
    fake_world_run(2, save_forever, arg);
}

static void load_once(void *arg)
{
    struct series *s = arg;
    int64_t step = 0, shape[] = {BIG};
    dt_ckpt_t ckpt = NULL;
    char *data = malloc(BIG);
    dt_ckpt_open(s->dir, 1, &ckpt);
    dt_ckpt_add_tensor(ckpt, "data", data, DT_DTYPE_U8, 1, shape, 0);
    dt_result_t rc = dt_ckpt_load(ckpt, &step);
    bool right = rc == DT_SUCCESS;
    for (int i = 0; i < BIG && right; i++)
        right = data[i] == (char)(step % 100);
    if (dt_rank() == 0) {
        s->rc = (int)step;
        s->right = right || rc == DT_ERR_NOT_FOUND;
        if (!s->right)
            diag("step %d: %s", s->rc, dt_last_error());
    }
    dt_ckpt_close(ckpt);
    free(data);
}

static void test_kills(void)
{
    char *dir = ckpt_temp_dir();
    struct series s = {.dir = dir};
    int wrong = 0, last = 0;
    ckpt_stderr_begin();
    for (int i = 0; i < 12; i++) {
        pid_t pid = start(forever, &s);
        usleep((useconds_t)(5000 + 7000 * i));
        kill(pid, SIGKILL);
        end(pid);
        fake_world_run(2, load_once, &s);
        wrong += !s.right;
        last = s.rc > last ? s.rc : last;
    }
    const char *said = ckpt_stderr_end();
    if (!ok(wrong == 0 && !*said, "killed at 12 moments, step %d the last",
            last))
        diag("%s", said);
    ckpt_remove_tree(dir);
}

/* ---- trouble ---- */

struct full {
    const char *dir;
    dt_result_t first, second, waited, third, last;
};

static void full_rank(void *arg)
{
    struct full *f = arg;
    int64_t shape[] = {BIG};
    dt_ckpt_t ckpt = NULL;
    char *data = calloc(1, BIG), *ballast = NULL;
    if (asprintf(&ballast, "%s/ballast", f->dir) < 0)
        abort();
    dt_ckpt_open(f->dir, 1, &ckpt);
    dt_ckpt_add_tensor(ckpt, "data", data, DT_DTYPE_U8, 1, shape, 0);
    dt_ckpt_save(ckpt, 10);
    FILE *file = fopen(ballast, "w");
    for (int i = 0; i < 3000; i++)
        fwrite(data, 1000, 1, file);
    fclose(file);
    data[0] = 1;
    f->first = dt_ckpt_save_async(ckpt, 20);
    f->second = dt_ckpt_save_async(ckpt, 30);
    f->waited = dt_ckpt_wait(ckpt);
    f->third = dt_ckpt_save(ckpt, 40);
    unlink(ballast);
    f->last = dt_ckpt_save_async(ckpt, 50);
    if (f->last == DT_SUCCESS)
        f->last = dt_ckpt_wait(ckpt);
    dt_ckpt_close(ckpt);
    free(ballast);
    free(data);
}

static int disk_full(const char *dir)
{
    struct full f = {.dir = dir};
    if (!private_mount(dir, "size=4m"))
        return 77;
    ckpt_stderr_begin();
    fake_world_run(1, full_rank, &f);
    const char *said = ckpt_stderr_end();
    diag("said: %s", said);
    const char *line = strchr(said, '\n');
    if (f.first == DT_SUCCESS && f.second == DT_SUCCESS &&
        f.waited == DT_ERR_NO_SPACE && f.third == DT_ERR_NO_SPACE &&
        f.last == DT_SUCCESS && line && !line[1] &&
        strstr(said, "step-000000000010 is kept") &&
        strcmp(ckpt_list(dir), "step-000000000050 ") == 0)
        return 0;
    diag("%d %d %d %d %d, left: %s", f.first, f.second, f.waited, f.third,
         f.last, ckpt_list(dir));
    return 1;
}

/* A background commit in which a rank dies: the others return an error. */
static int die_at;

static int dies(const char *dir)
{
    struct ckpt_job job = {.dir = dir,
                           .step = 10,
                           .behind = true,
                           .die_rank = die_at % 2 ? 2 : 0,
                           .die_at = die_at};
    ckpt_save(&job, 3);
    diag("%s", job.text[1]);
    if (job.rc[1] != DT_ERR_PROC_FAILED ||
        !strstr(job.text[1], "a rank is gone"))
        return 1;
    job.die_at = 0;
    job.step = 20;
    return ckpt_save(&job, 3) != DT_SUCCESS || !loads(&job, 3, 20);
}

static void test_death(void)
{
    for (die_at = 1; die_at <= 9; die_at++) {
        char what[64];
        snprintf(what, sizeof(what), "a rank dies in collective %d", die_at);
        try(dies, what);
    }
}

/* ---- the node's memory ---- */

static int small_shm(const char *dir)
{
    struct ckpt_job job = {
        .dir = dir, .step = 10, .model = MODEL_LARGE, .behind = true};
    if (!private_mount("/dev/shm", "size=1m"))
        return 77;
    ckpt_stderr_begin();
    int rc = ckpt_save(&job, 3);
    const char *said = ckpt_stderr_end();
    diag("said: %s", said);
    return rc != DT_SUCCESS || !loads(&job, 3, 10) ||
           !strstr(said, "not kept in the memory of the nodes: ") ||
           !strstr(said, "No space left on device") || strchr(said, '\n')[1] ||
           strcmp(ckpt_list("/dev/shm"), "") != 0;
}

static int planted_link(const char *dir)
{
    struct ckpt_job job = {
        .dir = dir, .step = 10, .model = MODEL_LARGE, .behind = true};
    char *path = NULL;
    if (!private_mount("/dev/shm", "size=50m"))
        return 77;
    if (asprintf(&path, "/dev/shm/slurm-dt-%u", (unsigned)geteuid()) < 0 ||
        mkdir("/dev/shm/elsewhere", 0700) ||
        symlink("/dev/shm/elsewhere", path))
        return 1;
    ckpt_stderr_begin();
    bool good = ckpt_save(&job, 2) == DT_SUCCESS && loads(&job, 2, 10);
    const char *said = ckpt_stderr_end();
    diag("said: %s", said);
    return !good || !strstr(said, "not kept in the memory of the nodes: ") ||
           strcmp(ckpt_list("/dev/shm/elsewhere"), "") != 0;
}

static int sweeps(const char *dir, const char *top)
{
    struct ckpt_job job = {.dir = dir, .step = 10, .behind = true};
    char command[512];
    snprintf(command, sizeof(command),
             "umask 077; cd /dev/shm && mkdir -p %s/old/1/slots %s/new/1 && "
             "echo x >%s/old/1/slots/rank-00000.0 && "
             "touch -d '2 days ago' %s/old/1",
             top, top, top, top);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    if (end(pid) != 0 || ckpt_save(&job, 2) != DT_SUCCESS)
        return 1;
    diag("left: %s", ckpt_list(top));
    return strcmp(ckpt_list(top), "new ") != 0;
}

static int leftovers(const char *dir)
{
    char top[64];
    if (!private_mount("/dev/shm", "size=50m"))
        return 77;
    snprintf(top, sizeof(top), "/dev/shm/slurm-dt-%u", (unsigned)geteuid());
    return sweeps(dir, top);
}

/* Then it does not matter who has the other name. */
static int made_by_root(const char *dir)
{
    char top[64], other[64];
    if (!private_mount("/dev/shm", "size=50m") || geteuid() != 0)
        return 77;
    snprintf(top, sizeof(top), DT_USERDIR_SHM "/%u", (unsigned)geteuid());
    snprintf(other, sizeof(other), "/dev/shm/slurm-dt-%u", (unsigned)geteuid());
    if (symlink("/dev/null", other) != 0 ||
        dt_userdir_make(DT_USERDIR_SHM, geteuid(), getegid(), NULL) !=
            DT_SUCCESS)
        return 1;
    ckpt_stderr_begin();
    int rc = sweeps(dir, top);
    const char *said = ckpt_stderr_end();
    struct ckpt_job job = {.dir = dir, .step = 20, .behind = true};
    return rc || *said || rmdir("/dev/shm/slurm-dt/0/new/1") ||
           rmdir("/dev/shm/slurm-dt/0/new") ||
           ckpt_save(&job, 2) != DT_SUCCESS || access(top, F_OK) != 0;
}

int main(void)
{
    char run[64], top[64], *left;
    alarm(1200);
    snprintf(run, sizeof(run), "ckpt-async-%d", (int)getpid());
    id = run;
    fake_world_run_id(id);
    test_round_trip();
    test_many();
    test_keep();
    test_kill();
    test_kill_same_step();
    test_kill_when_saved();
    test_kills();
    test_death();
    try(disk_full, "a full disk is said once, and tried again");
    try(small_shm, "too little room in /dev/shm is said once");
    try(planted_link, "a link in /dev/shm is not followed");
    try(leftovers, "what old runs left in /dev/shm is removed");
    try(made_by_root, "a directory that root has made is used, and stays");
    /* of those that were killed, and not repeated */
    snprintf(top, sizeof(top), "/dev/shm/slurm-dt-%u", (unsigned)geteuid());
    if (asprintf(&left, "%s/%s", top, id) > 0)
        ckpt_remove_tree(left);
    rmdir(top); /* unless another program uses it */
    return tap_done();
}
