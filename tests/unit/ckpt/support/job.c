/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* job.c - a pretended training program that saves and loads. */
#include "job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TENSORS_MAX 16

struct tensor {
    const char *name;
    dt_dtype_t dtype;
    int ndim;
    int64_t shape[3];
    unsigned flags;
    size_t bytes;
    unsigned char *data;
};

struct program {
    int count;
    struct tensor tensor[TENSORS_MAX];
};

static const struct tensor shared[] = {
    {"step/i64", DT_DTYPE_I64, 0, {0}, DT_CKPT_REPLICATED},
    {"conv 1.weight", DT_DTYPE_F32, 3, {4, 3, 5}, DT_CKPT_REPLICATED},
    {"bias", DT_DTYPE_BF16, 1, {7}, DT_CKPT_REPLICATED},
    {"half", DT_DTYPE_F16, 2, {3, 1}, DT_CKPT_REPLICATED},
    {"moment", DT_DTYPE_F64, 2, {8, 8}, DT_CKPT_REPLICATED},
    {"index", DT_DTYPE_I32, 1, {33}, DT_CKPT_REPLICATED},
    {"bytes", DT_DTYPE_U8, 1, {1}, DT_CKPT_REPLICATED},
    {"signed", DT_DTYPE_I8, 1, {3}, DT_CKPT_REPLICATED},
    {"nothing", DT_DTYPE_F32, 2, {5, 0}, DT_CKPT_REPLICATED},
};
#define SHARED_COUNT ((int)(sizeof(shared) / sizeof(*shared)))

static const struct tensor own[] = {
    {"rng", DT_DTYPE_U8, 1, {13}, 0},
    {"shard", DT_DTYPE_F32, 2, {6, 4}, 0},
    {"scalar", DT_DTYPE_F64, 0, {0}, 0},
};

static void add(struct program *program, const struct tensor *tensor)
{
    program->tensor[program->count++] = *tensor;
}

static void choose(struct program *program, enum ckpt_model model, int rank)
{
    static const struct tensor more = {
        "more", DT_DTYPE_U8, 1, {4}, DT_CKPT_REPLICATED};
    static const struct tensor large = {
        "large", DT_DTYPE_F32, 2, {512, 512}, DT_CKPT_REPLICATED};
    program->count = 0;
    if (model == MODEL_EMPTY)
        return;
    if (model == MODEL_LARGE) {
        static const char *const name[FAKE_WORLD_MAX] = {"a", "b", "c", "d",
                                                         "e", "f", "g", "h"};
        for (int r = 0; r < dt_size(); r++) {
            add(program, &large);
            program->tensor[r].name = name[r];
        }
        return;
    }
    for (int i = 0; i < SHARED_COUNT - (model == MODEL_LESS); i++)
        add(program, &shared[i]);
    for (int i = 0; model == MODEL_FULL && i < 3; i++)
        add(program, &own[i]);
    if (model == MODEL_MORE)
        add(program, &more);
    struct tensor *t = &program->tensor[4];
    if (model == MODEL_SHAPE)
        t->shape[1] = 9;
    if (model == MODEL_TYPE)
        t->dtype = DT_DTYPE_I64;
    if (model == MODEL_NAME)
        t->name = "momentum";
    if (model == MODEL_OWN)
        t->flags = 0;
    if (model == MODEL_DIFFERS && rank == 1)
        t->name = "rank 1's";
}

static unsigned char value(const struct ckpt_job *job, int64_t step,
                           const struct tensor *t, size_t i)
{
    unsigned owner = t->flags ? 0 : (unsigned)dt_rank() + 1;
    return (unsigned char)((unsigned)step * 31 + job->salt * 7 + owner * 97 +
                           (unsigned)t->name[0] * 3 + (unsigned)i * 5);
}

static bool holds(const struct program *program, const struct ckpt_job *job,
                  int64_t step)
{
    for (int k = 0; k < program->count; k++)
        for (size_t i = 0; i < program->tensor[k].bytes; i++)
            if (program->tensor[k].data[i] !=
                value(job, step, &program->tensor[k], i))
                return false;
    return true;
}

static void fill(struct program *program, const struct ckpt_job *job,
                 int64_t step)
{
    for (int k = 0; k < program->count; k++)
        for (size_t i = 0; i < program->tensor[k].bytes; i++)
            program->tensor[k].data[i] =
                value(job, step, &program->tensor[k], i);
}

static void start(struct program *program, const struct ckpt_job *job)
{
    choose(program, job->model, dt_rank());
    for (int k = 0; k < program->count; k++) {
        struct tensor *t = &program->tensor[k];
        t->bytes = dt_dtype_size(t->dtype);
        for (int d = 0; d < t->ndim; d++)
            t->bytes *= (size_t)t->shape[d];
        t->data = t->bytes ? malloc(t->bytes) : NULL;
    }
}

static void stop(struct program *program)
{
    for (int k = 0; k < program->count; k++)
        free(program->tensor[k].data);
}

static dt_result_t add_all(dt_ckpt_t ckpt, const struct program *program)
{
    for (int k = 0; k < program->count; k++) {
        const struct tensor *t = &program->tensor[k];
        dt_result_t rc = dt_ckpt_add_tensor(ckpt, t->name, t->data, t->dtype,
                                            t->ndim, t->shape, t->flags);
        if (rc != DT_SUCCESS)
            return rc;
    }
    return DT_SUCCESS;
}

/* The program goes on with other values while the thread writes. */
static dt_result_t save_behind(dt_ckpt_t ckpt, struct program *program,
                               const struct ckpt_job *job, int64_t step)
{
    dt_result_t rc = dt_ckpt_save_async(ckpt, step);
    fill(program, job, -2);
    return rc == DT_SUCCESS && !job->no_wait ? dt_ckpt_wait(ckpt) : rc;
}

/* One rank's job: save it, or load it. */
static void work(struct ckpt_job *job, bool save)
{
    struct program program;
    dt_ckpt_t ckpt = NULL;
    int rank = dt_rank();
    start(&program, job);
    if (job->elsewhere && rank == 1 &&
        (unshare(CLONE_FS) || chdir(job->elsewhere)))
        abort();
    dt_result_t rc = dt_ckpt_open(job->dir, job->keep, &ckpt);
    if (rc == DT_SUCCESS)
        rc = add_all(ckpt, &program);
    int before = fake_world_calls();
    if (job->die_at > 0 && rank == job->die_rank)
        (job->deaf ? fake_world_deaf_at
                   : fake_world_die_at)(before + job->die_at - 1);
    if (rc == DT_SUCCESS && save) {
        int64_t step = job->step + (job->wrong_step && rank == 1);
        fill(&program, job, step);
        rc = job->behind ? save_behind(ckpt, &program, job, step)
                         : dt_ckpt_save(ckpt, step);
    } else if (rc == DT_SUCCESS) {
        fill(&program, job, -1);
        rc = dt_ckpt_load(ckpt, &job->got[rank]);
        job->untouched[rank] = holds(&program, job, -1);
        job->right[rank] =
            rc == DT_SUCCESS && holds(&program, job, job->got[rank]);
    }
    job->rc[rank] = rc;
    job->calls[rank] = fake_world_calls() - before;
    snprintf(job->text[rank], sizeof(job->text[rank]), "%s", dt_last_error());
    dt_ckpt_close(ckpt);
    stop(&program);
}

static void save_rank(void *job)
{
    work(job, true);
}

static void load_rank(void *job)
{
    work(job, false);
}

static int run(struct ckpt_job *job, int size, void (*fn)(void *))
{
    for (int r = 0; r < size; r++) {
        job->rc[r] = DT_SUCCESS;
        job->text[r][0] = '\0';
        job->got[r] = -7;
        job->right[r] = false;
    }
    fake_world_run(size, fn, job);
    for (int r = 1; r < size; r++)
        if (job->rc[r] != job->rc[0] || job->got[r] != job->got[0] ||
            (job->rc[0] != DT_SUCCESS && strcmp(job->text[r], job->text[0])))
            return 1;
    return job->rc[0];
}

int ckpt_save(struct ckpt_job *job, int size)
{
    return run(job, size, save_rank);
}

int ckpt_load(struct ckpt_job *job, int size)
{
    return run(job, size, load_rank);
}

/* Load again and again with one handle. */
static void repeat_rank(void *arg)
{
    struct ckpt_job *job = arg;
    struct program program;
    dt_ckpt_t ckpt = NULL;
    start(&program, job);
    job->rc[0] = dt_ckpt_open(job->dir, 0, &ckpt);
    if (job->rc[0] == DT_SUCCESS)
        job->rc[0] = add_all(ckpt, &program);
    for (int i = 0; job->rc[0] == DT_SUCCESS && job->prepare(i, job->arg);
         i++) {
        fill(&program, job, -1);
        job->got[0] = -7;
        dt_result_t rc = dt_ckpt_load(ckpt, &job->got[0]);
        job->untouched[0] = holds(&program, job, -1);
        job->right[0] = rc == DT_SUCCESS && holds(&program, job, job->got[0]);
        job->examine(i, rc, job->arg);
    }
    dt_ckpt_close(ckpt);
    stop(&program);
}

int ckpt_repeat_load(struct ckpt_job *job)
{
    return run(job, 1, repeat_rank);
}

/* ---- directories ---- */

void ckpt_temp_in_memory(void)
{
    if (access("/dev/shm", W_OK | X_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1);
}

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static char *new_dir(const char *parent, const char *name)
{
    char *dir = NULL;
    if (asprintf(&dir, "%s/%s-XXXXXX", parent, name) < 0 || !mkdtemp(dir)) {
        perror("mkdtemp");
        abort();
    }
    return dir;
}

/* All are in this one, which is removed by a process that outlives us: a test
 * that is killed leaves nothing, either. */
static char *top;
static pid_t owner;

static void sweep(int life)
{
    sigset_t all;
    char byte;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    setsid();
    /* a reader of the test's output must not wait for this process */
    if (dup2(life, STDIN_FILENO) < 0 || close_range(1, ~0U, 0))
        _exit(1);
    while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
        continue;
    nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    _exit(0);
}

static void leave_top(void)
{
    if (getpid() == owner)
        rmdir(top);
}

static void make_top(void)
{
    const char *tmp = getenv("TMPDIR");
    int life[2]; /* the other end is open as long as one of us is there */
    top = new_dir(tmp && *tmp ? tmp : "/tmp", "ckpt-test");
    owner = getpid();
    if (chmod(top, 0711) || pipe2(life, O_CLOEXEC) || atexit(leave_top))
        abort();
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        close(life[1]);
        sweep(life[0]);
    }
    if (pid < 0)
        abort();
    close(life[0]);
}

char *ckpt_temp_dir(void)
{
    if (!top)
        make_top();
    return new_dir(top, "dir");
}

void ckpt_remove_tree(char *dir)
{
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(dir);
}

const char *ckpt_list(const char *dir)
{
    static char text[4096];
    struct dirent **entry = NULL;
    int n = scandir(dir, &entry, NULL, alphasort);
    text[0] = '\0';
    for (int i = 0; i < n; i++) {
        size_t len = strlen(text);
        if (strcmp(entry[i]->d_name, ".") != 0 &&
            strcmp(entry[i]->d_name, "..") != 0)
            snprintf(text + len, sizeof(text) - len, "%s ", entry[i]->d_name);
        free(entry[i]);
    }
    free(entry);
    return text;
}

/* ---- stderr ---- */

static int stderr_was = -1, stderr_now = -1;

void ckpt_stderr_begin(void)
{
    fflush(stderr);
    stderr_was = dup(STDERR_FILENO);
    stderr_now = memfd_create("stderr", MFD_CLOEXEC);
    dup2(stderr_now, STDERR_FILENO);
}

const char *ckpt_stderr_end(void)
{
    static char text[8192];
    fflush(stderr);
    ssize_t n = pread(stderr_now, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    dup2(stderr_was, STDERR_FILENO);
    close(stderr_was);
    close(stderr_now);
    return text;
}
