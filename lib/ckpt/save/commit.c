/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* commit.c - what the ranks do together to bring a save into a tier: a
 * two-phase commit.
 *
 *   every rank: write its files into .step-N.partial-T, sync them, vote
 *   rank 0:     if all votes are SUCCESS, join the ranks' parts as the manifest
 *   committers: write the manifest, sync, rename to step-N, sync;
 *               otherwise remove the partial directory
 *   rank 0:     broadcast the result, on which the ranks vote where each node
 *               has a directory of its own
 *   committers: prune old checkpoints, after the save is in all tiers
 *
 * The committer is rank 0 where all nodes share the directory, else one rank of
 * each node. A rank that has voted SUCCESS must not touch its files any more,
 * because a committer may be working on them. */
#include "ckpt/save/commit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/redundancy/redundancy.h"
#include "ckpt/save/write.h"

struct verdict {
    int64_t code;
    uint64_t len;   /* of the manifest's text */
    double seconds; /* since the program went on */
    struct dt_error err;
};

struct commit {
    struct dt_ckpt *ckpt;
    int tier;
    struct dt_writing writing;
    char *text; /* of the manifest: rank 0's, and of all leaders */
    struct verdict verdict;
};

/* ---- rank 0: the manifest ---- */

/* Gather the parts at rank 0: text[r] of len[r] bytes. *all owns them. */
static dt_result_t gather_parts(struct commit *c, char **all, char **text,
                                size_t *len, struct dt_error *err)
{
    struct dt_ckpt *ckpt = c->ckpt;
    size_t n = (size_t)ckpt->size, total = 0;
    bool root = ckpt->rank == 0;
    size_t *counts = calloc(4 * n, sizeof(*counts));
    dt_result_t rc = DT_ERR_NO_MEMORY;
    for (size_t r = 0; r < n; r++)
        total += root ? ckpt->votes[r].text_bytes : 0;
    *all = malloc(total + 1);
    if (!counts || !*all) {
        dt_no_memory(err);
        goto free_counts;
    }
    size_t *sdispls = counts + n, *rcounts = sdispls + n,
           *rdispls = rcounts + n;
    counts[0] = c->writing.len;
    for (size_t r = 0, at = 0; root && r < n; r++) {
        rcounts[r] = len[r] = ckpt->votes[r].text_bytes;
        rdispls[r] = at;
        text[r] = *all + at;
        at += len[r];
    }
    rc = dt_vote_outcome(dt_alltoallv(c->writing.part, counts, sdispls, *all,
                                      rcounts, rdispls, DT_DTYPE_U8, ckpt->comm,
                                      DT_STREAM_NONE),
                         err);
free_counts:
    free(counts);
    return rc;
}

static void describe(const struct commit *c, struct dt_manifest *manifest)
{
    const struct dt_ckpt *ckpt = c->ckpt;
    const struct dt_save *save = &ckpt->saver->save;
    bool protect = c->tier == DT_TIER_DIR && !c->writing.tier->shared;
    struct tm tm;
    time_t now = time(NULL);
    if (gmtime_r(&now, &tm))
        strftime(manifest->created, sizeof(manifest->created),
                 "%Y-%m-%dT%H:%M:%SZ", &tm);
    manifest->version = DT_MANIFEST_VERSION;
    manifest->step = save->step;
    manifest->tag = ckpt->tag;
    manifest->restart_count = dt_restart_count();
    manifest->world_size = ckpt->size;
    manifest->num_nodes = ckpt->num_nodes;
    manifest->copy_s = ckpt->saver->pace.cost_s;
    manifest->write_s = dt_need_now() - save->begun;
    snprintf(manifest->redundancy, sizeof(manifest->redundancy), "%s",
             protect ? ckpt->redundancy.text : "none");
    snprintf(manifest->run_id, sizeof(manifest->run_id), "%s", dt_run_id());
    for (char *at = manifest->run_id; *at; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
}

/* Are the files that the ranks wrote visible to rank 0? */
static dt_result_t check_files(const struct commit *c,
                               const struct dt_manifest *manifest,
                               struct dt_error *err)
{
    for (size_t f = 0; f < manifest->nfiles && c->writing.tier->shared; f++) {
        const struct dt_manifest_file *file = &manifest->file[f];
        struct stat st;
        if (fstatat(c->writing.partialfd, file->name, &st,
                    AT_SYMLINK_NOFOLLOW) ||
            !S_ISREG(st.st_mode) || (size_t)st.st_size != file->size)
            return dt_error_set(err, DT_ERR_IO,
                                "%s, written by rank %d, has not reached rank "
                                "0: the directory must be on a file system "
                                "that all nodes share",
                                file->name, file->rank);
    }
    return DT_SUCCESS;
}

static dt_result_t make_manifest(struct commit *c, char **text,
                                 const size_t *len, size_t *result,
                                 struct dt_error *err)
{
    struct dt_manifest manifest = {0};
    dt_result_t rc = dt_manifest_join(&manifest, c->ckpt->size,
                                      (const char *const *)text, len, err);
    if (rc != DT_SUCCESS)
        return rc;
    describe(c, &manifest);
    rc = check_files(c, &manifest, err);
    if (rc == DT_SUCCESS)
        rc = dt_manifest_print(&manifest, &c->text, result, err);
    dt_manifest_clear(&manifest);
    return rc;
}

/* ---- leaders ---- */

static dt_result_t commit_here(struct commit *c, size_t len,
                               struct dt_error *err)
{
    struct dt_ckpt *ckpt = c->ckpt;
    const struct dt_writing *w = &c->writing;
    int64_t step = ckpt->saver->save.step;
    dt_result_t rc = dt_manifest_put(w->partialfd, c->text, len, err);
    if (rc == DT_SUCCESS && w->tier->lock &&
        !dt_directory_lock_held(w->tier->lock))
        rc = dt_error_set(err, DT_ERR_BUSY,
                          "another job has taken the "
                          "directory");
    if (rc == DT_SUCCESS)
        rc = dt_store_publish(w->dirfd, w->partial, step, ckpt->tag, err);
    if (rc == DT_SUCCESS &&
        w->tier->memory) /* the next snapshot reuses its file */
        rc = dt_store_prune(w->dirfd, step, 1, 0, ckpt->tag, err);
    return rc;
}

static void remove_partial(const struct commit *c)
{
    if (c->writing.dirfd >= 0)
        dt_store_remove(c->writing.dirfd, c->writing.partial, NULL);
}

/* The text: what failed, and which checkpoint the user still has. */
static dt_result_t explain(const struct commit *c, dt_result_t rc,
                           const struct dt_error *why, struct dt_error *err)
{
    char name[DT_STORE_NAME];
    const char *kept = NULL;
    struct dt_store_entry *entry = NULL;
    size_t count = 0;
    dt_store_name(name, c->ckpt->saver->save.step);
    if (c->writing.dirfd >= 0)
        dt_store_list(c->writing.dirfd, &entry, &count, NULL);
    for (size_t i = 0; i < count && !kept; i++)
        if (entry[i].complete && !entry[i].hidden)
            kept = entry[i].name;
    dt_error_set(err, rc, "checkpoint %s not saved: %s; %s%s in %s", name,
                 why->text, kept ? kept : "no older one",
                 kept ? " is kept" : " is", c->writing.tier->dir);
    free(entry);
    return rc;
}

/* ---- all together ---- */

/* Rank 0, which has all votes and, if they are SUCCESS, all parts. */
static void decide(struct commit *c, dt_result_t rc,
                   const struct dt_error *vote, int who, char **text,
                   const size_t *len)
{
    struct dt_error why = {0};
    if (rc != DT_SUCCESS)
        dt_error_set(&why, rc, "rank %d: %s", who, vote->text);
    else
        rc = make_manifest(c, text, len, &c->verdict.len, &why);
    if (rc == DT_SUCCESS && c->writing.tier->shared)
        rc = commit_here(c, c->verdict.len, &why);
    if (rc != DT_SUCCESS) {
        remove_partial(c);
        if (c->writing.tier->memory)
            c->verdict.err = why;
        else
            explain(c, rc, &why, &c->verdict.err);
    }
    c->verdict.code = rc;
    c->verdict.seconds = dt_need_now() - c->ckpt->saver->save.begun;
}

/* Broadcast the manifest that rank 0 made, commit on each node, and vote. */
static dt_result_t commit_nodes(struct commit *c, bool *alive,
                                struct dt_error *err)
{
    struct dt_ckpt *ckpt = c->ckpt;
    struct dt_vote mine = {.step = ckpt->saver->save.step};
    size_t len = c->verdict.len;
    int who;
    if (ckpt->rank != 0)
        c->text = malloc(len + 1);
    if (!c->text)
        return dt_no_memory(err); /* the other ranks time out */
    *alive = false;
    dt_result_t rc = dt_vote_outcome(
        dt_bcast(c->text, len, DT_DTYPE_U8, 0, ckpt->comm, DT_STREAM_NONE),
        err);
    if (rc != DT_SUCCESS)
        return rc;
    if (c->writing.leader)
        mine.code = commit_here(c, len, &mine.err);
    rc = dt_vote_gather(ckpt->comm, &mine, ckpt->votes, err);
    if (rc != DT_SUCCESS)
        return rc;
    *alive = true;
    struct dt_error why = {0};
    rc = dt_vote_result(ckpt->votes, ckpt->size, &who, &why);
    if (rc != DT_SUCCESS)
        dt_error_set(err, rc,
                     "checkpoint of step %" PRId64 " not saved: rank "
                     "%d: %s",
                     mine.step, who, why.text);
    return rc;
}

/* Set the pace from the votes: the same on all ranks. */
static void note_pace(struct dt_ckpt *ckpt)
{
    struct dt_pace pace = {.left_s = -1};
    for (int r = 0; r < ckpt->size; r++) {
        const struct dt_vote *vote = &ckpt->votes[r];
        pace.cost_s = vote->copy_s > pace.cost_s ? vote->copy_s : pace.cost_s;
        pace.step_s = vote->step_s > pace.step_s ? vote->step_s : pace.step_s;
        if (vote->left_s >= 0 &&
            (pace.left_s < 0 || vote->left_s < pace.left_s))
            pace.left_s = vote->left_s;
    }
    ckpt->saver->pace = pace;
}

/* All votes have been exchanged. */
static dt_result_t conclude(struct commit *c, bool *alive, struct dt_error *err)
{
    struct dt_ckpt *ckpt = c->ckpt;
    size_t n = (size_t)ckpt->size;
    struct dt_error vote = {0};
    int who = 0;
    if (dt_vote_differ(ckpt->votes, ckpt->size, err) != DT_SUCCESS) {
        remove_partial(c); /* each rank its own: the steps may differ */
        return DT_ERR_INVALID_ARG;
    }
    dt_result_t rc = dt_vote_result(ckpt->votes, ckpt->size, &who, &vote);
    char *all = NULL, **text = calloc(n, sizeof(*text));
    size_t *len = calloc(n, sizeof(*len));
    *alive = false;
    if (!text || !len) {
        rc = dt_no_memory(err); /* the other ranks time out */
        goto free_lists;
    }
    if (rc == DT_SUCCESS) {
        dt_result_t end = gather_parts(c, &all, text, len, err);
        if (end != DT_SUCCESS) {
            rc = end;
            if (ckpt->rank == 0 && c->writing.tier->shared)
                remove_partial(c);
            goto free_lists;
        }
    }
    if (ckpt->rank == 0)
        decide(c, rc, &vote, who, text, len);
    rc = dt_vote_announce(ckpt->comm, &c->verdict, sizeof(c->verdict), err);
    if (rc != DT_SUCCESS)
        goto free_lists;
    *alive = true;
    ckpt->saver->save_s = c->verdict.seconds;
    rc = (dt_result_t)c->verdict.code;
    if (rc != DT_SUCCESS) {
        dt_error_set(err, rc, "%s", c->verdict.err.text);
        if (c->writing.leader)
            remove_partial(c);
    } else if (!c->writing.tier->shared) {
        rc = commit_nodes(c, alive, err);
    }
free_lists:
    free(len);
    free(text);
    free(all);
    return rc;
}

/* Have the names of the files on disk, too. Where all nodes share the
 * directory, its leader does so; elsewhere other nodes commit without waiting
 * for this one. */
static dt_result_t sync_names(const struct dt_writing *w, struct dt_error *err)
{
    if (w->tier->shared || w->tier->memory ||
        (dt_file_sync(w->partialfd) == 0 && dt_file_sync(w->dirfd) == 0))
        return DT_SUCCESS;
    return dt_failed(err, "sync the directory");
}

/* Write parity: from the node's memory, while the files are written, if this
 * save is there; else from the files. */
static dt_result_t protect(const struct commit *c, dt_result_t code,
                           struct dt_error *err)
{
    struct dt_ckpt *ckpt = c->ckpt;
    const struct dt_saver *saver = ckpt->saver;
    bool memory = saver->save.async && saver->memory;
    char path[PATH_MAX], name[DT_STORE_NAME];
    int memoryfd = -1;
    if (code == DT_SUCCESS && !memory)
        code = dt_write_end(ckpt, &c->writing, err);
    if (code == DT_SUCCESS && memory) {
        dt_store_name(name, saver->save.step);
        snprintf(path, sizeof(path), "%s/%s", ckpt->tier[DT_TIER_MEMORY].dir,
                 name);
        memoryfd = dt_store_open(path);
        if (memoryfd < 0)
            code = dt_failed(err, path);
    }
    code = dt_protect(ckpt, code == DT_SUCCESS ? c->writing.partialfd : -1,
                      memoryfd, code, err);
    if (memoryfd >= 0)
        close(memoryfd);
    return code;
}

/* Everything that this rank does before it votes. */
static dt_result_t write_all(struct commit *c, struct dt_error *err)
{
    struct dt_ckpt *ckpt = c->ckpt;
    struct dt_error why = {0};
    dt_result_t code = dt_write(ckpt, c->tier, &c->writing, err);
    if (c->tier == DT_TIER_DIR && !c->writing.tier->shared &&
        ckpt->redundancy.m > 0)
        code = protect(c, code, err);
    dt_result_t end = dt_write_end(ckpt, &c->writing, &why);
    if (code == DT_SUCCESS && end != DT_SUCCESS)
        code = dt_error_set(err, end, "%s", why.text);
    return code == DT_SUCCESS ? sync_names(&c->writing, err) : code;
}

dt_result_t dt_commit(struct dt_ckpt *ckpt, int tier, bool *alive,
                      struct dt_error *err)
{
    struct dt_saver *saver = ckpt->saver;
    struct commit c = {.ckpt = ckpt, .tier = tier};
    struct dt_vote mine = saver->save.mine;
    struct dt_written *written = &saver->written[tier];
    mine.code = write_all(&c, &mine.err);
    mine.text_bytes = c.writing.len;
    dt_result_t rc = dt_vote_gather(ckpt->comm, &mine, ckpt->votes, err);
    *alive = rc == DT_SUCCESS;
    if (rc == DT_SUCCESS) {
        note_pace(ckpt);
        rc = conclude(&c, alive, err);
    } else if (ckpt->rank == 0 && c.writing.tier->shared) {
        remove_partial(&c);
    }
    if (rc == DT_SUCCESS) {
        dt_written_clear(written);
        *written = c.writing.next;
        c.writing.next = (struct dt_written){0};
        if (c.writing.leader && !c.writing.tier->memory) {
            saver->prune[tier] = c.writing.dirfd;
            c.writing.dirfd = -1;
        }
    }
    free(c.text);
    dt_writing_close(&c.writing);
    return rc;
}

/* ---- afterwards ---- */

static void prune(const struct dt_ckpt *ckpt, const struct dt_tier *tier,
                  int dirfd)
{
    struct dt_error why = {0};
    if (tier->lock && !dt_directory_lock_held(tier->lock))
        return; /* the checkpoints belong to another job now */
    if (dt_store_prune(dirfd, ckpt->saver->save.step, ckpt->keep.newest,
                       ckpt->keep.every, ckpt->tag, &why) != DT_SUCCESS)
        dt_report("old checkpoints in %s stay: %s", tier->dir, why.text);
}

void dt_commit_prune(struct dt_ckpt *ckpt)
{
    for (int i = 0; i < DT_TIERS; i++) {
        int *dirfd = &ckpt->saver->prune[i];
        if (*dirfd < 0)
            continue;
        prune(ckpt, &ckpt->tier[i], *dirfd);
        close(*dirfd);
        *dirfd = -1;
    }
}
