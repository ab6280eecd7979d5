/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ckpt.c - checkpoints that are saved and loaded by ranks in good health. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/job.h"
#include "../tap.h"

static bool all(const bool *value, int size)
{
    for (int r = 0; r < size; r++)
        if (!value[r])
            return false;
    return true;
}

static bool loads(struct ckpt_job *job, int size, int64_t step)
{
    int rc = ckpt_load(job, size);
    bool good =
        rc == DT_SUCCESS && job->got[0] == step && all(job->right, size);
    if (!good)
        diag("result %d (%s), step %lld", rc, job->text[0],
             (long long)job->got[0]);
    return good;
}

static void test_round_trip(void)
{
    static const int sizes[] = {1, 2, 3, 4, 8};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        int size = sizes[i];
        char *dir = ckpt_temp_dir();
        struct ckpt_job job = {.dir = dir, .keep = 1, .step = 150};
        if (!ok(ckpt_save(&job, size) == DT_SUCCESS, "%d ranks save", size))
            diag("%s", job.text[0]);
        ok(job.calls[0] == 4 && job.calls[size - 1] == 4,
           "with four collectives");
        ok(strcmp(ckpt_list(dir), "step-000000000150 ") == 0,
           "in one directory and no other");
        ok(loads(&job, size, 150), "and load the same");
        ok(job.calls[0] == job.calls[size - 1], "with %d collectives",
           job.calls[0]);
        ckpt_remove_tree(dir);
    }
}

static void test_files(void)
{
    char *dir = ckpt_temp_dir(), *path = NULL;
    struct ckpt_job job = {.dir = dir, .step = 7, .model = MODEL_LARGE};
    ok(ckpt_save(&job, 3) == DT_SUCCESS, "3 ranks save 3 MiB");
    if (asprintf(&path, "%s/step-000000000007", dir) < 0)
        abort();
    ok(strcmp(ckpt_list(path), "manifest.json rank-00000-of-00003.safetensors "
                               "rank-00001-of-00003.safetensors "
                               "rank-00002-of-00003.safetensors ") == 0,
       "a file for each rank and a manifest: %s", ckpt_list(path));
    for (int r = 0; r < 3; r++) {
        struct stat st;
        char *file = NULL;
        if (asprintf(&file, "%s/rank-0000%d-of-00003.safetensors", path, r) < 0)
            abort();
        ok(stat(file, &st) == 0 && st.st_size > 1 << 20 &&
               st.st_size < (1 << 20) + 1000,
           "rank %d wrote its share", r);
        free(file);
    }
    free(path);
    ckpt_remove_tree(dir);
}

static void test_world_sizes(void)
{
    static const int sizes[] = {1, 2, 3, 5, 8};
    char *dir = ckpt_temp_dir();
    struct ckpt_job job = {.dir = dir, .step = 3, .model = MODEL_SHARED};
    ok(ckpt_save(&job, 3) == DT_SUCCESS, "3 ranks save replicated tensors");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        ok(loads(&job, sizes[i], 3), "%d ranks load them", sizes[i]);
    job = (struct ckpt_job){.dir = dir, .step = 4, .model = MODEL_FULL};
    ok(ckpt_save(&job, 3) == DT_SUCCESS, "3 ranks save their own tensors");
    ok(ckpt_load(&job, 2) == DT_ERR_MISMATCH && all(job.untouched, 2) &&
           strstr(job.text[1], "step-000000000004") &&
           strstr(job.text[1], "tensor rng is each rank's own and was saved "
                               "by 3 ranks; it loads on as many, this job "
                               "has 2"),
       "2 ranks do not load them: %s", job.text[1]);
    job = (struct ckpt_job){.dir = dir, .step = 5, .model = MODEL_EMPTY};
    ok(ckpt_save(&job, 2) == DT_SUCCESS && loads(&job, 4, 5),
       "a checkpoint of nothing");
    ckpt_remove_tree(dir);
}

static void test_other_models(void)
{
    static const struct {
        enum ckpt_model model;
        const char *says;
    } cases[] = {
        {MODEL_SHAPE, "tensor moment is F64 [8, 8] there and F64 [8, 9] in "
                      "the program"},
        {MODEL_TYPE, "tensor moment is F64 [8, 8] there and I64 [8, 8] in "
                     "the program"},
        {MODEL_NAME, "tensor momentum of the program is not in it"},
        {MODEL_MORE, "tensor more of the program is not in it"},
        {MODEL_LESS, "in it is not in the program"},
        {MODEL_OWN, "tensor moment is replicated there and each rank's own "
                    "in the program"},
        {MODEL_EMPTY, " in it is not in the program"},
    };
    char *dir = ckpt_temp_dir();
    struct ckpt_job job = {.dir = dir, .step = 9, .model = MODEL_SHARED};
    ckpt_save(&job, 2);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        job.model = cases[i].model;
        ok(ckpt_load(&job, 2) == DT_ERR_MISMATCH &&
               strstr(job.text[0], cases[i].says) &&
               strstr(job.text[0], ": start the program with the options "
                                   "it was saved with, or give another "
                                   "directory"),
           "another model: %s", job.text[0]);
        ok(all(job.untouched, 2), "the tensors are untouched");
    }
    job.model = MODEL_DIFFERS;
    ok(ckpt_load(&job, 2) == DT_ERR_INVALID_ARG &&
           strstr(job.text[0], "rank 1 named other tensors than rank 0"),
       "ranks of different models do not load: %s", job.text[0]);
    job.step = 10;
    ok(ckpt_save(&job, 2) == DT_ERR_INVALID_ARG, "nor save: %s", job.text[1]);
    job.model = MODEL_SHARED;
    job.wrong_step = true;
    ok(ckpt_save(&job, 2) == DT_ERR_INVALID_ARG &&
           strstr(job.text[0], "rank 1 is at step 11, rank 0 at step 10"),
       "nor ranks at different steps: %s", job.text[0]);
    ok(strcmp(ckpt_list(dir), "step-000000000009 ") == 0,
       "nothing of it is left");
    ckpt_remove_tree(dir);
}

static void test_keep(void)
{
    char *dir = ckpt_temp_dir();
    struct ckpt_job job = {.dir = dir, .keep = 0};
    for (job.step = 1; job.step < 5; job.step++)
        ckpt_save(&job, 2);
    ok(strcmp(ckpt_list(dir), "step-000000000001 step-000000000002 "
                              "step-000000000003 step-000000000004 ") == 0,
       "keep 0 keeps all");
    job.keep = 3;
    ok(ckpt_save(&job, 2) == DT_SUCCESS &&
           strcmp(ckpt_list(dir), "step-000000000003 step-000000000004 "
                                  "step-000000000005 ") == 0,
       "keep 3 keeps the new one and two older");
    job.keep = 1;
    job.step = 4;
    ok(ckpt_save(&job, 2) == DT_SUCCESS &&
           strcmp(ckpt_list(dir), "step-000000000004 step-000000000005 ") == 0,
       "a newer one than was saved is never removed");
    job.step = 6;
    ok(ckpt_save(&job, 2) == DT_SUCCESS &&
           strcmp(ckpt_list(dir), "step-000000000006 ") == 0,
       "keep 1 keeps the new one");
    job.salt = 1;
    ok(ckpt_save(&job, 2) == DT_SUCCESS && loads(&job, 2, 6) &&
           strcmp(ckpt_list(dir), "step-000000000006 ") == 0,
       "one of the same step is replaced");
    job.step = 1234567890123456789;
    ok(ckpt_save(&job, 2) == DT_SUCCESS && loads(&job, 2, job.step) &&
           strcmp(ckpt_list(dir), "step-1234567890123456789 ") == 0,
       "a step of 19 digits");
    ckpt_remove_tree(dir);
}

/* Those of each k-th step stay, and do not count among the newest. */
static void test_keep_every(void)
{
    char *dir = ckpt_temp_dir();
    struct ckpt_job job = {.dir = dir, .keep = -1};
    int saved = 0;
    setenv("DT_CKPT_KEEP", "2,every:4", 1);
    for (job.step = 3; job.step < 10; job.step++)
        saved += ckpt_save(&job, 2) == DT_SUCCESS;
    job.step = 9;
    ok(saved == 7 &&
           strcmp(ckpt_list(dir), "step-000000000004 step-000000000007 "
                                  "step-000000000008 step-000000000009 ") == 0,
       "keep 2,every:4 keeps two, and those of steps 4 and 8: %s",
       ckpt_list(dir));
    ok(loads(&job, 2, 9), "the newest is loaded");
    unsetenv("DT_CKPT_KEEP");
    ckpt_remove_tree(dir);
}

/* ---- another job takes the directory ---- */

static void save_after_taken(void *arg)
{
    char *dir = arg, *path = NULL;
    dt_ckpt_t ckpt = NULL;
    char data[2] = {0};
    if (asprintf(&path, "%s/.lock", dir) < 0)
        abort();
    ok(dt_ckpt_open(dir, 1, &ckpt) == DT_SUCCESS &&
           dt_ckpt_add_tensor(ckpt, "w", data, DT_DTYPE_U8, 1, (int64_t[]){2},
                              0) == DT_SUCCESS &&
           dt_ckpt_save(ckpt, 1) == DT_SUCCESS,
       "a job saves");
    FILE *file = fopen(path, "r+");
    if (!file || fputs("slurm-dt lock 1\ngeneration 9\n", file) < 0 ||
        fclose(file))
        abort();
    ok(dt_ckpt_save(ckpt, 2) == DT_ERR_BUSY &&
           strstr(dt_last_error(), "another job has taken the directory"),
       "and not after another job has taken the directory: %s",
       dt_last_error());
    dt_ckpt_close(ckpt);
    free(path);
}

static void test_taken(void)
{
    char *dir = ckpt_temp_dir();
    fake_world_run(1, save_after_taken, dir);
    ok(strstr(ckpt_list(dir), "step-000000000001 ") &&
           !strstr(ckpt_list(dir), "step-000000000002"),
       "whose checkpoints stay as they are");
    ckpt_remove_tree(dir);
}

/* ---- the golden checkpoint, by another writer ---- */

static const char golden_0[] =
    "\xa8\0\0\0\0\0\0\0{\"__metadata__\":{\"format\":\"slurm-dt\","
    "\"version\":\"1\"},\"w\":{\"dtype\":\"F32\",\"shape\":[3],"
    "\"data_offsets\":[0,12]},\"own\":{\"dtype\":\"U8\",\"shape\":[2],"
    "\"data_offsets\":[12,14]}}      "
    "\0\0\xc0?\0\0\x10\xc0\0\0\x80"
    "D\1\2";
static const char golden_1[] =
    "\xa0\0\0\0\0\0\0\0{\"__metadata__\":{\"format\":\"slurm-dt\","
    "\"version\":\"1\"},\"s\":{\"dtype\":\"I64\",\"shape\":[],"
    "\"data_offsets\":[0,8]},\"own\":{\"dtype\":\"U8\",\"shape\":[2],"
    "\"data_offsets\":[8,10]}} \xd6\xff\xff\xff\xff\xff\xff\xff\3\4";
static const char golden_manifest[] =
    "{\"format\": \"slurm-dt checkpoint\", \"version\": 1, \"step\": 7, "
    "\"run_id\": \"golden\", \"restart_count\": 0, "
    "\"created\": \"2026-01-31T23:59:59Z\", \"world_size\": 2, \"files\": ["
    "{\"name\": \"rank-00000-of-00002.safetensors\", \"size\": 190, "
    "\"xxh3_64\": \"6942030dfabf3631\"}, "
    "{\"name\": \"rank-00001-of-00002.safetensors\", \"size\": 178, "
    "\"xxh3_64\": \"4883e61677eb1b6d\"}], \"tensors\": {"
    "\"w\": {\"dtype\": \"F32\", \"shape\": [3], \"replicated\": true, "
    "\"file\": \"rank-00000-of-00002.safetensors\"}, "
    "\"own\": {\"dtype\": \"U8\", \"shape\": [2], \"replicated\": false}, "
    "\"s\": {\"dtype\": \"I64\", \"shape\": [], \"replicated\": true, "
    "\"file\": \"rank-00001-of-00002.safetensors\"}}, "
    "\"checksum\": \"92b47060c5f3bea0\"}";

static void put(const char *dir, const char *name, const void *data, size_t n)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", dir, name) < 0)
        abort();
    FILE *file = fopen(path, "w");
    if (!file || fwrite(data, 1, n, file) != n || fclose(file))
        abort();
    free(path);
}

struct golden {
    const char *dir;
    bool right[2];
    dt_result_t rc[2];
};

static void golden_rank(void *arg)
{
    struct golden *golden = arg;
    float w[3] = {0};
    int64_t s = 0, step = 0;
    unsigned char own[2] = {0};
    dt_ckpt_t ckpt = NULL;
    int rank = dt_rank();
    dt_ckpt_open(golden->dir, 0, &ckpt);
    dt_ckpt_add_tensor(ckpt, "s", &s, DT_DTYPE_I64, 0, NULL,
                       DT_CKPT_REPLICATED);
    dt_ckpt_add_tensor(ckpt, "own", own, DT_DTYPE_U8, 1, (int64_t[]){2}, 0);
    dt_ckpt_add_tensor(ckpt, "w", w, DT_DTYPE_F32, 1, (int64_t[]){3},
                       DT_CKPT_REPLICATED);
    golden->rc[rank] = dt_ckpt_load(ckpt, &step);
    golden->right[rank] = golden->rc[rank] == DT_SUCCESS && step == 7 &&
                          s == -42 && w[0] == 1.5F && w[1] == -2.25F &&
                          w[2] == 1024.F && own[0] == 1 + 2 * rank &&
                          own[1] == 2 + 2 * rank;
    dt_ckpt_close(ckpt);
}

static void test_golden(void)
{
    char *dir = ckpt_temp_dir(), *step = NULL;
    if (asprintf(&step, "%s/step-000000000007", dir) < 0 || mkdir(step, 0700))
        abort();
    put(step, "rank-00000-of-00002.safetensors", golden_0,
        sizeof(golden_0) - 1);
    put(step, "rank-00001-of-00002.safetensors", golden_1,
        sizeof(golden_1) - 1);
    put(step, "manifest.json", golden_manifest, sizeof(golden_manifest) - 1);
    struct golden golden = {.dir = dir};
    fake_world_run(2, golden_rank, &golden);
    ok(golden.right[0] && golden.right[1], "the golden checkpoint loads");
    char damaged[sizeof(golden_0)];
    memcpy(damaged, golden_0, sizeof(damaged));
    damaged[sizeof(damaged) - 5] ^= 1; /* in the last value of w */
    put(step, "rank-00000-of-00002.safetensors", damaged, sizeof(damaged) - 1);
    fake_world_run(2, golden_rank, &golden);
    ok(golden.rc[0] == DT_ERR_CORRUPT && golden.rc[1] == DT_ERR_CORRUPT,
       "and not with one bit of a value flipped");
    free(step);
    ckpt_remove_tree(dir);
}

/* ---- arguments ---- */

static void bad_arguments(void *arg)
{
    const char *dir = arg;
    dt_ckpt_t ckpt = NULL;
    int64_t step = -7, shape[] = {2};
    char data[2];
    ok(dt_ckpt_open(NULL, 1, &ckpt) == DT_ERR_INVALID_ARG &&
           strstr(dt_last_error(), "neither as an argument nor by DT_CKPT"),
       "open refuses no directory: %s", dt_last_error());
    ok(dt_ckpt_open("", 1, &ckpt) == DT_ERR_INVALID_ARG &&
           dt_ckpt_open(dir, -2, &ckpt) == DT_ERR_INVALID_ARG &&
           dt_ckpt_open(dir, 1, NULL) == DT_ERR_INVALID_ARG && !ckpt,
       "open refuses: %s", dt_last_error());
    ok(dt_ckpt_open(dir, 1, &ckpt) == DT_SUCCESS && ckpt, "open");
    ok(dt_ckpt_load(ckpt, &step) == DT_ERR_NOT_FOUND && step == -7 &&
           strstr(dt_last_error(), "no checkpoint in"),
       "nothing to load: %s", dt_last_error());
    ok(dt_ckpt_save(NULL, 1) == DT_ERR_INVALID_ARG &&
           dt_ckpt_save(ckpt, -1) == DT_ERR_INVALID_ARG,
       "save refuses: %s", dt_last_error());
    ok(dt_ckpt_load(NULL, &step) == DT_ERR_INVALID_ARG &&
           dt_ckpt_load(ckpt, NULL) == DT_ERR_INVALID_ARG,
       "load refuses: %s", dt_last_error());
    ok(dt_ckpt_add_tensor(ckpt, "a", data, DT_DTYPE_U8, 1, shape, 0) ==
           DT_SUCCESS,
       "add");
    ok(dt_ckpt_add_tensor(ckpt, "a", data, DT_DTYPE_U8, 1, shape, 0) ==
           DT_ERR_INVALID_ARG,
       "add refuses a name twice: %s", dt_last_error());
    ok(dt_ckpt_add_tensor(ckpt, "b", data, DT_DTYPE_U8, 1, shape, 2) ==
           DT_ERR_INVALID_ARG,
       "add refuses a flag: %s", dt_last_error());
    ok(dt_ckpt_add_tensor(ckpt, "b", NULL, DT_DTYPE_U8, 1, shape, 0) ==
           DT_ERR_INVALID_ARG,
       "add refuses no data: %s", dt_last_error());
    ok(dt_ckpt_add_tensor(ckpt, "b\n", data, DT_DTYPE_U8, 1, shape, 0) ==
               DT_ERR_INVALID_ARG &&
           dt_ckpt_add_tensor(NULL, "b", data, DT_DTYPE_U8, 1, shape, 0) ==
               DT_ERR_INVALID_ARG,
       "add refuses: %s", dt_last_error());
    dt_ckpt_close(ckpt);
    dt_ckpt_close(NULL);
}

static void test_arguments(void)
{
    char *dir = ckpt_temp_dir(), *deep = NULL;
    dt_ckpt_t ckpt = NULL;
    ok(dt_ckpt_open(dir, 1, &ckpt) == DT_ERR_NOT_INITIALIZED && !ckpt,
       "before dt_init: %s", dt_last_error());
    fake_world_run(1, bad_arguments, dir);
    if (asprintf(&deep, "%s/a//b/c/", dir) < 0)
        abort();
    struct ckpt_job job = {.dir = deep, .step = 0};
    ok(ckpt_save(&job, 2) == DT_SUCCESS && loads(&job, 2, 0),
       "missing parents are made, step 0");
    free(deep);
    ckpt_remove_tree(dir);
}

int main(void)
{
    alarm(600);
    test_arguments();
    test_round_trip();
    test_files();
    test_world_sizes();
    test_other_models();
    test_keep();
    test_keep_every();
    test_taken();
    test_golden();
    return tap_done();
}
