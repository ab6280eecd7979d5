/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* write.c - what one rank writes of a checkpoint. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/build.h"
#include "ckpt/checksum.h"
#include "ckpt/memory.h"
#include "ckpt/save.h"

#ifndef EARLY            /* tests have less */
#define EARLY (16 << 20) /* bytes that are worth another thread */
#endif

static dt_result_t failed(struct dt_error *err, const char *what)
{
    int why = errno;
    return dt_error_set(err, dt_file_result(why), "%s: %s", what,
                        strerror(why));
}

static dt_result_t no_memory(struct dt_error *err)
{
    return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
}

/* ---- the directory ---- */

static dt_result_t open_tier(struct dt_writing *w, struct dt_error *err)
{
    if (w->tier->memory)
        return dt_memory_open(w->tier->dir, &w->dirfd, err);
    w->dirfd = dt_store_open(w->tier->dir);
    return w->dirfd < 0 ? failed(err, "cannot open the directory") : DT_SUCCESS;
}

static dt_result_t open_partial(struct dt_writing *w, struct dt_error *err)
{
    dt_result_t rc = open_tier(w, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (w->leader)
        dt_store_sweep(w->dirfd, w->partial);
    if (mkdirat(w->dirfd, w->partial, 0777) && errno != EEXIST)
        return failed(err, "cannot write in the directory");
    w->partialfd = openat(w->dirfd, w->partial,
                          O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return w->partialfd < 0 ? failed(err, w->partial) : DT_SUCCESS;
}

/* ---- a new file ---- */

static int by_offset(const void *a, const void *b)
{
    const struct dt_shard_slice *x = *(const struct dt_shard_slice *const *)a;
    const struct dt_shard_slice *y = *(const struct dt_shard_slice *const *)b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* What the file is made of, in its order: count + 1 pieces. NULL: no memory. */
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
        return no_memory(err);
    dt_result_t rc = DT_SUCCESS;
    if (dt_drain_write(fd, image ? &whole : piece, image ? 1 : shard->count + 1,
                       save->behind ? ckpt->rate : 0,
                       save->behind ? ckpt->saver->drain : NULL))
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

/* Have shard in fd, on disk; closes it. */
static dt_result_t finish_file(int fd, dt_result_t rc, struct dt_error *err)
{
    if (rc == DT_SUCCESS && dt_file_sync(fd))
        rc = failed(err, "fsync");
    if (close(fd) && rc == DT_SUCCESS)
        rc = failed(err, "close");
    return rc;
}

/* Write shard as file, which image is, if there is one. */
static dt_result_t write_file(struct dt_ckpt *ckpt, struct dt_writing *w,
                              const struct dt_shard *shard, const char *image,
                              const char *name, struct dt_error *err)
{
    struct dt_saver *saver = ckpt->saver;
    struct dt_error why = {0};
    dt_result_t rc;
    if (w->tier->memory)
        return dt_snapshot_link(saver->snapshot, w->partialfd, name, err);
    if (saver->early.begun && w->tier == &ckpt->tier[DT_TIER_DIR] && image)
        return DT_SUCCESS; /* dt_write_end waits for it */
    int fd = create_file(w, name);
    if (fd < 0)
        return failed(err, name);
    rc = fill_file(ckpt, shard, image, fd, &why);
    rc = finish_file(fd, rc, &why);
    if (rc != DT_SUCCESS)
        return dt_error_set(err, rc, "%s: %s", name, why.text);
    return rc;
}

/* Those slices i of the whole that are not linked, for which skip[i] is false,
 * as one new file. */
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

/* The name of an older file in a newer directory. */
static void link_name(char *name, size_t room, const char *old, int64_t step)
{
    const char *dot = strchr(old, '.');
    if (strstr(old, ".step-"))
        snprintf(name, room, "%s", old); /* was linked there, too */
    else
        snprintf(name, room, "%.*s.step-%012" PRId64 "%s", (int)(dot - old),
                 old, step, dot);
}

/* Link one file of the checkpoint before, olddirfd. */
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

/* Link what the unchanged slices are in: all of it, or nothing. */
static bool link_files(struct dt_writing *w, const struct dt_written *before,
                       const int *same)
{
    char name[DT_STORE_NAME];
    dt_store_name(name, before->step);
    int olddirfd =
        openat(w->dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
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

/* What was begun early is not what is wanted. */
static void drop_early(struct dt_ckpt *ckpt, const struct dt_writing *w)
{
    char name[64];
    shard_name(ckpt, name);
    dt_write_early_end(ckpt);
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
        no_memory(err);
        goto free_lists;
    }
    bool link = !w->tier->memory &&
                dt_written_same(before, &ckpt->saver->save.shard, same);
    if (link && ckpt->saver->early.begun && w->tier == &ckpt->tier[DT_TIER_DIR])
        drop_early(ckpt, w); /* it was in vain */
    if (link && link_files(w, before, same))
        for (size_t i = 0; i < n; i++)
            skip[i] = same[i] >= 0;
    rc = write_rest(ckpt, w, skip, err);
free_lists:
    free(skip);
    free(same);
    return rc;
}

/* ---- what the others are told ---- */

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
        return no_memory(err);
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
    if (!saver->early.begun || w->tier != &ckpt->tier[DT_TIER_DIR])
        return DT_SUCCESS;
    dt_drain_wait(saver->writer);
    saver->early.begun = false;
    why = saver->early.err;
    dt_result_t rc = finish_file(saver->early.fd, saver->early.rc, &why);
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

/* ---- early ---- */

static void fill_early(void *arg)
{
    struct dt_ckpt *ckpt = arg;
    struct dt_saver *saver = ckpt->saver;
    saver->early.rc = fill_file(ckpt, &saver->save.shard, saver->save.image,
                                saver->early.fd, &saver->early.err);
}

void dt_write_early(struct dt_ckpt *ckpt)
{
    struct dt_saver *saver = ckpt->saver;
    const struct dt_written *before = &saver->written[DT_TIER_DIR];
    struct dt_writing w;
    char name[64];
    if (!saver->save.image || saver->save.shard.size < EARLY ||
        before->nfiles > 1) /* little had changed */
        return;
    if (!saver->writer && dt_drain_start(&saver->writer, NULL) != DT_SUCCESS)
        return;
    begin(ckpt, DT_TIER_DIR, &w);
    shard_name(ckpt, name);
    saver->early = (struct dt_early){.fd = -1};
    if (open_partial(&w, NULL) == DT_SUCCESS)
        saver->early.fd = create_file(&w, name);
    saver->early.begun = saver->early.fd >= 0;
    if (saver->early.begun)
        dt_drain_run(saver->writer, fill_early, ckpt);
    dt_writing_close(&w);
}

void dt_write_early_end(struct dt_ckpt *ckpt)
{
    struct dt_saver *saver = ckpt->saver;
    if (!saver->early.begun)
        return;
    dt_drain_wait(saver->writer);
    close(saver->early.fd);
    saver->early.begun = false;
}
