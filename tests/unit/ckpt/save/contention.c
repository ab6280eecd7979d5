/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* contention.c - what other jobs, other users and the clock can do to a
 * checkpoint directory. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "../support/child.h"

/* ---- two jobs ---- */

static void hold_open(void *arg)
{
    dt_ckpt_t ckpt = NULL;
    int *pipe = ((int **)arg)[1];
    char byte = dt_ckpt_open(((char **)arg)[0], 1, &ckpt) == DT_SUCCESS;
    if (dt_rank() == 0 && write(pipe[1], &byte, 1) != 1)
        _exit(1);
    pause();
}

static int two_jobs(const char *dir)
{
    int ready[2];
    char byte = 0;
    struct ckpt_job job = {.dir = dir, .step = 10};
    if (pipe(ready))
        return 1;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(120);
        fake_world_run(2, hold_open, (void *[]){(void *)dir, ready});
        _exit(0);
    }
    if (read(ready[0], &byte, 1) != 1 || !byte)
        return 1;
    int rc = ckpt_save(&job, 3);
    diag("%s", job.text[2]);
    bool good = rc == DT_ERR_BUSY && strstr(job.text[2], "is in use by") &&
                strstr(job.text[2], dir);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return !good || ckpt_save(&job, 3) != DT_SUCCESS ||
           ckpt_load(&job, 3) != DT_SUCCESS;
}

/* ---- clocks ---- */

time_t __real_time(time_t *now);
time_t __wrap_time(time_t *now);
int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

static const time_t jumps[] = {0, 4102444800, -86400, 1, 253402300800, 1000000};
static int jump = -1; /* which comes next; -1: the real time */

static time_t next_jump(void)
{
    int i = __atomic_fetch_add(&jump, 1, __ATOMIC_RELAXED);
    return jumps[i % (int)(sizeof(jumps) / sizeof(*jumps))];
}

time_t __wrap_time(time_t *now)
{
    time_t t = jump < 0 ? __real_time(NULL) : next_jump();
    if (now)
        *now = t;
    return t;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    int rc = __real_clock_gettime(clock, now);
    if (rc == 0 && jump >= 0 && clock == CLOCK_REALTIME)
        now->tv_sec = next_jump();
    return rc;
}

static int clock_jumps(const char *dir)
{
    struct ckpt_job job = {.dir = dir, .keep = 2};
    jump = 0;
    for (job.step = 1; job.step < 20; job.step++) {
        const struct timespec odd[2] = {{next_jump(), 0}, {next_jump(), 0}};
        if (ckpt_save(&job, 2) != DT_SUCCESS ||
            ckpt_load(&job, 2) != DT_SUCCESS || job.got[0] != job.step ||
            !job.right[1])
            return 1;
        char name[64];
        snprintf(name, sizeof(name), "%s/step-%012lld", dir,
                 (long long)job.step);
        utimensat(AT_FDCWD, name, odd, 0);
    }
    return strcmp(ckpt_list(dir), "step-000000000018 step-000000000019 ") != 0;
}

/* ---- permissions ---- */

static int has_mode(const char *dir, const char *name, mode_t want)
{
    char *path = NULL;
    struct stat st;
    if (asprintf(&path, "%s/%s", dir, name) < 0)
        abort();
    bool has = stat(path, &st) == 0 && (st.st_mode & 07777) == want;
    if (!has)
        diag("%s: mode %o, want %o", path, st.st_mode & 07777, want);
    free(path);
    return has;
}

static int with_umask(const char *dir, mode_t mask)
{
    umask(mask);
    struct ckpt_job job = {.dir = dir};
    if (save_older(&job, 2) || load_older(&job, 2))
        return 1;
    if (umask(mask) != mask)
        return 1;
    return !has_mode(dir, OLDER, 0777 & ~mask) ||
           !has_mode(dir, OLDER "/manifest.json", 0666 & ~mask) ||
           !has_mode(dir, OLDER "/rank-00001-of-00002.safetensors",
                     0666 & ~mask);
}

static int umask_077(const char *dir)
{
    return with_umask(dir, 077);
}

static int umask_000(const char *dir)
{
    return with_umask(dir, 0);
}

/* A user who is not root from now on. */
static bool be_nobody(const char *dir)
{
    return geteuid() != 0 || (chown(dir, 65534, 65534) == 0 &&
                              setgid(65534) == 0 && setuid(65534) == 0);
}

static int unreadable(const char *dir)
{
    static const char *const name[] = {OLDER "/rank-00001-of-00002.safetensors",
                                       OLDER "/manifest.json", OLDER};
    struct ckpt_job job = {.dir = dir};
    if (!be_nobody(dir))
        return 77;
    if (chdir(dir) || save_older(&job, 2))
        return 1;
    for (int i = 0; i < 3; i++) {
        chmod(name[i], 0);
        int rc = ckpt_load(&job, 2);
        diag("%s", job.text[1]);
        chmod(name[i], i < 2 ? 0600 : 0700);
        if (rc != DT_ERR_IO || !strstr(job.text[1], "Permission denied"))
            return 1;
    }
    return load_older(&job, 2);
}

/* ---- links ---- */

/* Whoever made it, a link named as a checkpoint leads nowhere. */
static int planted_links(const char *dir)
{
    static const char *const plant[] = {
        "step-000000000020", "step-000000000005", "step-000000000099",
        ".step-000000000005.old-0123456789abcdef",
        ".step-000000000099.partial-0123456789abcdef"};
    char *victim = ckpt_temp_dir();
    struct ckpt_job job = {.dir = victim};
    if (save_older(&job, 2) || chdir(dir))
        return 1;
    for (int i = 0; i < 5; i++)
        if (symlink(victim, plant[i]))
            return 1;
    char *inside = NULL;
    if (asprintf(&inside, "%s/" OLDER, victim) < 0 ||
        symlink(inside, "step-000000000010"))
        abort();
    job.dir = dir;
    job.keep = 1;
    if (ckpt_load(&job, 2) != DT_ERR_NOT_FOUND) {
        diag("load entered a link");
        return 1;
    }
    int rc = ckpt_save(&job, 2);
    diag("%s", job.text[0]);
    if (rc != DT_ERR_IO || !strstr(job.text[0], "check where it comes from"))
        return 1;
    job.step = 30;
    if (ckpt_save(&job, 2) != DT_SUCCESS || ckpt_load(&job, 2) != DT_SUCCESS ||
        job.got[0] != 30)
        return 1;
    for (int i = 0; i < 5; i++) {
        struct stat st;
        if (lstat(plant[i], &st) || !S_ISLNK(st.st_mode)) {
            diag("%s was removed", plant[i]);
            return 1;
        }
    }
    job.dir = victim;
    rc = strcmp(ckpt_list(victim), OLDER " ") != 0 || load_older(&job, 2);
    ckpt_remove_tree(victim);
    free(inside);
    return rc;
}

/* ---- names in the directory that a save has just made ---- */

int __real_mkdirat(int dirfd, const char *name, mode_t mode);
int __wrap_mkdirat(int dirfd, const char *name, mode_t mode);

static const char *victim; /* to be planted where rank 1 writes; NULL: none */
static bool as_link;

int __wrap_mkdirat(int dirfd, const char *name, mode_t mode)
{
    char path[300];
    int rc = __real_mkdirat(dirfd, name, mode);
    if (rc || !victim || strncmp(name, ".step-000000000020.", 19) != 0)
        return rc;
    snprintf(path, sizeof(path), "%s/rank-00001-of-00002.safetensors", name);
    if (as_link ? symlinkat(victim, dirfd, path)
                : linkat(AT_FDCWD, victim, dirfd, path, 0))
        abort();
    return rc;
}

/* What somebody has put there is neither written to nor followed. */
static int plant(const char *dir, bool link)
{
    struct ckpt_job job = {.dir = dir, .model = MODEL_LARGE};
    char *other = ckpt_temp_dir(), file[300], text[16] = "";
    snprintf(file, sizeof(file), "%s/file", other);
    if (save_older(&job, 2) || !put(file, "theirs"))
        return 1;
    victim = file;
    as_link = link;
    int rc = ckpt_save(&job, 2);
    victim = NULL;
    diag("%s", job.text[0]);
    FILE *in = fopen(file, "r");
    bool same = in && fread(text, 1, sizeof(text) - 1, in) == 6 &&
                strcmp(text, "theirs") == 0;
    if (in)
        fclose(in);
    ckpt_remove_tree(other);
    return rc != DT_ERR_IO || !strstr(job.text[0], "File exists") || !same ||
           load_older(&job, 2);
}

static int planted_file(const char *dir)
{
    return plant(dir, false);
}

static int planted_file_link(const char *dir)
{
    return plant(dir, true);
}

int main(void)
{
    alarm(600);
    try(two_jobs, "two jobs in one directory");
    try(clock_jumps, "a clock that jumps back and forth");
    try(umask_077, "umask 077");
    try(umask_000, "umask 000");
    try(unreadable, "what cannot be read");
    try(planted_links, "planted links");
    try(planted_file, "a planted file");
    try(planted_file_link, "a planted link to a file");
    return tap_done();
}
