/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* write.c - what one rank writes of a checkpoint into a tier. */
#include "ckpt/save/write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/save/memory.h"

#ifndef WRITE_AHEAD_MIN            /* tests have smaller shards */
#define WRITE_AHEAD_MIN (16 << 20) /* bytes that are worth another thread */
#endif

/* ---- the directory ---- */

static dt_result_t open_tier(struct dt_writing *w, struct dt_error *err)
{
    if (w->tier->memory)
        return dt_memory_open(w->tier->dir, &w->dirfd, err);
    w->dirfd = dt_store_open(w->tier->dir);
    return w->dirfd < 0 ? dt_failed(err, "cannot open the directory")
                        : DT_SUCCESS;
}

static dt_result_t open_partial(struct dt_writing *w, struct dt_error *err)
{
    dt_result_t rc = open_tier(w, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (w->leader)
        dt_store_sweep(w->dirfd, w->partial);
    if (mkdirat(w->dirfd, w->partial, 0777) && errno != EEXIST)
        return dt_failed(err, "cannot write in the directory");
    w->partialfd = dt_store_open_at(w->dirfd, w->partial);
    return w->partialfd < 0 ? dt_failed(err, w->partial) : DT_SUCCESS;
}

/* ---- a new file ---- */

static int by_offset(const void *a, const void *b)
{
    const struct dt_shard_slice *x = *(const struct dt_shard_slice *const *)a;
    const struct dt_shard_slice *y = *(const struct dt_shard_slice *const *)b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* The count + 1 pieces of the file in their order. NULL: out of memory. */
static struct dt_piece *pieces(const struct dt_shard *shard)
{
    struct dt_piece *piece = calloc(shard->count + 1, sizeof(*piece));
    const struct dt_shard_slice **order =
        calloc(shard->count + 1, sizeof(*order));
    if (!piece || !order) {
        free(piece);
        free(order);
        return NULL;
    }
    for (size_t i = 0; i < shard->count; i++)
        order[i] = &shard->slice[i];
    if (shard->count > 0)
        qsort(order, shard->count, sizeof(*order), by_offset);
    piece[0] = (struct dt_piece){shard->header, shard->header_len};
    for (size_t i = 0; i < shard->count; i++)
        piece[i + 1] = (struct dt_piece){order[i]->data, order[i]->piece.bytes};
    free(order);
    return piece;
}

static dt_result_t fill_file(struct dt_ckpt *ckpt, const struct dt_shard *shard,
                             const char *image, int fd, struct dt_error *err)
{
    const struct dt_save *save = &ckpt->saver->save;
    struct dt_piece whole = {image, shard->size};
    struct dt_piece *piece = image ? NULL : pieces(shard);
    if (!image && !piece)
        return dt_no_memory(err);
    dt_result_t rc = DT_SUCCESS;
    if (dt_drain_write(fd, image ? &whole : piece, image ? 1 : shard->count + 1,
                       save->async ? ckpt->rate : 0,
                       save->async ? ckpt->saver->drain : NULL))
        rc = dt_error_set(err, dt_file_result(errno), "%s", strerror(errno));
    free(piece);
    return rc;
}

static void shard_name(const struct dt_ckpt *ckpt, char name[64])
{
    snprintf(name, 64, "rank-%05d-of-%05d.safetensors", ckpt->rank, ckpt->size);
}

static int create_file(const struct dt_writing *w, const char *name)
{
    return openat(w->partialfd, name,
                  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

/* Sync and close the file, if rc is SUCCESS; else only close it. */
static dt_result_t finish_file(int fd, dt_result_t rc, struct dt_error *err)
{
    if (rc == DT_SUCCESS && dt_file_sync(fd))
        rc = dt_failed(err, "fsync");
    if (close(fd) && rc == DT_SUCCESS)
        rc = dt_failed(err, "close");
    return rc;
}

/* Write the shard as a file, whose contents image has unless it is NULL. */
static dt_result_t write_file(struct dt_ckpt *ckpt, struct dt_writing *w,
                              const struct dt_shard *shard, const char *image,
                              const char *name, struct dt_error *err)
{
    struct dt_saver *saver = ckpt->saver;
    struct dt_error why = {0};
    dt_result_t rc;
    if (w->tier->memory)
        return dt_snapshot_link(saver->snapshot, w->partialfd, name, err);
    if (saver->ahead.begun && w->tier == &ckpt->tier[DT_TIER_DIR] && image)
        return DT_SUCCESS; /* dt_write_end waits for it */
    int fd = create_file(w, name);
    if (fd < 0)
        return dt_failed(err, name);
    rc = fill_file(ckpt, shard, image, fd, &why);
    rc = finish_file(fd, rc, &why);
    if (rc != DT_SUCCESS)
        return dt_error_set(err, rc, "%s: %s", name, why.text);
    return rc;
}

/* Write the slices i with !skip[i], which were not linked, as one new file. */
static dt_result_t write_rest(struct dt_ckpt *ckpt, struct dt_writing *w,
                              const bool *skip, struct dt_error *err)
{
    const struct dt_save *save = &ckpt->saver->save;
    struct dt_shard rest;
    dt_result_t rc = dt_shard_rest(&rest, &save->shard, skip, err);
    if (rc != DT_SUCCESS)
        return rc;
    struct dt_manifest_file file = {
        .size = rest.size,
        .header = rest.header_len,
        .checksum = dt_checksum(rest.header, rest.header_len)};
    shard_name(ckpt, file.name);
    int index;
    bool all = rest.count == save->shard.count;
    if (rest.count > 0) {
        rc = write_file(ckpt, w, &rest, all ? save->image : NULL, file.name,
                        err);
        if (rc == DT_SUCCESS)
            rc = dt_written_add(&w->next, &file, &index, err);
    }
    for (size_t i = 0, k = 0; rc == DT_SUCCESS && i < w->next.count; i++)
        if (!skip[i]) {
            w->next.slice[i].file = index;
            w->next.slice[i].offset = rest.slice[k++].offset;
        }
    dt_shard_clear(&rest);
    return rc;
}

/* ---- what has not changed ---- */

/* The name that an older file gets in a newer directory. */
static void link_name(char *name, size_t room, const char *old, int64_t step)
{
    const char *dot = strchr(old, '.');
    if (strstr(old, ".step-"))
        snprintf(name, room, "%s", old); /* it was already linked there */
    else
        snprintf(name, room, "%.*s.step-%012" PRId64 "%s", (int)(dot - old),
                 old, step, dot);
}

/* Link one file of the last checkpoint, whose directory is olddirfd. */
static bool link_file(struct dt_writing *w, int olddirfd,
                      const struct dt_written *before, int f, int *index)
{
    struct dt_manifest_file file = before->file[f];
    struct stat st;
    link_name(file.name, sizeof(file.name), before->file[f].name, before->step);
    if (fstatat(olddirfd, before->file[f].name, &st, AT_SYMLINK_NOFOLLOW) ||
        !S_ISREG(st.st_mode) || (size_t)st.st_size != file.size ||
        linkat(olddirfd, before->file[f].name, w->partialfd, file.name, 0))
        return false;
    if (dt_written_add(&w->next, &file, index, NULL) == DT_SUCCESS)
        return true;
    unlinkat(w->partialfd, file.name, 0);
    return false;
}

/* Link the files that have unchanged slices: all of them, or none. */
static bool link_files(struct dt_writing *w, const struct dt_written *before,
                       const int *same)
{
    char name[DT_STORE_NAME];
    dt_store_name(name, before->step);
    int olddirfd = dt_store_open_at(w->dirfd, name);
    bool good = olddirfd >= 0;
    for (int f = 0; good && f < (int)before->nfiles; f++) {
        int index = -1;
        for (size_t i = 0; good && i < w->next.count; i++) {
            if (same[i] < 0 || before->slice[same[i]].file != f)
                continue;
            if (index < 0)
                good = link_file(w, olddirfd, before, f, &index);
            w->next.slice[i].file = index;
            w->next.slice[i].offset = before->slice[same[i]].offset;
        }
    }
    if (olddirfd >= 0)
        close(olddirfd);
    for (size_t f = 0; !good && f < w->next.nfiles; f++)
        unlinkat(w->partialfd, w->next.file[f].name, 0);
    if (!good)
        w->next.nfiles = 0;
    return good;
}

/* The file that was begun ahead is not what is to be written. */
static void drop_ahead(struct dt_ckpt *ckpt, const struct dt_writing *w)
{
    char name[64];
    shard_name(ckpt, name);
    dt_write_ahead_end(ckpt);
    unlinkat(w->partialfd, name, 0);
}

static dt_result_t write_files(struct dt_ckpt *ckpt, struct dt_writing *w,
                               const struct dt_written *before,
                               struct dt_error *err)
{
    size_t n = w->next.count;
    int *same = calloc(n + 1, sizeof(*same));
    bool *skip = calloc(n + 1, sizeof(*skip));
    dt_result_t rc = DT_ERR_NO_MEMORY;
    if (!same || !skip) {
        dt_no_memory(err);
        goto free_lists;
    }
    bool link = !w->tier->memory &&
                dt_written_same(before, &ckpt->saver->save.shard, same);
    if (link && ckpt->saver->ahead.begun && w->tier == &ckpt->tier[DT_TIER_DIR])
        drop_ahead(ckpt, w);
    if (link && link_files(w, before, same))
        for (size_t i = 0; i < n; i++)
            skip[i] = same[i] >= 0;
    rc = write_rest(ckpt, w, skip, err);
free_lists:
    free(skip);
    free(same);
    return rc;
}

/* ---- this rank's part of the manifest ---- */

static dt_result_t add_parts(const struct dt_ckpt *ckpt,
                             const struct dt_writing *w, struct dt_part *part,
                             struct dt_error *err)
{
    const struct dt_shard *shard = &ckpt->saver->save.shard;
    dt_result_t rc = DT_SUCCESS;
    int index;
    for (size_t f = 0; f < w->next.nfiles && rc == DT_SUCCESS; f++)
        rc = dt_part_add_file(part, &w->next.file[f], &index, err);
    for (size_t i = 0; i < w->next.count && rc == DT_SUCCESS; i++) {
        const struct dt_ckpt_tensor *t = &shard->slice[i].what;
        const struct dt_written_slice *slice = &w->next.slice[i];
        bool boxed = t->kind == DT_MANIFEST_GLOBAL;
        const struct dt_manifest_slice where = {.file = slice->file,
                                                .rank = ckpt->rank,
                                                .offset = slice->offset,
                                                .bytes = slice->bytes,
                                                .at = boxed ? t->at : NULL,
                                                .extent =
                                                    boxed ? t->extent : NULL,
                                                .sum = slice->sum};
        rc = dt_part_add_slice(
            part,
            t->kind == DT_MANIFEST_BLOB ? &shard->slice[i].piece : &t->type,
            t->kind, t->replicated, &where, err);
    }
    return rc;
}

static dt_result_t print_part(const struct dt_ckpt *ckpt, struct dt_writing *w,
                              struct dt_error *err)
{
    struct dt_part *part = dt_part_create(ckpt->rank, ckpt->node);
    if (!part)
        return dt_no_memory(err);
    dt_result_t rc = add_parts(ckpt, w, part, err);
    if (rc == DT_SUCCESS)
        rc = dt_part_print(part, &w->part, &w->len, err);
    dt_part_destroy(part);
    return rc;
}

/* ---- all of it ---- */

static void begin(const struct dt_ckpt *ckpt, int tier, struct dt_writing *w)
{
    *w = (struct dt_writing){
        .tier = &ckpt->tier[tier], .dirfd = -1, .partialfd = -1};
    w->leader = w->tier->shared ? ckpt->rank == 0 : ckpt->local_rank == 0;
    dt_store_partial_name(w->partial, ckpt->saver->save.step, ckpt->tag);
}

dt_result_t dt_write(struct dt_ckpt *ckpt, int tier, struct dt_writing *w,
                     struct dt_error *err)
{
    const struct dt_save *save = &ckpt->saver->save;
    begin(ckpt, tier, w);
    if (save->mine.code != DT_SUCCESS)
        return dt_error_set(err, (dt_result_t)save->mine.code, "%s",
                            save->mine.err.text);
    if (w->tier->memory && *save->memory.text)
        return dt_error_set(err, DT_ERR_NO_SPACE, "%s", save->memory.text);
    dt_result_t rc = open_partial(w, err);
    if (rc == DT_SUCCESS)
        rc = dt_written_make(&w->next, &save->shard, save->step, err);
    if (rc == DT_SUCCESS)
        rc = write_files(ckpt, w, &ckpt->saver->written[tier], err);
    if (rc == DT_SUCCESS)
        rc = print_part(ckpt, w, err);
    return rc;
}

dt_result_t dt_write_end(struct dt_ckpt *ckpt, const struct dt_writing *w,
                         struct dt_error *err)
{
    struct dt_saver *saver = ckpt->saver;
    struct dt_error why;
    char name[64];
    if (!saver->ahead.begun || w->tier != &ckpt->tier[DT_TIER_DIR])
        return DT_SUCCESS;
    dt_drain_wait(saver->writer);
    saver->ahead.begun = false;
    why = saver->ahead.err;
    dt_result_t rc = finish_file(saver->ahead.fd, saver->ahead.rc, &why);
    if (rc == DT_SUCCESS)
        return rc;
    shard_name(ckpt, name);
    return dt_error_set(err, rc, "%s: %s", name, why.text);
}

void dt_writing_close(struct dt_writing *w)
{
    dt_written_clear(&w->next);
    free(w->part);
    if (w->partialfd >= 0)
        close(w->partialfd);
    if (w->dirfd >= 0)
        close(w->dirfd);
}

/* ---- writing ahead ---- */

static void fill_ahead(void *arg)
{
    struct dt_ckpt *ckpt = arg;
    struct dt_saver *saver = ckpt->saver;
    saver->ahead.rc = fill_file(ckpt, &saver->save.shard, saver->save.image,
                                saver->ahead.fd, &saver->ahead.err);
}

void dt_write_ahead(struct dt_ckpt *ckpt)
{
    struct dt_saver *saver = ckpt->saver;
    const struct dt_written *before = &saver->written[DT_TIER_DIR];
    struct dt_writing w;
    char name[64];
    if (!saver->save.image || saver->save.shard.size < WRITE_AHEAD_MIN ||
        before->nfiles > 1) /* little had changed */
        return;
    if (!saver->writer && dt_drain_start(&saver->writer, NULL) != DT_SUCCESS)
        return;
    begin(ckpt, DT_TIER_DIR, &w);
    shard_name(ckpt, name);
    saver->ahead = (struct dt_speculative){.fd = -1};
    if (open_partial(&w, NULL) == DT_SUCCESS)
        saver->ahead.fd = create_file(&w, name);
    saver->ahead.begun = saver->ahead.fd >= 0;
    if (saver->ahead.begun)
        dt_drain_run(saver->writer, fill_ahead, ckpt);
    dt_writing_close(&w);
}

void dt_write_ahead_end(struct dt_ckpt *ckpt)
{
    struct dt_saver *saver = ckpt->saver;
    if (!saver->ahead.begun)
        return;
    dt_drain_wait(saver->writer);
    close(saver->ahead.fd);
    saver->ahead.begun = false;
}
