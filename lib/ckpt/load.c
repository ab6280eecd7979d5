/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* load.c - finding the newest intact checkpoint and reading it.
 *
 * For each candidate, the newest first:
 *
 *   rank 0:     manifest intact, files there -> announce it
 *   every rank: is it of this program? are the files I need intact? vote
 *   every rank: read, vote
 *
 * A vote of CORRUPT passes it over, any other error ends the search. The
 * caller's memory is written only after the first vote went well. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/checksum.h"
#include "ckpt/ckpt.h"
#include "ckpt/manifest.h"
#include "ckpt/safetensors.h"
#include "ckpt/store.h"

/* Where a tensor of the program lies. */
struct place {
    int file;
    size_t offset;
};

/* One checkpoint, open. */
struct source {
    int fd; /* its directory, or -1 */
    struct dt_manifest manifest;
    uint64_t identity; /* checksum of the manifest's text */
    struct place *place;
};

/* What rank 0 proposes to load. */
struct proposal {
    int64_t code; /* SUCCESS, or why the search is over */
    uint64_t identity;
    char name[DT_STORE_NAME];
    struct dt_error err;
};

/* Rank 0's list of them, made when the first is asked for. */
struct candidates {
    bool listed;
    struct dt_store_entry *entry;
    size_t count, next;
    int skipped;
    struct dt_error newest; /* why the first was skipped */
};

/* What opening something means: damage, if the checkpoint is to blame. */
static dt_result_t unopened(struct dt_error *err, const char *name)
{
    int why = errno;
    switch (why) {
    case ENOENT:
        return dt_error_set(err, DT_ERR_CORRUPT, "%s: is missing", name);
    case ENOTDIR:
        return dt_error_set(err, DT_ERR_CORRUPT, "%s: is not a directory",
                            name);
    case EINVAL:
    case ELOOP:
    case ENXIO:
        return dt_error_set(err, DT_ERR_CORRUPT, "%s: is not a file", name);
    case EIO:
    case ESTALE:
        return dt_error_set(err, DT_ERR_CORRUPT, "%s: %s", name, strerror(why));
    default:
        return dt_error_set(err, dt_file_result(why), "%s: %s", name,
                            strerror(why));
    }
}

/* What reading the file name came to: unreadable contents are damage. */
static dt_result_t unread(dt_result_t code, const struct dt_error *why,
                          const char *name, struct dt_error *err)
{
    if (code == DT_ERR_IO)
        code = DT_ERR_CORRUPT;
    return dt_error_set(err, code, "%s: %s", name, why->text);
}

static void close_source(struct source *source)
{
    if (source->fd >= 0)
        close(source->fd);
    dt_manifest_clear(&source->manifest);
    free(source->place);
    *source = (struct source){.fd = -1};
}

/* ---- the manifest ---- */

static dt_result_t read_manifest(struct source *source, struct dt_error *err)
{
    size_t size;
    int fd = dt_file_open(source->fd, DT_MANIFEST_NAME, &size);
    if (fd < 0)
        return unopened(err, DT_MANIFEST_NAME);
    dt_result_t rc;
    char *text = size <= DT_MANIFEST_MAX ? malloc(size + 1) : NULL;
    ssize_t n = text ? dt_file_read(fd, text, size, 0) : 0;
    if (size > DT_MANIFEST_MAX)
        rc = dt_error_set(err, DT_ERR_CORRUPT, DT_MANIFEST_NAME ": too large");
    else if (!text)
        rc = dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
    else if (n < 0)
        rc = dt_error_set(err, DT_ERR_CORRUPT, DT_MANIFEST_NAME ": %s",
                          strerror(errno));
    else
        rc = dt_manifest_parse(&source->manifest, text, (size_t)n, err);
    if (rc == DT_SUCCESS)
        source->identity = dt_checksum(text, (size_t)n);
    free(text);
    close(fd);
    return rc;
}

static dt_result_t open_source(struct source *source, const char *dir,
                               const char *name, struct dt_error *err)
{
    int dirfd = dt_store_open(dir);
    if (dirfd < 0)
        return dt_error_set(err, dt_file_result(errno), "%s: %s", dir,
                            strerror(errno));
    source->fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dt_result_t rc =
        source->fd < 0 ? unopened(err, name) : read_manifest(source, err);
    close(dirfd);
    if (rc != DT_SUCCESS)
        close_source(source);
    return rc;
}

/* ---- rank 0: which one ---- */

static dt_result_t check_files(const struct source *source,
                               struct dt_error *err)
{
    for (int i = 0; i < source->manifest.world_size; i++) {
        const struct dt_manifest_file *file = &source->manifest.file[i];
        struct stat st;
        if (fstatat(source->fd, file->name, &st, AT_SYMLINK_NOFOLLOW))
            return unopened(err, file->name);
        if (!S_ISREG(st.st_mode))
            return dt_error_set(err, DT_ERR_CORRUPT, "%s: is not a file",
                                file->name);
        if ((size_t)st.st_size != file->size)
            return dt_error_set(err, DT_ERR_CORRUPT,
                                "%s: %zu bytes long, expected %zu", file->name,
                                (size_t)st.st_size, file->size);
    }
    return DT_SUCCESS;
}

/* Is this a checkpoint, as far as one rank can see cheaply? */
static dt_result_t examine(const struct dt_ckpt *ckpt,
                           const struct dt_store_entry *entry,
                           uint64_t *identity, struct dt_error *err)
{
    struct source source = {.fd = -1};
    dt_result_t rc = open_source(&source, ckpt->dir, entry->name, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (source.manifest.step != entry->step)
        rc = dt_error_set(err, DT_ERR_CORRUPT,
                          DT_MANIFEST_NAME ": is of step %" PRId64,
                          source.manifest.step);
    else
        rc = check_files(&source, err);
    *identity = source.identity;
    close_source(&source);
    return rc;
}

static void skip(struct candidates *list, const char *name,
                 const struct dt_error *why)
{
    fprintf(stderr, "dt: checkpoint %s skipped: %s\n", name, why->text);
    if (list->skipped++ == 0)
        dt_error_set(&list->newest, DT_ERR_CORRUPT, "%s: %s", name, why->text);
}

static dt_result_t none_left(const struct dt_ckpt *ckpt,
                             const struct candidates *list,
                             struct dt_error *err)
{
    if (list->skipped == 0)
        return dt_error_set(err, DT_ERR_NOT_FOUND, "no checkpoint in %s",
                            ckpt->dir);
    return dt_error_set(err, DT_ERR_CORRUPT,
                        "no intact checkpoint in %s, %d damaged; the newest, "
                        "%s; remove them to start afresh",
                        ckpt->dir, list->skipped, list->newest.text);
}

static dt_result_t list_candidates(const struct dt_ckpt *ckpt,
                                   struct candidates *list,
                                   struct dt_error *err)
{
    struct dt_error why = {0};
    int dirfd = dt_store_open(ckpt->dir);
    if (dirfd < 0)
        return dt_error_set(err, DT_ERR_IO, "cannot open %s: %s", ckpt->dir,
                            strerror(errno));
    dt_result_t rc = dt_store_list(dirfd, &list->entry, &list->count, &why);
    close(dirfd);
    if (rc != DT_SUCCESS)
        return dt_error_set(err, rc, "%s: %s", ckpt->dir, why.text);
    list->listed = true;
    return DT_SUCCESS;
}

/* The next one on the list that seems intact. */
static void propose(const struct dt_ckpt *ckpt, struct candidates *list,
                    struct proposal *proposal)
{
    if (!list->listed)
        proposal->code = list_candidates(ckpt, list, &proposal->err);
    while (proposal->code == DT_SUCCESS && list->next < list->count) {
        const struct dt_store_entry *entry = &list->entry[list->next++];
        if (entry->hidden && !entry->complete)
            continue; /* unfinished: not a checkpoint */
        struct dt_error why = {0};
        dt_result_t rc = examine(ckpt, entry, &proposal->identity, &why);
        if (rc == DT_ERR_CORRUPT) {
            skip(list, entry->name, &why);
            continue;
        }
        proposal->code = rc;
        strcpy(proposal->name, entry->name);
        if (rc != DT_SUCCESS)
            dt_error_set(&proposal->err, rc, "checkpoint %s in %s: %s",
                         entry->name, ckpt->dir, why.text);
        return;
    }
    if (proposal->code == DT_SUCCESS)
        proposal->code = none_left(ckpt, list, &proposal->err);
}

/* ---- every rank: is it ours ---- */

static const struct dt_manifest_tensor *
find_tensor(const struct dt_manifest *manifest, const char *name, size_t hint)
{
    if (hint < manifest->count &&
        strcmp(manifest->tensor[hint].tensor.name, name) == 0)
        return &manifest->tensor[hint]; /* same order: the usual case */
    for (size_t i = 0; i < manifest->count; i++)
        if (strcmp(manifest->tensor[i].tensor.name, name) == 0)
            return &manifest->tensor[i];
    return NULL;
}

static dt_result_t match_tensor(const struct dt_ckpt *ckpt,
                                const struct dt_manifest *manifest, size_t i,
                                struct place *place, struct dt_error *err)
{
    const struct dt_ckpt_tensor *ours = &ckpt->tensor[i];
    const char *name = ours->type.name;
    const struct dt_manifest_tensor *theirs = find_tensor(manifest, name, i);
    char a[128], b[128];
    if (!theirs)
        return dt_error_set(err, DT_ERR_MISMATCH,
                            "tensor %s of the program is not in it", name);
    if (!dt_tensor_same_type(&ours->type, &theirs->tensor))
        return dt_error_set(err, DT_ERR_MISMATCH,
                            "tensor %s is %s there and %s in the program", name,
                            dt_tensor_type(&theirs->tensor, a, sizeof(a)),
                            dt_tensor_type(&ours->type, b, sizeof(b)));
    if (ours->replicated != (theirs->file >= 0))
        return dt_error_set(
            err, DT_ERR_MISMATCH, "tensor %s is %s there and %s in the program",
            name, ours->replicated ? "each rank's own" : "replicated",
            ours->replicated ? "replicated" : "each rank's own");
    if (!ours->replicated && manifest->world_size != ckpt->size)
        return dt_error_set(err, DT_ERR_MISMATCH,
                            "tensor %s is each rank's own and was saved by "
                            "%d ranks; it loads on as many, this job has %d",
                            name, manifest->world_size, ckpt->size);
    place->file = ours->replicated ? theirs->file : ckpt->rank;
    return DT_SUCCESS;
}

static bool named_by_program(const struct dt_ckpt *ckpt, const char *name)
{
    for (size_t i = 0; i < ckpt->count; i++)
        if (strcmp(ckpt->tensor[i].type.name, name) == 0)
            return true;
    return false;
}

static dt_result_t match(const struct dt_ckpt *ckpt, struct source *source,
                         struct dt_error *err)
{
    const struct dt_manifest *manifest = &source->manifest;
    source->place = calloc(ckpt->count + 1, sizeof(*source->place));
    if (!source->place)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
    dt_result_t rc = DT_SUCCESS;
    for (size_t i = 0; i < ckpt->count && rc == DT_SUCCESS; i++)
        rc = match_tensor(ckpt, manifest, i, &source->place[i], err);
    if (rc != DT_SUCCESS || manifest->count == ckpt->count)
        return rc;
    for (size_t i = 0; i < manifest->count; i++)
        if (!named_by_program(ckpt, manifest->tensor[i].tensor.name))
            return dt_error_set(err, DT_ERR_MISMATCH,
                                "tensor %s in it is not in the program",
                                manifest->tensor[i].tensor.name);
    return DT_SUCCESS;
}

/* ---- every rank: the files ---- */

static bool needs(const struct dt_ckpt *ckpt, const struct source *source,
                  int file)
{
    for (size_t i = 0; i < ckpt->count; i++)
        if (source->place[i].file == file)
            return true;
    return false;
}

/* Find this file's tensors in its header. */
static dt_result_t locate(const struct dt_ckpt *ckpt, struct source *source,
                          int file, const struct dt_safetensors *st,
                          struct dt_error *err)
{
    for (size_t i = 0; i < ckpt->count; i++) {
        const struct dt_tensor *want = &ckpt->tensor[i].type;
        if (source->place[i].file != file)
            continue;
        const struct dt_safetensors_entry *entry =
            dt_safetensors_find(st, want->name);
        if (!entry || !dt_tensor_same_type(&entry->tensor, want))
            return dt_error_set(err, DT_ERR_CORRUPT,
                                "does not hold %s as the manifest says",
                                want->name);
        source->place[i].offset = entry->offset;
    }
    return DT_SUCCESS;
}

static dt_result_t verify_file(const struct dt_ckpt *ckpt,
                               struct source *source, int file,
                               struct dt_error *err)
{
    const struct dt_manifest_file *want = &source->manifest.file[file];
    struct dt_safetensors st = {0};
    struct dt_error why = {0};
    size_t size;
    uint64_t checksum;
    int fd = dt_file_open(source->fd, want->name, &size);
    if (fd < 0)
        return unopened(err, want->name);
    dt_result_t rc = dt_checksum_file(fd, want->size, &checksum, &why);
    if (rc == DT_SUCCESS && (size != want->size || checksum != want->checksum))
        rc = dt_error_set(&why, DT_ERR_CORRUPT, "checksum differs");
    if (rc == DT_SUCCESS)
        rc = dt_safetensors_read(&st, fd, size, &why);
    if (rc == DT_SUCCESS)
        rc = locate(ckpt, source, file, &st, &why);
    dt_safetensors_clear(&st);
    close(fd);
    return rc == DT_SUCCESS ? rc : unread(rc, &why, want->name, err);
}

static dt_result_t verify(struct dt_ckpt *ckpt, struct source *source,
                          const struct proposal *proposal, struct dt_error *err)
{
    dt_result_t rc = open_source(source, ckpt->dir, proposal->name, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (source->identity != proposal->identity)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            DT_MANIFEST_NAME ": rank %d reads another one "
                                             "than rank 0",
                            ckpt->rank);
    rc = match(ckpt, source, err);
    for (int f = 0; f < source->manifest.world_size && rc == DT_SUCCESS; f++)
        if (needs(ckpt, source, f))
            rc = verify_file(ckpt, source, f, err);
    return rc;
}

static dt_result_t read_file(const struct dt_ckpt *ckpt,
                             const struct source *source, int file,
                             struct dt_error *err)
{
    const char *name = source->manifest.file[file].name;
    size_t size;
    int fd = dt_file_open(source->fd, name, &size);
    if (fd < 0)
        return unopened(err, name);
    dt_result_t rc = DT_SUCCESS;
    for (size_t i = 0; i < ckpt->count && rc == DT_SUCCESS; i++) {
        if (source->place[i].file != file)
            continue;
        size_t bytes = ckpt->tensor[i].type.bytes;
        ssize_t n = dt_file_read(fd, ckpt->tensor[i].data, bytes,
                                 (off_t)source->place[i].offset);
        if (n < 0 || (size_t)n < bytes)
            rc = dt_error_set(err, DT_ERR_CORRUPT, "%s: %s", name,
                              n < 0 ? strerror(errno) : "truncated");
    }
    close(fd);
    return rc;
}

static dt_result_t read_data(const struct dt_ckpt *ckpt,
                             const struct source *source, struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    for (int f = 0; f < source->manifest.world_size && rc == DT_SUCCESS; f++)
        if (needs(ckpt, source, f))
            rc = read_file(ckpt, source, f, err);
    return rc;
}

/* ---- all together ---- */

/* Vote, and return what all of them amount to. *alive is false when it is the
 * collective that failed. */
static dt_result_t vote(struct dt_ckpt *ckpt, const struct dt_vote *mine,
                        bool *alive, struct dt_error *err)
{
    int who;
    dt_result_t rc = dt_vote_gather(mine, ckpt->votes, err);
    *alive = rc == DT_SUCCESS;
    if (rc == DT_SUCCESS)
        rc = dt_vote_result(ckpt->votes, ckpt->size, &who, err);
    return rc;
}

/* Load what was proposed. */
static dt_result_t load_source(struct dt_ckpt *ckpt,
                               const struct proposal *proposal, int64_t *step,
                               bool *alive, struct dt_error *err)
{
    struct source source = {.fd = -1};
    struct dt_vote mine = {.model = dt_ckpt_fingerprint(ckpt)};
    mine.code = verify(ckpt, &source, proposal, &mine.err);
    dt_result_t rc = vote(ckpt, &mine, alive, err);
    if (rc == DT_SUCCESS) {
        mine.code = read_data(ckpt, &source, &mine.err);
        rc = vote(ckpt, &mine, alive, err);
    }
    if (rc == DT_SUCCESS)
        *step = source.manifest.step;
    close_source(&source);
    return rc;
}

/* One round. *again asks for the next. */
static dt_result_t try_next(struct dt_ckpt *ckpt, struct candidates *list,
                            int64_t *step, bool *again, struct dt_error *err)
{
    struct proposal proposal = {0};
    struct dt_error why = {0};
    bool alive;
    *again = false;
    if (ckpt->rank == 0)
        propose(ckpt, list, &proposal);
    dt_result_t rc = dt_vote_announce(&proposal, sizeof(proposal), err);
    if (rc != DT_SUCCESS)
        return rc;
    if (proposal.code != DT_SUCCESS)
        return dt_error_set(err, (dt_result_t)proposal.code, "%s",
                            proposal.err.text);
    rc = load_source(ckpt, &proposal, step, &alive, &why);
    if (rc == DT_SUCCESS)
        return rc;
    *again = alive && rc == DT_ERR_CORRUPT;
    if (*again && ckpt->rank == 0)
        skip(list, proposal.name, &why);
    return dt_error_set(err, rc, "checkpoint %s in %s: %s%s", proposal.name,
                        ckpt->dir, why.text,
                        rc == DT_ERR_MISMATCH
                            ? ": start the program with the options it was "
                              "saved with, or give another directory"
                            : "");
}

dt_result_t dt_ckpt_do_load(struct dt_ckpt *ckpt, int64_t *step,
                            struct dt_error *err)
{
    struct candidates list = {0};
    dt_result_t rc;
    bool again;
    do
        rc = try_next(ckpt, &list, step, &again, err);
    while (again);
    free(list.entry);
    return rc;
}
