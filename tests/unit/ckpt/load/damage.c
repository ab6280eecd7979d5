/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* damage.c - damaged checkpoints: they are skipped, and nothing is lost. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../support/job.h"
#include "ckpt/format/format.h"
#include "../../tap.h"

#define NEWEST "step-000000000020"
#define OLDER  "step-000000000010"
#define RANK_0 "rank-00000-of-00002.safetensors"
#define RANK_1 "rank-00001-of-00002.safetensors"

/* A directory with a checkpoint of steps 10 and 20 by size ranks. */
static char *two_checkpoints(int size)
{
    char *dir = ckpt_temp_dir();
    struct ckpt_job job = {.dir = dir, .step = 10};
    int rc = ckpt_save(&job, size);
    job.step = 20;
    if (rc != DT_SUCCESS || ckpt_save(&job, size) != DT_SUCCESS)
        abort();
    return dir;
}

static char *join(const char *dir, const char *a, const char *b)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s%s%s", dir, a, b ? "/" : "", b ? b : "") < 0)
        abort();
    return path;
}

/* Load on two ranks; the result goes to *rc, what was printed is returned. */
static const char *load_2(struct ckpt_job *job, int *rc)
{
    ckpt_stderr_begin();
    *rc = ckpt_load(job, 2);
    return ckpt_stderr_end();
}

/* ---- one thing wrong with the newest ---- */

static void flip(const char *path, off_t at)
{
    unsigned char byte;
    int fd = open(path, O_RDWR);
    if (pread(fd, &byte, 1, at) != 1)
        abort();
    byte ^= 4;
    if (pwrite(fd, &byte, 1, at) != 1)
        abort();
    close(fd);
}

static void flip_data(const char *path)
{
    struct stat st;
    if (stat(path, &st))
        abort();
    flip(path, st.st_size - 1);
}

static void flip_first(const char *path)
{
    flip(path, 0);
}

static void shorten(const char *path)
{
    struct stat st;
    if (stat(path, &st) || truncate(path, st.st_size - 1))
        abort();
}

static void empty(const char *path)
{
    if (truncate(path, 0))
        abort();
}

static void append(const char *path)
{
    FILE *file = fopen(path, "a");
    if (!file || fputc('x', file) == EOF || fclose(file))
        abort();
}

static void remove_it(const char *path)
{
    if (unlink(path))
        abort();
}

static void replace_by_fifo(const char *path)
{
    if (unlink(path) || mkfifo(path, 0600))
        abort();
}

static void replace_by_directory(const char *path)
{
    if (unlink(path) || mkdir(path, 0700))
        abort();
}

static void replace_by_link(const char *path)
{
    char *target = NULL;
    if (asprintf(&target, "%s.moved", path) < 0 || rename(path, target) ||
        symlink(target, path))
        abort();
    free(target);
}

static const struct {
    const char *what;
    void (*harm)(const char *path);
    const char *file, *says;
} harms[] = {
    {"a flipped bit in the data", flip_data, RANK_1,
     RANK_1 ": checksum differs"},
    {"a flipped bit in the length", flip_first, RANK_0,
     RANK_0 ": checksum differs"},
    {"a truncated file", shorten, RANK_1, "bytes long, expected"},
    {"an empty file", empty, RANK_0, ": 0 bytes long, expected"},
    {"a file that is too long", append, RANK_0, "bytes long, expected"},
    {"a missing file", remove_it, RANK_1, RANK_1 ": is missing"},
    {"a FIFO for a file", replace_by_fifo, RANK_1, RANK_1 ": is not a file"},
    {"a directory for a file", replace_by_directory, RANK_1,
     RANK_1 ": is not a file"},
    {"a link for a file", replace_by_link, RANK_0, RANK_0 ": is not a file"},
    {"a missing manifest", remove_it, "manifest.json",
     "manifest.json: is missing"},
    {"an empty manifest", empty, "manifest.json",
     "manifest.json: is torn or no JSON"},
    {"a truncated manifest", empty, "manifest.json", "manifest.json: is torn"},
    {"a FIFO for a manifest", replace_by_fifo, "manifest.json",
     "manifest.json: is not a file"},
    {"a link for a manifest", replace_by_link, "manifest.json",
     "manifest.json: is not a file"},
};

static void test_harms(void)
{
    for (size_t i = 0; i < sizeof(harms) / sizeof(*harms); i++) {
        char *dir = two_checkpoints(2),
             *path = join(dir, NEWEST, harms[i].file);
        struct ckpt_job job = {.dir = dir};
        int rc;
        harms[i].harm(path);
        const char *said = load_2(&job, &rc);
        if (!ok(rc == DT_SUCCESS && job.got[0] == 10 && job.right[0] &&
                    job.right[1],
                "%s: the older one is loaded", harms[i].what))
            diag("result %d, step %lld: %s", rc, (long long)job.got[0],
                 job.text[0]);
        char *end = strchr(said, '\n');
        static const char start[] = "dt: checkpoint " NEWEST " skipped: ";
        ok(strncmp(said, start, strlen(start)) == 0 &&
               strstr(said, harms[i].says) && end && !end[1],
           "one line says why: %.*s", end ? (int)(end - said) : 0, said);
        job.step = 30;
        job.keep = 1;
        ckpt_stderr_begin();
        rc = ckpt_save(&job, 2);
        said = ckpt_stderr_end();
        ok(rc == DT_SUCCESS && ckpt_load(&job, 2) == DT_SUCCESS &&
               job.got[0] == 30,
           "and training goes on%s%s", *said ? ", though " : "", said);
        free(path);
        ckpt_remove_tree(dir);
    }
}

static void test_all_damaged(void)
{
    char *dir = two_checkpoints(2);
    char *newest = join(dir, NEWEST, RANK_0), *older = join(dir, OLDER, RANK_1);
    struct ckpt_job job = {.dir = dir};
    int rc;
    flip_data(newest);
    flip_data(older);
    const char *said = load_2(&job, &rc);
    ok(rc == DT_ERR_CORRUPT &&
           strstr(job.text[1], "2 damaged; the newest, " NEWEST ": " RANK_0
                               ": checksum differs"),
       "all are damaged: %s", job.text[1]);
    ok(strstr(said, OLDER " skipped: " RANK_1 ": checksum differs"),
       "each has its line");
    flip_data(older);
    job.model = MODEL_SHARED;
    load_2(&job, &rc);
    ok(rc == DT_ERR_MISMATCH && strstr(job.text[0], "tensor rng in it") &&
           job.untouched[0] && job.untouched[1],
       "another model is found before the damage: %s", job.text[0]);
    free(newest);
    free(older);
    ckpt_remove_tree(dir);
}

/* ---- every byte ---- */

struct sweep {
    int fd;
    off_t size;
    int stride, wrong;
    bool cut; /* truncate, else flip a bit */
    char *original;
};

static bool hurt(int i, void *arg)
{
    struct sweep *sweep = arg;
    off_t at = (off_t)i * sweep->stride;
    if (at >= sweep->size)
        return false;
    char byte = (char)(sweep->original[at] ^ (1 << i % 8));
    if (sweep->cut ? ftruncate(sweep->fd, at)
                   : pwrite(sweep->fd, &byte, 1, at) != 1)
        abort();
    return true;
}

static struct ckpt_job sweep_job; /* what the sweep looks at */

static void heal(int i, dt_result_t rc, void *arg)
{
    struct sweep *sweep = arg;
    if (rc != DT_SUCCESS || sweep_job.got[0] != 10 || !sweep_job.right[0]) {
        diag("at %lld: result %d, step %lld: %s", (long long)i * sweep->stride,
             rc, (long long)sweep_job.got[0], dt_last_error());
        sweep->wrong++;
    }
    if (pwrite(sweep->fd, sweep->original, (size_t)sweep->size, 0) !=
        sweep->size)
        abort();
}

static void test_every_byte(const char *file, bool cut, int stride)
{
    char *dir = two_checkpoints(1), *path = join(dir, NEWEST, file);
    struct sweep sweep = {
        .fd = open(path, O_RDWR), .stride = stride, .cut = cut};
    sweep.size = lseek(sweep.fd, 0, SEEK_END);
    sweep.original = malloc((size_t)sweep.size);
    if (pread(sweep.fd, sweep.original, (size_t)sweep.size, 0) != sweep.size)
        abort();
    sweep_job = (struct ckpt_job){
        .dir = dir, .prepare = hurt, .examine = heal, .arg = &sweep};
    ckpt_stderr_begin();
    int rc = ckpt_repeat_load(&sweep_job);
    ckpt_stderr_end();
    ok(rc == DT_SUCCESS && sweep.wrong == 0, "%s: %s of its %lld bytes", file,
       cut ? "cut at any" : "a bit flipped in any", (long long)sweep.size);
    close(sweep.fd);
    free(sweep.original);
    free(path);
    ckpt_remove_tree(dir);
}

/* ---- what else may lie there ---- */

static void write_manifest(const char *path, const char *body)
{
    char sum[DT_CHECKSUM_TEXT];
    dt_checksum_print(dt_checksum(body, strlen(body)), sum);
    FILE *file = fopen(path, "w");
    if (!file || fprintf(file, "{\"checksum\":\"%s\",%s", sum, body + 1) < 0 ||
        fclose(file))
        abort();
}

static void test_newer_version(void)
{
    char *dir = two_checkpoints(2), *path = join(dir, NEWEST, "manifest.json");
    struct ckpt_job job = {.dir = dir};
    write_manifest(path, "{\"format\":\"slurm-dt checkpoint\",\"version\":3}");
    ok(ckpt_load(&job, 2) == DT_ERR_VERSION && job.untouched[0] &&
           strstr(job.text[1], NEWEST) &&
           strstr(job.text[1], "written by a newer slurm-dt"),
       "one of a newer version is not passed over: %s", job.text[1]);
    free(path);
    ckpt_remove_tree(dir);
}

static void test_wrong_step(void)
{
    char *dir = two_checkpoints(2), *from = join(dir, NEWEST, NULL),
         *to = join(dir, "step-000000000099", NULL);
    struct ckpt_job job = {.dir = dir};
    int rc;
    if (rename(from, to))
        abort();
    const char *said = load_2(&job, &rc);
    ok(rc == DT_SUCCESS && job.got[0] == 10 &&
           strstr(said, "step-000000000099 skipped: manifest.json: is of "
                        "step 20"),
       "a checkpoint under another step's name");
    free(from);
    free(to);
    ckpt_remove_tree(dir);
}

static void make_dir(const char *dir, const char *name)
{
    char *path = join(dir, name, NULL), *file = join(dir, name, "x");
    if (mkdir(path, 0700))
        abort();
    FILE *f = fopen(file, "w");
    if (!f || fclose(f))
        abort();
    free(path);
    free(file);
}

static void test_strangers(void)
{
    static const char *const strangers[] = {
        ".step-000000000030.partial-",
        ".step-000000000030.partial-123",
        ".step-000000000030.partial-0123456789abcdeg",
        ".step-30.partial-0123456789abcdef",
        ".step-000000000030.new-0123456789abcdef",
        "step-000000000030.partial-0123456789abcdef",
        "step-30",
        "step-0000000000030",
        "step-000000000030x",
        "step--00000000030",
        "step-99999999999999999999",
        "Step-000000000030",
    };
    size_t n = sizeof(strangers) / sizeof(*strangers);
    char *dir = two_checkpoints(2);
    struct ckpt_job job = {.dir = dir, .keep = 1};
    int rc;
    for (size_t i = 0; i < n; i++)
        make_dir(dir, strangers[i]);
    make_dir(dir, ".step-000000000030.partial-0123456789abcdef");
    make_dir(dir, ".step-000000000001.old-00000000000000ff");
    const char *said = load_2(&job, &rc);
    ok(rc == DT_SUCCESS && job.got[0] == 20 && !*said,
       "unfinished ones and strangers are no checkpoints");
    job.step = 25;
    ok(ckpt_save(&job, 2) == DT_SUCCESS, "the next save");
    const char *list = ckpt_list(dir);
    ok(!strstr(list, "partial-0123456789abcdef .") &&
           !strstr(list, ".old-00000000000000ff"),
       "removes the unfinished");
    size_t left = 0;
    for (size_t i = 0; i < n; i++) {
        char *path = join(dir, strangers[i], "x");
        left += access(path, F_OK) == 0;
        free(path);
    }
    ok(left == n, "and leaves the strangers alone");
    ckpt_remove_tree(dir);
}

/* Where names cannot be exchanged, a crash may leave the only checkpoint of a
 * step under a hidden name. */
static void test_hidden(void)
{
    char *dir = two_checkpoints(2), *from = join(dir, NEWEST, NULL),
         *to = join(dir, "." NEWEST ".old-0000000000000001", NULL);
    struct ckpt_job job = {.dir = dir, .keep = 0};
    if (rename(from, to))
        abort();
    ok(ckpt_load(&job, 2) == DT_SUCCESS && job.got[0] == 20 && job.right[1],
       "a complete one is found under its hidden name");
    job.step = 25;
    ok(ckpt_save(&job, 2) == DT_SUCCESS &&
           strcmp(ckpt_list(dir), OLDER " " NEWEST " step-000000000025 ") == 0,
       "and put back by the next save");
    free(from);
    free(to);
    ckpt_remove_tree(dir);
}

int main(void)
{
    alarm(1200);
    ckpt_temp_in_memory(); /* many small files */
    test_harms();
    test_all_damaged();
    test_newer_version();
    test_wrong_step();
    test_strangers();
    test_hidden();
    test_every_byte("manifest.json", false, 1);
    test_every_byte("manifest.json", true, 1);
    test_every_byte("rank-00000-of-00001.safetensors", false, 1);
    test_every_byte("rank-00000-of-00001.safetensors", true, 1);
    return tap_done();
}
