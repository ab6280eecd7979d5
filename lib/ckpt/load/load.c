/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* load.c - finding the newest intact checkpoint and reading it.
 *
 * For each candidate, the newest first, and for equal steps the nearest tier
 * first:
 *
 *   open it (in a shared tier rank 0 reads the manifest for all)
 *   every rank: does it match the program? Vote
 *   every rank: read and verify, vote
 *
 * After a vote of CORRUPT the next candidate is tried; any other error ends the
 * search. The caller's memory is written only after the first vote was
 * SUCCESS. */
#include "ckpt/load/load.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/load/restore.h"
#include "ckpt/redundancy/redundancy.h"
#include "ckpt/tensors.h"

struct candidate {
    const struct dt_tier *tier;
    struct dt_node_local known;
    bool complete; /* false: it has a visible name, but no manifest */
};

/* The same on all ranks. */
struct candidates {
    const struct dt_ckpt *ckpt;
    size_t count, room;
    struct candidate *list;
    int skipped;            /* rank 0 counts the damaged ones */
    struct dt_error newest; /* and why the newest of them was skipped */
};

/* What rank 0 broadcasts before the entries of a directory, or before the text
 * of a manifest. */
struct message {
    int64_t code;
    uint64_t count; /* entries, or bytes of text */
    struct dt_error err;
};

_Static_assert(sizeof(struct dt_store_entry) % 8 == 0, "whole words");
_Static_assert(sizeof(struct message) % 8 == 0, "whole words");

/* Broadcast the message of rank 0 and the bytes that belong to it. *data is the
 * caller's on rank 0 and is allocated here on the others. One result for all
 * ranks. */
static dt_result_t announce(const struct dt_ckpt *ckpt, struct message *message,
                            size_t width, void **data, struct dt_error *err)
{
    dt_comm_t world = dt_comm_world();
    dt_result_t rc = dt_vote_announce(world, message, sizeof(*message), err);
    if (rc != DT_SUCCESS)
        return rc;
    if (message->code != DT_SUCCESS)
        return dt_error_set(err, (dt_result_t)message->code, "%s",
                            message->err.text);
    size_t bytes = (message->count * width + 7) / 8 * 8;
    if (ckpt->rank != 0)
        *data = malloc(bytes + 1);
    /* A rank without memory must take part, or the others would wait. */
    struct dt_vote mine = {0};
    if (bytes > 0 && !*data)
        mine.code = dt_no_memory(&mine.err);
    rc = dt_vote_agree(world, &mine, ckpt->votes, ckpt->size, err);
    if (rc == DT_SUCCESS && bytes > 0)
        rc = dt_vote_announce(world, *data, bytes, err);
    if (rc != DT_SUCCESS && ckpt->rank != 0) {
        free(*data);
        *data = NULL;
    }
    return rc;
}

/* ---- the candidates ---- */

static dt_result_t add_candidate(struct candidates *all,
                                 const struct candidate *new,
                                 struct dt_error *err)
{
    if (all->count == all->room) {
        size_t room = all->room ? 2 * all->room : 64;
        void *more = realloc(all->list, room * sizeof(*all->list));
        if (!more)
            return dt_no_memory(err);
        all->list = more;
        all->room = room;
    }
    all->list[all->count++] = *new;
    return DT_SUCCESS;
}

static dt_result_t list_directory(const char *dir,
                                  struct dt_store_entry **entry, size_t *count,
                                  struct dt_error *err)
{
    struct dt_error why = {0};
    int dirfd = dt_store_open(dir);
    if (dirfd < 0)
        return dt_error_set(err, DT_ERR_IO, "cannot open %s: %s", dir,
                            strerror(errno));
    dt_result_t rc = dt_store_list(dirfd, entry, count, &why);
    close(dirfd);
    if (rc != DT_SUCCESS)
        return dt_error_set(err, rc, "%s: %s", dir, why.text);
    return rc;
}

static dt_result_t list_shared(struct candidates *all,
                               const struct dt_tier *tier, struct dt_error *err)
{
    struct message message = {0};
    struct dt_store_entry *entry = NULL;
    if (all->ckpt->rank == 0) {
        size_t count = 0;
        message.code = list_directory(tier->dir, &entry, &count, &message.err);
        message.count = count;
    }
    dt_result_t rc =
        announce(all->ckpt, &message, sizeof(*entry), (void **)&entry, err);
    for (size_t i = 0; i < message.count && rc == DT_SUCCESS; i++) {
        struct candidate new = {.tier = tier,
                                .known.step = entry[i].step,
                                .complete = entry[i].complete};
        if (entry[i].hidden && !entry[i].complete)
            continue; /* unfinished: not a checkpoint */
        snprintf(new.known.name, sizeof(new.known.name), "%s", entry[i].name);
        rc = add_candidate(all, &new, err);
    }
    free(entry);
    return rc;
}

static dt_result_t list_node_local(struct candidates *all, struct dt_ckpt *ckpt,
                                   const struct dt_tier *tier,
                                   struct dt_error *err)
{
    struct dt_node_local *known = NULL;
    size_t count = 0;
    dt_result_t rc = dt_node_local_list(ckpt, tier, &known, &count, err);
    for (size_t i = 0; i < count && rc == DT_SUCCESS; i++)
        rc = add_candidate(all,
                           &(struct candidate){.tier = tier,
                                               .known = known[i],
                                               .complete = true},
                           err);
    free(known);
    return rc;
}

/* The newest first, then the nearest tier, then visible before hidden. */
static int by_step(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->known.step != y->known.step)
        return x->known.step > y->known.step ? -1 : 1;
    if (x->tier != y->tier)
        return x->tier < y->tier ? -1 : 1;
    bool x_hidden = x->known.name[0] == '.', y_hidden = y->known.name[0] == '.';
    if (x_hidden != y_hidden)
        return x_hidden ? 1 : -1;
    return strcmp(x->known.name, y->known.name);
}

static dt_result_t list_all(struct candidates *all, struct dt_ckpt *ckpt,
                            struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    all->ckpt = ckpt;
    for (int t = 0; t < DT_TIERS && rc == DT_SUCCESS; t++) {
        const struct dt_tier *tier = &ckpt->tier[t];
        if (!tier->dir)
            continue;
        rc = tier->shared ? list_shared(all, tier, err)
                          : list_node_local(all, ckpt, tier, err);
    }
    if (all->count > 0)
        qsort(all->list, all->count, sizeof(*all->list), by_step);
    return rc;
}

static dt_result_t none_left(const struct candidates *all, struct dt_error *err)
{
    const char *dir = all->ckpt->tier[DT_TIER_DIR].dir;
    if (all->count == 0)
        return dt_error_set(err, DT_ERR_NOT_FOUND, "no checkpoint in %s", dir);
    /* rank 0 has counted them */
    struct message message = {.code = DT_ERR_CORRUPT};
    if (all->ckpt->rank == 0)
        dt_error_set(&message.err, DT_ERR_CORRUPT,
                     "no intact checkpoint in %s, %d damaged; the newest, %s; "
                     "remove them to start afresh",
                     dir, all->skipped, all->newest.text);
    return announce(all->ckpt, &message, 0, NULL, err);
}

/* ---- opening one in a shared tier ---- */

static dt_result_t check_files(int fd, const struct dt_manifest *manifest,
                               struct dt_error *err)
{
    for (size_t i = 0; i < manifest->nfiles; i++) {
        const struct dt_manifest_file *file = &manifest->file[i];
        struct stat st;
        if (fstatat(fd, file->name, &st, AT_SYMLINK_NOFOLLOW))
            return dt_manifest_unopened(file->name, err);
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

static dt_result_t open_directory(const struct candidate *candidate, int *fd,
                                  struct dt_error *err)
{
    const char *dir = candidate->tier->dir, *name = candidate->known.name;
    int dirfd = dt_store_open(dir);
    if (dirfd < 0)
        return dt_failed(err, dir);
    *fd = dt_store_open_at(dirfd, name);
    dt_result_t rc = *fd < 0 ? dt_manifest_unopened(name, err) : DT_SUCCESS;
    close(dirfd);
    return rc;
}

/* Rank 0: are its manifest and the sizes of its files right? */
static dt_result_t examine(const struct candidate *candidate, int fd,
                           char **text, size_t *len, struct dt_error *err)
{
    struct dt_manifest manifest = {0};
    dt_result_t rc = dt_manifest_text(fd, text, len, err);
    if (rc == DT_SUCCESS)
        rc = dt_manifest_parse(&manifest, *text, *len, err);
    if (rc == DT_SUCCESS && manifest.step != candidate->known.step)
        rc = dt_error_set(err, DT_ERR_CORRUPT,
                          DT_MANIFEST_NAME ": is of step %" PRId64,
                          manifest.step);
    if (rc == DT_SUCCESS)
        rc = check_files(fd, &manifest, err);
    dt_manifest_clear(&manifest);
    return rc;
}

/* *late is an error of this rank alone, for its vote. */
static dt_result_t open_shared(const struct dt_ckpt *ckpt,
                               const struct candidate *candidate,
                               struct dt_source *source, dt_result_t *late,
                               struct dt_error *err)
{
    struct message message = {0};
    struct dt_error mine = {0};
    char *text = NULL;
    size_t len = 0;
    source->shared = true;
    *late = open_directory(candidate, &source->fd, &mine);
    if (ckpt->rank == 0) {
        message.code = *late;
        message.err = mine;
        if (*late == DT_SUCCESS)
            message.code =
                examine(candidate, source->fd, &text, &len, &message.err);
        message.count = len;
    }
    dt_result_t rc = announce(ckpt, &message, 1, (void **)&text, err);
    if (rc == DT_SUCCESS && *late == DT_SUCCESS)
        *late =
            dt_manifest_parse(&source->manifest, text, message.count, &mine);
    if (rc == DT_SUCCESS && *late == DT_SUCCESS)
        *late = dt_manifest_locate(&source->manifest, source->fd, &mine);
    if (rc == DT_SUCCESS && *late != DT_SUCCESS)
        *err = mine;
    free(text);
    return rc;
}

/* ---- one candidate ---- */

/* Vote; one result for all ranks. *alive is false if the collective failed. */
static dt_result_t vote(struct dt_ckpt *ckpt, const struct dt_vote *mine,
                        bool *alive, struct dt_error *err)
{
    int who;
    dt_result_t rc = dt_vote_gather(dt_comm_world(), mine, ckpt->votes, err);
    *alive = rc == DT_SUCCESS;
    if (rc == DT_SUCCESS)
        rc = dt_vote_result(ckpt->votes, ckpt->size, &who, err);
    return rc;
}

static dt_result_t keep_blobs(struct dt_ckpt *ckpt, struct dt_match *match,
                              struct dt_error *err)
{
    for (size_t i = 0; i < match->blobs; i++) {
        struct dt_match_blob *blob = &match->blob[i];
        dt_result_t rc =
            dt_tensors_keep_blob(ckpt, blob->tensor->tensor.name, blob->data,
                                 blob->bytes, blob->tensor->replicated, err);
        if (rc != DT_SUCCESS)
            return rc;
        blob->data = NULL; /* ownership was transferred */
    }
    return DT_SUCCESS;
}

/* Load an open checkpoint. mine is the vote so far. */
static dt_result_t load_source(struct dt_ckpt *ckpt, struct dt_source *source,
                               struct dt_vote *mine, bool *alive, bool *matched,
                               struct dt_error *err)
{
    struct dt_match match = {0};
    struct dt_copy *copy = NULL;
    size_t rounds = 0;
    mine->model = dt_tensors_fingerprint(ckpt);
    if (mine->code == DT_SUCCESS)
        mine->code = dt_match(&match, ckpt, &source->manifest, &mine->err);
    if (mine->code == DT_SUCCESS)
        mine->code = dt_copy_open(&copy, &mine->err);
    if (mine->code == DT_SUCCESS)
        mine->code =
            dt_restore_rounds(source, &match, copy, &rounds, &mine->err);
    mine->rounds = rounds;
    dt_result_t rc = vote(ckpt, mine, alive, err);
    *matched = rc == DT_SUCCESS;
    if (rc == DT_SUCCESS) {
        for (int r = 0; r < ckpt->size; r++)
            if (ckpt->votes[r].rounds > rounds)
                rounds = ckpt->votes[r].rounds;
        mine->code = dt_restore(source, &match, copy, rounds, &mine->err);
        rc = vote(ckpt, mine, alive, err);
    }
    if (rc == DT_SUCCESS)
        rc = keep_blobs(ckpt, &match, err);
    dt_copy_close(copy);
    dt_match_clear(&match);
    return rc;
}

/* check: verify all files first, and rebuild the damaged ones if redundancy
 * can. */
static dt_result_t try_one(struct dt_ckpt *ckpt,
                           const struct candidate *candidate, bool check,
                           struct dt_source *loaded, bool *alive, bool *matched,
                           struct dt_error *err)
{
    struct dt_source source = {.fd = -1};
    struct dt_vote mine = {0};
    dt_result_t late = DT_SUCCESS, rc;
    *alive = true;
    *matched = false;
    if (candidate->tier->shared)
        rc = open_shared(ckpt, candidate, &source, &late, &mine.err);
    else
        rc = dt_node_local_open(ckpt, candidate->tier, &candidate->known, check,
                                &source, &mine.err);
    mine.code = late;
    if (rc == DT_SUCCESS)
        rc = load_source(ckpt, &source, &mine, alive, matched, err);
    else
        *err = mine.err;
    if (rc == DT_SUCCESS && !source.shared)
        dt_node_local_complete(ckpt, candidate->tier, &source);
    source.memory = candidate->tier->memory;
    if (rc == DT_SUCCESS)
        *loaded = source;
    else
        dt_source_close(&source);
    return rc;
}

static void skip(struct candidates *all, const struct candidate *candidate,
                 const struct dt_error *why)
{
    const char *name = candidate->known.name;
    bool is_dir = candidate->tier == &all->ckpt->tier[DT_TIER_DIR];
    dt_report("checkpoint %s%s%s skipped: %s", name, is_dir ? "" : " in ",
              is_dir ? "" : candidate->tier->dir, why->text);
    if (all->skipped++ == 0)
        dt_error_set(&all->newest, DT_ERR_CORRUPT, "%s: %s", name, why->text);
}

/* *damaged: the next candidate is to be tried. */
static dt_result_t try_candidate(struct candidates *all, struct dt_ckpt *ckpt,
                                 const struct candidate *candidate,
                                 struct dt_source *loaded, bool *damaged,
                                 struct dt_error *err)
{
    struct dt_error why = {0};
    bool alive, matched;
    dt_result_t rc =
        try_one(ckpt, candidate, false, loaded, &alive, &matched, &why);
    if (alive && matched && rc == DT_ERR_CORRUPT && !candidate->tier->shared)
        rc = try_one(ckpt, candidate, true, loaded, &alive, &matched, &why);
    *damaged = alive && rc == DT_ERR_CORRUPT;
    if (rc == DT_SUCCESS)
        return rc;
    if (*damaged && ckpt->rank == 0)
        skip(all, candidate, &why);
    return dt_error_set(err, rc, "checkpoint %s in %s: %s%s",
                        candidate->known.name, candidate->tier->dir, why.text,
                        rc == DT_ERR_MISMATCH
                            ? ": start the program with the options it was "
                              "saved with, or give another directory"
                            : "");
}

/* ---- all together ---- */

dt_result_t dt_load(struct dt_ckpt *ckpt, int64_t *step,
                    struct dt_source *loaded, struct dt_error *err)
{
    struct candidates all = {0};
    bool damaged = true;
    dt_result_t rc = list_all(&all, ckpt, err);
    if (rc != DT_SUCCESS)
        goto free_list;
    for (size_t i = 0; i < all.count && damaged; i++) {
        rc = try_candidate(&all, ckpt, &all.list[i], loaded, &damaged, err);
        if (rc == DT_SUCCESS) {
            *step = all.list[i].known.step;
            damaged = false;
        }
    }
    if (damaged)
        rc = none_left(&all, err);
free_list:
    free(all.list);
    return rc;
}

dt_result_t dt_load_latest(struct dt_ckpt *ckpt, int64_t *step,
                           struct dt_error *err)
{
    struct candidates all = {0};
    size_t i = 0;
    dt_result_t rc = list_all(&all, ckpt, err);
    while (i < all.count && !all.list[i].complete)
        i++;
    if (rc == DT_SUCCESS && i < all.count)
        *step = all.list[i].known.step;
    else if (rc == DT_SUCCESS)
        rc = dt_error_set(err, DT_ERR_NOT_FOUND, "no checkpoint in %s",
                          ckpt->tier[DT_TIER_DIR].dir);
    free(all.list);
    return rc;
}
