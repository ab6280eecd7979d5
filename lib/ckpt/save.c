/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* save.c - writing a checkpoint: a two-phase commit.
 *
 *   every rank: write own file in .step-N.partial-T, sync it, vote
 *   rank 0:     all fine: manifest, sync, rename to step-N, sync, prune
 *               else: remove the partial directory
 *               tell all ranks how it ended
 *
 * Only rank 0 decides, and once a rank has voted for the checkpoint it must
 * not touch its file any more: rank 0 may be committing it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/ckpt.h"
#include "ckpt/manifest.h"
#include "ckpt/safetensors.h"
#include "ckpt/store.h"

struct save {
    struct dt_ckpt *ckpt;
    int64_t step;
    uint64_t tag;
    char partial[DT_STORE_NAME];
    int dirfd;     /* the checkpoint directory, or -1 */
    int partialfd; /* the partial directory in it, or -1 */
};

struct verdict {
    int64_t code;
    struct dt_error err;
};

static dt_result_t failed(struct dt_error *err, const char *what)
{
    int why = errno;
    return dt_error_set(err, dt_file_result(why), "%s: %s", what,
                        strerror(why));
}

static void file_name(struct dt_manifest_file *file, int rank, int size)
{
    snprintf(file->name, sizeof(file->name), "rank-%05d-of-%05d.safetensors",
             rank, size);
}

/* Who writes the replicated tensors: each goes to the rank at which its
 * middle falls when all of them, laid end to end, are cut in equal parts. So
 * a rank writes at most the average and one tensor more. *before is the bytes
 * of the replicated tensors up to tensor i. */
static int owner(const struct dt_ckpt *ckpt, size_t i, size_t *before,
                 size_t total)
{
    size_t bytes = ckpt->tensor[i].type.bytes;
    unsigned __int128 middle = (unsigned __int128)*before + bytes / 2;
    *before += bytes;
    return middle < total ? (int)(middle * (size_t)ckpt->size / total) : 0;
}

static size_t replicated_bytes(const struct dt_ckpt *ckpt)
{
    size_t total = 0;
    for (size_t i = 0; i < ckpt->count; i++)
        if (ckpt->tensor[i].replicated)
            total += ckpt->tensor[i].type.bytes;
    return total;
}

/* ---- every rank ---- */

static dt_result_t write_tensors(struct save *s, int fd, struct dt_vote *vote,
                                 struct dt_error *err)
{
    const struct dt_ckpt *ckpt = s->ckpt;
    dt_result_t rc = DT_ERR_NO_MEMORY;
    size_t n = 0, before = 0, total = replicated_bytes(ckpt);
    const struct dt_tensor **tensor = calloc(ckpt->count + 1, sizeof(*tensor));
    const void **data = calloc(ckpt->count + 1, sizeof(*data));
    if (!tensor || !data) {
        dt_error_set(err, rc, "out of memory");
        goto free_lists;
    }
    for (size_t i = 0; i < ckpt->count; i++) {
        const struct dt_ckpt_tensor *t = &ckpt->tensor[i];
        if (t->replicated && owner(ckpt, i, &before, total) != ckpt->rank)
            continue;
        tensor[n] = &t->type;
        data[n++] = t->data;
    }
    rc = dt_safetensors_write(fd, n, tensor, data, &vote->size, &vote->checksum,
                              err);
free_lists:
    free(data);
    free(tensor);
    return rc;
}

static dt_result_t write_file(struct save *s, struct dt_vote *vote)
{
    struct dt_manifest_file file;
    struct dt_error why = {0};
    file_name(&file, s->ckpt->rank, s->ckpt->size);
    int fd = openat(s->partialfd, file.name,
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return failed(&vote->err, file.name);
    dt_result_t rc = write_tensors(s, fd, vote, &why);
    if (rc == DT_SUCCESS && dt_file_sync(fd))
        rc = failed(&why, "fsync");
    if (close(fd) && rc == DT_SUCCESS)
        rc = failed(&why, "close");
    if (rc != DT_SUCCESS)
        return dt_error_set(&vote->err, rc, "%s: %s", file.name, why.text);
    return rc;
}

static dt_result_t write_shard(struct save *s, struct dt_vote *vote)
{
    s->dirfd = dt_store_open(s->ckpt->dir);
    if (s->dirfd < 0)
        return failed(&vote->err, "cannot open the directory");
    if (s->ckpt->rank == 0)
        dt_store_sweep(s->dirfd, s->partial);
    if (mkdirat(s->dirfd, s->partial, 0777) && errno != EEXIST)
        return failed(&vote->err, "cannot write in the directory");
    s->partialfd = openat(s->dirfd, s->partial,
                          O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->partialfd < 0)
        return failed(&vote->err, s->partial);
    return write_file(s, vote);
}

/* ---- rank 0 ---- */

/* The file every rank says it wrote is where rank 0 can see it. */
static dt_result_t check_file(struct save *s, int rank,
                              const struct dt_manifest_file *file,
                              struct dt_error *err)
{
    struct stat st;
    if (fstatat(s->partialfd, file->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(st.st_mode) && (size_t)st.st_size == file->size)
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_IO,
                        "%s, written by rank %d, has not reached rank 0: the "
                        "directory must be on a file system that all nodes "
                        "share",
                        file->name, rank);
}

static void describe_run(struct dt_manifest *manifest)
{
    struct tm tm;
    time_t now = time(NULL);
    if (gmtime_r(&now, &tm))
        strftime(manifest->created, sizeof(manifest->created),
                 "%Y-%m-%dT%H:%M:%SZ", &tm);
    manifest->restart_count = dt_restart_count();
    snprintf(manifest->run_id, sizeof(manifest->run_id), "%s", dt_run_id());
    for (char *c = manifest->run_id; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

static dt_result_t describe(struct save *s, struct dt_manifest *manifest,
                            struct dt_error *err)
{
    const struct dt_ckpt *ckpt = s->ckpt;
    manifest->step = s->step;
    manifest->world_size = ckpt->size;
    manifest->count = ckpt->count;
    manifest->file = calloc((size_t)ckpt->size, sizeof(*manifest->file));
    manifest->tensor = calloc(ckpt->count + 1, sizeof(*manifest->tensor));
    if (!manifest->file || !manifest->tensor)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
    describe_run(manifest);
    size_t before = 0, total = replicated_bytes(ckpt);
    for (size_t i = 0; i < ckpt->count; i++) {
        const struct dt_ckpt_tensor *t = &ckpt->tensor[i];
        manifest->tensor[i].tensor = t->type;
        manifest->tensor[i].file = t->replicated
                                       ? owner(ckpt, i, &before, total)
                                       : DT_MANIFEST_PER_RANK;
    }
    dt_result_t rc = DT_SUCCESS;
    for (int r = 0; r < ckpt->size && rc == DT_SUCCESS; r++) {
        struct dt_manifest_file *file = &manifest->file[r];
        file_name(file, r, ckpt->size);
        file->size = ckpt->votes[r].size;
        file->checksum = ckpt->votes[r].checksum;
        rc = check_file(s, r, file, err);
    }
    return rc;
}

/* text, on disk and under its name, or not there at all. */
static dt_result_t put_manifest(int partialfd, const char *text, size_t len,
                                struct dt_error *err)
{
    int fd = openat(partialfd, DT_MANIFEST_TMP,
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return failed(err, DT_MANIFEST_TMP);
    dt_result_t rc = DT_SUCCESS;
    if (dt_file_write(fd, text, len) || dt_file_write(fd, "\n", 1) ||
        dt_file_sync(fd))
        rc = failed(err, DT_MANIFEST_TMP);
    if (close(fd) && rc == DT_SUCCESS)
        rc = failed(err, DT_MANIFEST_TMP);
    if (rc == DT_SUCCESS &&
        (renameat(partialfd, DT_MANIFEST_TMP, partialfd, DT_MANIFEST_NAME) ||
         dt_file_sync(partialfd)))
        rc = failed(err, DT_MANIFEST_NAME);
    return rc;
}

static dt_result_t commit(struct save *s, struct dt_error *err)
{
    struct dt_manifest manifest = {0};
    char *text = NULL;
    size_t len;
    dt_result_t rc = describe(s, &manifest, err);
    if (rc == DT_SUCCESS)
        rc = dt_manifest_print(&manifest, &text, &len, err);
    if (rc == DT_SUCCESS)
        rc = put_manifest(s->partialfd, text, len, err);
    if (rc == DT_SUCCESS)
        rc = dt_store_publish(s->dirfd, s->partial, s->step, s->tag, err);
    free(text);
    dt_manifest_clear(&manifest);
    return rc;
}

/* Say what failed, and what the user still has. */
static dt_result_t explain(struct save *s, dt_result_t rc,
                           const struct dt_error *why, struct dt_error *err)
{
    char name[DT_STORE_NAME];
    const char *kept = NULL;
    struct dt_store_entry *entry = NULL;
    size_t count = 0;
    dt_store_name(name, s->step);
    if (s->dirfd >= 0)
        dt_store_list(s->dirfd, &entry, &count, NULL);
    for (size_t i = 0; i < count && !kept; i++)
        if (entry[i].complete && !entry[i].hidden)
            kept = entry[i].name;
    dt_error_set(err, rc, "checkpoint %s not saved: %s; %s%s in %s", name,
                 why->text, kept ? kept : "no older one",
                 kept ? " is kept" : " is", s->ckpt->dir);
    free(entry);
    return rc;
}

/* The votes are in. */
static dt_result_t conclude(struct save *s, struct dt_error *err)
{
    struct dt_ckpt *ckpt = s->ckpt;
    struct dt_error why = {0}, vote = {0};
    int who = 0;
    dt_result_t rc = dt_vote_result(ckpt->votes, ckpt->size, &who, &vote);
    if (rc == DT_ERR_INVALID_ARG)
        why = vote; /* names the ranks itself */
    else if (rc != DT_SUCCESS)
        dt_error_set(&why, rc, "rank %d: %s", who, vote.text);
    else
        rc = commit(s, &why);
    if (rc != DT_SUCCESS) {
        if (s->dirfd >= 0)
            dt_store_remove(s->dirfd, s->partial, NULL);
        return explain(s, rc, &why, err);
    }
    if (dt_store_prune(s->dirfd, s->step, ckpt->keep, s->tag, &why) !=
        DT_SUCCESS)
        fprintf(stderr, "dt: old checkpoints in %s stay: %s\n", ckpt->dir,
                why.text);
    return DT_SUCCESS;
}

/* ---- all together ---- */

dt_result_t dt_ckpt_do_save(struct dt_ckpt *ckpt, int64_t step,
                            struct dt_error *err)
{
    struct save s = {.ckpt = ckpt,
                     .step = step,
                     .tag = ++ckpt->tag,
                     .dirfd = -1,
                     .partialfd = -1};
    struct dt_vote mine = {.step = step, .model = dt_ckpt_fingerprint(ckpt)};
    struct verdict verdict = {0};
    dt_store_partial_name(s.partial, step, s.tag);
    mine.code = write_shard(&s, &mine);
    dt_result_t rc = dt_vote_gather(&mine, ckpt->votes, err);
    if (rc == DT_SUCCESS) {
        if (ckpt->rank == 0)
            verdict.code = conclude(&s, &verdict.err);
        else if (step != ckpt->votes[0].step && s.dirfd >= 0)
            dt_store_remove(s.dirfd, s.partial, NULL); /* not rank 0's */
        rc = dt_vote_announce(&verdict, sizeof(verdict), err);
    } else if (ckpt->rank == 0 && s.dirfd >= 0) {
        dt_store_remove(s.dirfd, s.partial, NULL);
    }
    if (s.partialfd >= 0)
        close(s.partialfd);
    if (s.dirfd >= 0)
        close(s.dirfd);
    if (rc == DT_SUCCESS && verdict.code != DT_SUCCESS)
        rc = dt_error_set(err, (dt_result_t)verdict.code, "%s",
                          verdict.err.text);
    return rc;
}
