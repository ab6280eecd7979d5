/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* state.c - checkpoints that a test makes itself. */
#include "model.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/format/build.h"
#include "ckpt/format/format.h"
#include "ckpt/load/load.h"
#include "ckpt/tensors.h"

/* ---- writing ---- */

struct shard {
    struct dt_part *part;
    size_t count;
    struct dt_tensor whole[MODEL_COUNT + 2], tensor[MODEL_COUNT + 2];
    enum dt_manifest_kind kind[MODEL_COUNT + 2];
    bool replicated[MODEL_COUNT + 2];
    int64_t at[MODEL_COUNT + 2][3];
};

static void choose(struct shard *shard, const struct state *state, int size,
                   int rank)
{
    for (size_t i = 0; i < MODEL_COUNT; i++) {
        int64_t at[3], extent[3];
        size_t k = shard->count;
        if (!model_has(state, i))
            continue;
        model_box(state, i, size, rank, at, extent);
        if ((model[i].replicated || model[i].ndim == 0) &&
            rank != (int)i % size)
            continue; /* another rank writes it */
        if (dt_tensor_init(&shard->whole[k], model[i].name, model[i].dtype,
                           model[i].ndim, model[i].shape, NULL) ||
            dt_tensor_init(&shard->tensor[k], model[i].name, model[i].dtype,
                           model[i].ndim, extent, NULL))
            abort();
        if (shard->tensor[k].bytes == 0 &&
            !(shard->whole[k].bytes == 0 && rank == 0))
            continue; /* no part */
        shard->kind[k] = model[i].kind;
        shard->replicated[k] = model[i].replicated;
        memcpy(shard->at[k], at, sizeof(at));
        shard->count++;
    }
    for (int shared = 0; shared < 2; shared++) {
        size_t k = shard->count;
        int64_t bytes = shared ? 77 : 5 * rank; /* rank 0's is empty */
        if (shared && rank != size - 1)
            continue;
        dt_tensor_init(&shard->whole[k], shared ? "shared blob" : "blob",
                       DT_DTYPE_U8, 1, &bytes, NULL);
        shard->tensor[k] = shard->whole[k];
        shard->kind[k] = DT_MANIFEST_BLOB;
        shard->replicated[k] = shared;
        shard->count++;
    }
}

static void add_slice(struct shard *shard, size_t i, int file, size_t offset,
                      const char *data)
{
    size_t bytes = shard->tensor[i].bytes;
    uint64_t *sum = calloc(dt_manifest_blocks(bytes) + 1, sizeof(*sum));
    struct dt_manifest_slice slice = {.file = file,
                                      .offset = offset,
                                      .bytes = bytes,
                                      .at = shard->at[i],
                                      .extent = shard->tensor[i].shape,
                                      .sum = sum};
    struct dt_error err = {0};
    for (size_t b = 0; b < dt_manifest_blocks(bytes); b++) {
        size_t left = bytes - b * DT_MANIFEST_BLOCK;
        sum[b] =
            dt_checksum(data + b * DT_MANIFEST_BLOCK,
                        left < DT_MANIFEST_BLOCK ? left : DT_MANIFEST_BLOCK);
    }
    if (dt_part_add_slice(shard->part, &shard->whole[i], shard->kind[i],
                          shard->replicated[i], &slice, &err)) {
        puts(err.text);
        abort();
    }
    free(sum);
}

/* One rank's file, and its part of the manifest as text. */
static char *write_shard(int dirfd, const struct state *state, int size,
                         int rank, size_t *len)
{
    struct shard *shard = calloc(1, sizeof(*shard));
    const struct dt_tensor *tensor[MODEL_COUNT + 2];
    size_t offset[MODEL_COUNT + 2], header_len, bytes;
    struct dt_manifest_file file = {0};
    char *header, *text = NULL;
    int index;
    shard->part = dt_part_create(rank, rank);
    choose(shard, state, size, rank);
    for (size_t i = 0; i < shard->count; i++)
        tensor[i] = &shard->tensor[i];
    if (dt_safetensors_layout(shard->count, tensor, offset, &header,
                              &header_len, &bytes, NULL))
        abort();
    char *data = realloc(header, bytes + 1);
    for (size_t i = 0; i < shard->count; i++)
        model_fill(
            &shard->whole[i], shard->at[i], shard->tensor[i].shape,
            model_salt(state, shard->kind[i], shard->replicated[i], rank),
            data + offset[i], false);
    snprintf(file.name, sizeof(file.name), "rank-%05d-of-%05d.safetensors",
             rank, size);
    file.size = bytes;
    file.header = header_len;
    file.checksum = dt_checksum(data, header_len);
    int fd = openat(dirfd, file.name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                    0600);
    if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes || close(fd) ||
        dt_part_add_file(shard->part, &file, &index, NULL))
        abort();
    for (size_t i = 0; i < shard->count; i++)
        add_slice(shard, i, index, offset[i], data + offset[i]);
    if (dt_part_print(shard->part, &text, len, NULL))
        abort();
    dt_part_destroy(shard->part);
    free(shard);
    free(data);
    return text;
}

static void step_path(char *path, size_t room, const char *dir, int64_t step)
{
    char name[DT_STORE_NAME];
    dt_store_name(name, step);
    snprintf(path, room, "%s/%s", dir, name);
}

int state_dirfd(const char *dir, int64_t step)
{
    char path[4096];
    step_path(path, sizeof(path), dir, step);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void state_write(const char *dir, const struct state *state, int nranks,
                 int64_t step)
{
    struct dt_manifest manifest = {.step = step,
                                   .run_id = "test",
                                   .created = "2026-01-31T23:59:59Z",
                                   .redundancy = "none",
                                   .world_size = nranks,
                                   .num_nodes = nranks};
    char path[4096], *text[MODEL_RANKS], *all;
    size_t len[MODEL_RANKS], all_len;
    struct dt_error err = {0};
    step_path(path, sizeof(path), dir, step);
    mkdir(path, 0700);
    int dirfd = state_dirfd(dir, step);
    for (int r = 0; r < nranks; r++)
        text[r] = write_shard(dirfd, state, nranks, r, &len[r]);
    if (dt_manifest_join(&manifest, nranks, (const char *const *)text, len,
                         &err) ||
        dt_manifest_print(&manifest, &all, &all_len, &err) ||
        dt_manifest_put(dirfd, all, all_len, &err)) {
        puts(err.text);
        abort();
    }
    for (int r = 0; r < nranks; r++)
        free(text[r]);
    free(all);
    dt_manifest_clear(&manifest);
    close(dirfd);
}

static int open_file(const char *dir, int64_t step, int file, struct stat *st)
{
    struct dt_manifest manifest = {0};
    uint64_t identity;
    int dirfd = state_dirfd(dir, step);
    if (dt_manifest_read(&manifest, dirfd, &identity, NULL))
        abort();
    int fd = openat(dirfd, manifest.file[file].name, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, st))
        abort();
    dt_manifest_clear(&manifest);
    close(dirfd);
    return fd;
}

long state_size(const char *dir, int64_t step, int file)
{
    struct stat st;
    close(open_file(dir, step, file, &st));
    return (long)st.st_size;
}

void state_flip(const char *dir, int64_t step, int file, long at)
{
    struct stat st;
    unsigned char byte;
    int fd = open_file(dir, step, file, &st);
    off_t where = at < 0 ? st.st_size - 1 : at;
    if (pread(fd, &byte, 1, where) != 1)
        abort();
    byte ^= 16;
    if (pwrite(fd, &byte, 1, where) != 1)
        abort();
    close(fd);
}

/* ---- loading ---- */

dt_result_t state_add(struct dt_ckpt *ckpt, const char *name,
                      enum dt_manifest_kind kind, bool replicated,
                      dt_dtype_t dtype, int ndim, const int64_t *shape,
                      const int64_t *at, const int64_t *extent, void *data)
{
    struct dt_ckpt_tensor *t = &ckpt->tensor[ckpt->count];
    struct dt_tensor part;
    *t = (struct dt_ckpt_tensor){
        .kind = kind, .replicated = replicated, .data = data};
    dt_result_t rc = dt_tensor_init(&t->type, name, dtype, ndim, shape, NULL);
    if (rc == DT_SUCCESS)
        rc =
            dt_tensor_init(&part, name, dtype, ndim, at ? extent : shape, NULL);
    if (rc != DT_SUCCESS)
        return rc;
    for (int d = 0; d < ndim; d++) {
        t->at[d] = at ? at[d] : 0;
        t->extent[d] = at ? extent[d] : shape[d];
    }
    t->bytes = part.bytes;
    ckpt->count++;
    return DT_SUCCESS;
}

struct dt_ckpt *state_open(const struct state *state)
{
    struct dt_ckpt *ckpt = calloc(1, sizeof(*ckpt));
    ckpt->rank = dt_rank();
    ckpt->size = dt_size();
    ckpt->room = 32;
    ckpt->tensor = calloc(ckpt->room, sizeof(*ckpt->tensor));
    ckpt->votes = calloc((size_t)ckpt->size, sizeof(*ckpt->votes));
    for (int t = 0; t < 2; t++) {
        ckpt->tier[t].dir = state->dir[t];
        ckpt->tier[t].shared = true;
    }
    for (size_t i = 0; i < MODEL_COUNT; i++) {
        int64_t at[3], extent[3];
        if (!model_has(state, i))
            continue;
        /* cut in another way than when it was written */
        struct state other = *state;
        other.seed += 500;
        model_box(&other, i, ckpt->size, ckpt->rank, at, extent);
        if (model[i].wide)
            for (int d = 0; d < 2; d++) { /* all of it */
                at[d] = 0;
                extent[d] = model[i].shape[d];
            }
        size_t bytes = dt_dtype_size(model[i].dtype);
        for (int d = 0; d < model[i].ndim; d++)
            bytes *= (size_t)extent[d];
        void *data = malloc(bytes + 1);
        memset(data, 0xee, bytes);
        if (state_add(ckpt, model[i].name, model[i].kind, model[i].replicated,
                      model[i].dtype, model[i].ndim, model[i].shape, at, extent,
                      data))
            abort();
    }
    return ckpt;
}

void state_close(struct dt_ckpt *ckpt)
{
    for (size_t i = 0; i < ckpt->count; i++)
        for (size_t k = 0; k < MODEL_COUNT + 2; k++) {
            const char *name = k < MODEL_COUNT    ? model[k].name
                               : k == MODEL_COUNT ? "blob"
                                                  : "shared blob";
            if (strcmp(ckpt->tensor[i].type.name, name) == 0)
                free(ckpt->tensor[i].data);
        }
    free(ckpt->tensor);
    free(ckpt->votes);
    free(ckpt);
}

bool state_holds(const struct state *state, const struct dt_ckpt *ckpt)
{
    static const int64_t zero;
    for (size_t i = 0; i < ckpt->count; i++) {
        const struct dt_ckpt_tensor *t = &ckpt->tensor[i];
        struct dt_tensor type = t->type;
        int64_t bytes = (int64_t)t->bytes;
        bool blob = t->kind == DT_MANIFEST_BLOB;
        if (blob && !t->data)
            continue;
        if (blob)
            dt_tensor_init(&type, t->type.name, DT_DTYPE_U8, 1, &bytes, NULL);
        if (blob && bytes != (t->replicated ? 77 : 5 * ckpt->rank))
            return false;
        if (!model_fill(&type, blob ? &zero : t->at, blob ? &bytes : t->extent,
                        model_salt(state, t->kind, t->replicated, ckpt->rank),
                        t->data, true))
            return false;
    }
    return true;
}

static bool is_untouched(const struct dt_ckpt *ckpt)
{
    for (size_t i = 0; i < ckpt->count; i++)
        for (size_t k = 0; k < ckpt->tensor[i].bytes; k++)
            if (((unsigned char *)ckpt->tensor[i].data)[k] != 0xee)
                return false;
    return true;
}

struct job {
    struct state *state;
    bool latest;
    dt_result_t rc[FAKE_WORLD_MAX];
    int64_t step[FAKE_WORLD_MAX];
    bool right[FAKE_WORLD_MAX], untouched[FAKE_WORLD_MAX];
    bool no_blob[FAKE_WORLD_MAX], shared_blob[FAKE_WORLD_MAX];
    struct dt_error err[FAKE_WORLD_MAX];
};

static void work(void *arg)
{
    struct job *job = arg;
    int r = dt_rank();
    struct dt_source loaded;
    struct dt_ckpt *ckpt = state_open(job->state);
    if (job->latest)
        job->rc[r] = dt_load_latest(ckpt, &job->step[r], &job->err[r]);
    else
        job->rc[r] = dt_load(ckpt, &job->step[r], &loaded, &job->err[r]);
    if (!job->latest && job->rc[r] == DT_SUCCESS)
        dt_source_close(&loaded);
    job->untouched[r] = job->rc[r] != DT_SUCCESS && is_untouched(ckpt);
    job->right[r] = job->rc[r] == DT_SUCCESS && state_holds(job->state, ckpt);
    const struct dt_ckpt_tensor *blob = dt_tensors_find(ckpt, "blob");
    const struct dt_ckpt_tensor *shared = dt_tensors_find(ckpt, "shared blob");
    job->no_blob[r] = blob && !blob->data;
    job->shared_blob[r] = shared && shared->data && shared->bytes == 77;
    state_close(ckpt);
}

static int run(struct job *job, int size, int64_t *step)
{
    struct state *state = job->state;
    fake_world_run(size, work, job);
    state->right = state->untouched = true;
    state->no_blob = state->shared_blob = 0;
    snprintf(state->text, sizeof(state->text), "%s", job->err[0].text);
    *step = job->step[0];
    for (int r = 0; r < size; r++) {
        state->right = state->right && job->right[r];
        state->untouched = state->untouched && job->untouched[r];
        state->no_blob += job->no_blob[r];
        state->shared_blob += job->shared_blob[r];
        if (job->rc[r] != job->rc[0] || job->step[r] != job->step[0] ||
            strcmp(job->err[r].text, job->err[0].text) != 0)
            return 1;
    }
    return job->rc[0];
}

int state_load(struct state *state, int size)
{
    struct job job = {.state = state};
    return run(&job, size, &state->step);
}

int state_latest(struct state *state, int size, int64_t *step)
{
    struct job job = {.state = state, .latest = true};
    return run(&job, size, step);
}
