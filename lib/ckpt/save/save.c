/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* save.c - saving: the program waits for it, or it goes on in the background.
 *
 *   save:        assign -> write from the program's memory -> tiers
 *   save_start:  wait for the save before -> assign, if the names have changed
 *                -> snapshot -> return
 *                the drain's thread: checksums -> tiers; then another thread
 *                removes checkpoints that are too old
 *
 * The tiers are the memory of the nodes (of save_start only), the directory,
 * and the directory to which that is flushed. */
#include "ckpt/save/save.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ckpt/save/assign.h"
#include "ckpt/save/commit.h"
#include "ckpt/save/write.h"

/* ---- checksums and tiers, in the thread of the caller or of the drain ---- */

/* The memory tier has failed on some rank: no rank uses it any more. */
static void give_up_memory(struct dt_ckpt *ckpt, const struct dt_error *why)
{
    ckpt->saver->memory = false;
    if (ckpt->rank == 0)
        dt_report("checkpoints are not kept in the memory of the nodes: %s",
                  why->text);
}

/* Did the snapshot fail on some rank? Then the next tier reports it, too. */
static bool is_unready(const struct dt_ckpt *ckpt)
{
    for (int r = 0; r < ckpt->size; r++)
        if (ckpt->votes[r].unready)
            return true;
    return false;
}

static dt_result_t commit_memory(struct dt_ckpt *ckpt, bool *alive,
                                 struct dt_error *err)
{
    struct dt_error why = {0};
    dt_result_t rc = dt_commit(ckpt, DT_TIER_MEMORY, alive, &why);
    if (!*alive)
        return dt_error_set(err, rc, "%s", why.text);
    if (rc != DT_SUCCESS && !is_unready(ckpt))
        give_up_memory(ckpt, &why);
    return DT_SUCCESS;
}

/* The flush is tried even if the directory has failed; the first error is the
 * result. */
static dt_result_t commit_disks(struct dt_ckpt *ckpt, struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    bool alive = true;
    for (int tier = DT_TIER_DIR; tier <= DT_TIER_FLUSH && alive; tier++) {
        struct dt_error why = {0};
        if (!ckpt->tier[tier].dir)
            continue;
        dt_result_t end = dt_commit(ckpt, tier, &alive, &why);
        if (end != DT_SUCCESS && rc == DT_SUCCESS)
            rc = dt_error_set(err, end, "%s", why.text);
    }
    return rc;
}

static void prune(void *arg)
{
    dt_commit_prune(arg);
}

static void drain_save(void *arg)
{
    struct dt_ckpt *ckpt = arg;
    struct dt_saver *saver = ckpt->saver;
    bool alive = true;
    saver->rc = DT_SUCCESS;
    if (saver->save.async && saver->save.mine.code == DT_SUCCESS)
        dt_write_ahead(ckpt);
    if (saver->save.mine.code == DT_SUCCESS)
        dt_shard_sum(&saver->save.shard);
    if (saver->save.async && saver->memory)
        saver->rc = commit_memory(ckpt, &alive, &saver->err);
    if (alive)
        saver->rc = commit_disks(ckpt, &saver->err);
    dt_write_ahead_end(ckpt);
    saver->clean = saver->rc == DT_SUCCESS;
    if (saver->save.async && saver->writer)
        dt_drain_run(saver->writer, prune, ckpt);
    else
        dt_commit_prune(ckpt);
}

/* ---- the snapshot ---- */

static bool all_on_host(const struct dt_ckpt *ckpt,
                        const struct dt_shard *shard)
{
    for (size_t i = 0; i < shard->count; i++)
        if (!dt_copy_is_host(ckpt->saver->copy, shard->slice[i].data,
                             shard->slice[i].piece.bytes))
            return false;
    return true;
}

/* Open the memory tier of this node. -1: the reason is in save.memory. */
static int open_memory(struct dt_ckpt *ckpt)
{
    struct dt_saver *saver = ckpt->saver;
    const char *path = ckpt->tier[DT_TIER_MEMORY].dir;
    struct dt_error *why = &saver->save.memory;
    int fd;
    if (!path || dt_memory_open(path, &fd, why) != DT_SUCCESS)
        return -1;
    if (ckpt->local_rank != 0 || saver->lock >= 0)
        return fd;
    dt_memory_sweep(path);
    if (dt_memory_lock(fd, &saver->lock, why) == DT_SUCCESS)
        return fd;
    close(fd);
    return -1;
}

static dt_result_t open_snapshot(struct dt_ckpt *ckpt, struct dt_error *err)
{
    struct dt_saver *saver = ckpt->saver;
    if (saver->snapshot)
        return DT_SUCCESS;
    int fd = saver->memory ? open_memory(ckpt) : -1;
    dt_result_t rc = dt_snapshot_open(fd, ckpt->rank, &saver->snapshot, err);
    if (rc != DT_SUCCESS && fd >= 0)
        close(fd);
    return rc;
}

/* Memory for the snapshot: the node's, else this process's. */
static dt_result_t take_memory(struct dt_ckpt *ckpt, size_t size, char **image,
                               struct dt_error *err)
{
    struct dt_saver *saver = ckpt->saver;
    struct dt_error *why = &saver->save.memory;
    dt_result_t rc = open_snapshot(ckpt, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (!saver->memory)
        dt_snapshot_privatize(saver->snapshot);
    rc = dt_snapshot_take(saver->snapshot, size, image, err);
    if (rc == DT_SUCCESS || !dt_snapshot_outlives(saver->snapshot)) {
        if (!dt_snapshot_outlives(saver->snapshot) && !*why->text)
            dt_error_set(why, rc, "there is none");
        return rc;
    }
    dt_error_set(why, rc, "%s", err->text);
    dt_snapshot_privatize(saver->snapshot);
    return dt_snapshot_take(saver->snapshot, size, image, err);
}

/* A failure is no error: copies from GPUs only take longer. */
static void pin_snapshot(struct dt_ckpt *ckpt)
{
    struct dt_saver *saver = ckpt->saver;
    struct dt_error why = {0};
    if (saver->unpinned ||
        dt_snapshot_pin(saver->snapshot, saver->copy, &why) == DT_SUCCESS)
        return;
    saver->unpinned = true;
    if (ckpt->rank == 0)
        dt_report("checkpoints are copied from GPUs more slowly: %s", why.text);
}

/* Copy the shard there, laid out as the file that it will be. */
static dt_result_t take_snapshot(struct dt_ckpt *ckpt, struct dt_error *err)
{
    struct dt_saver *saver = ckpt->saver;
    struct dt_shard *shard = &saver->save.shard;
    char *image;
    dt_result_t rc = take_memory(ckpt, shard->size, &image, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (dt_copy_has_gpus(saver->copy))
        pin_snapshot(ckpt);
    memcpy(image, shard->header, shard->header_len);
    for (size_t i = 0; i < shard->count && rc == DT_SUCCESS; i++) {
        struct dt_shard_slice *slice = &shard->slice[i];
        rc = dt_copy_begin(saver->copy, image + slice->offset, slice->data,
                           slice->piece.bytes, err);
        slice->data = image + slice->offset;
    }
    dt_result_t end =
        dt_copy_finish(saver->copy, rc == DT_SUCCESS ? err : NULL);
    saver->save.image = image;
    return rc == DT_SUCCESS ? end : rc;
}

/* ---- beginning ---- */

/* Every error from here on is voted on. */
static void prepare(struct dt_ckpt *ckpt, int64_t step, bool async)
{
    struct dt_saver *saver = ckpt->saver;
    struct dt_save *save = &saver->save;
    ckpt->tag++;
    dt_shard_clear(&save->shard);
    *save = (struct dt_save){.step = step, .async = async};
    save->mine = (struct dt_vote){.step = step,
                                  .model = saver->model,
                                  .step_s = dt_need_step(&ckpt->need),
                                  .left_s = dt_time_left()};
    dt_result_t rc = dt_shard_make(&save->shard, ckpt, &save->mine.err);
    dt_copy_start(saver->copy);
    bool host = rc == DT_SUCCESS && all_on_host(ckpt, &save->shard);
    double begun = dt_need_now(); /* waiting for GPUs was part of the step */
    if (rc == DT_SUCCESS && (async || !host))
        rc = take_snapshot(ckpt, &save->mine.err);
    if (rc == DT_SUCCESS && async && !saver->drain)
        rc = dt_drain_start(&saver->drain, &save->mine.err);
    save->mine.code = rc;
    save->mine.unready = rc != DT_SUCCESS;
    save->begun = dt_need_now();
    save->mine.copy_s = save->begun - begun;
    saver->pending = true;
    saver->clean = false;
}

void dt_saver_idle(struct dt_ckpt *ckpt)
{
    if (ckpt->saver->drain)
        dt_drain_wait(ckpt->saver->drain);
    if (ckpt->saver->writer)
        dt_drain_wait(ckpt->saver->writer);
}

/* Wait for the save before, and return its result, once. Checkpoints that are
 * too old may still be there. */
dt_result_t dt_save_wait(struct dt_ckpt *ckpt, struct dt_error *err)
{
    struct dt_saver *saver = ckpt->saver;
    if (saver->drain)
        dt_drain_wait(saver->drain);
    if (!saver->pending)
        return DT_SUCCESS;
    saver->pending = false;
    if (saver->rc == DT_SUCCESS) {
        struct dt_pace pace = saver->pace;
        if (!saver->save.async) /* the program was stopped for all of it */
            pace.cost_s = saver->save_s;
        saver->full = false;
        dt_need_learn(&ckpt->need, saver->save.step, &pace, saver->save_s);
    } else {
        dt_error_set(err, saver->rc, "%s", saver->err.text);
    }
    return saver->rc;
}

/* The same before the next save begins: a full disk is only reported, once. */
static dt_result_t take_result_for_next(struct dt_ckpt *ckpt,
                                        struct dt_error *err)
{
    struct dt_saver *saver = ckpt->saver;
    dt_saver_idle(ckpt);
    dt_result_t rc = dt_save_wait(ckpt, err);
    if (rc != DT_ERR_NO_SPACE)
        return rc;
    if (!saver->full && ckpt->rank == 0)
        dt_report("%s; the next one is tried all the same", err->text);
    saver->full = true;
    return DT_SUCCESS;
}

dt_result_t dt_save(struct dt_ckpt *ckpt, int64_t step, struct dt_error *err)
{
    dt_result_t rc = take_result_for_next(ckpt, err);
    if (rc == DT_SUCCESS)
        rc = dt_assign(ckpt, step, err);
    if (rc != DT_SUCCESS)
        return rc;
    double begun = dt_need_now();
    prepare(ckpt, step, false);
    drain_save(ckpt);
    rc = dt_save_wait(ckpt, err);
    dt_need_begun(&ckpt->need, step, dt_need_now() - begun);
    return rc;
}

dt_result_t dt_save_start(struct dt_ckpt *ckpt, int64_t step,
                          struct dt_error *err)
{
    struct dt_saver *saver = ckpt->saver;
    dt_result_t rc = take_result_for_next(ckpt, err);
    if (rc == DT_SUCCESS)
        rc = dt_assign(ckpt, step, err);
    if (rc != DT_SUCCESS)
        return rc;
    prepare(ckpt, step, true);
    dt_need_begun(&ckpt->need, step, saver->save.mine.copy_s);
    if (saver->drain)
        dt_drain_run(saver->drain, drain_save, ckpt);
    else
        drain_save(
            ckpt); /* no thread could be started: the vote reports that */
    return DT_SUCCESS;
}

/* ---- the saver ---- */

dt_result_t dt_saver_open(struct dt_ckpt *ckpt, struct dt_error *err)
{
    struct dt_saver *saver = calloc(1, sizeof(*saver));
    if (!saver)
        return dt_no_memory(err);
    saver->lock = -1;
    saver->loaded.fd = -1;
    for (int i = 0; i < DT_TIERS; i++)
        saver->prune[i] = -1;
    saver->memory = ckpt->tier[DT_TIER_MEMORY].dir;
    dt_result_t rc = dt_copy_open(&saver->copy, err);
    if (rc != DT_SUCCESS) {
        free(saver);
        return rc;
    }
    ckpt->saver = saver;
    return DT_SUCCESS;
}

void dt_saver_close(struct dt_ckpt *ckpt)
{
    struct dt_saver *saver = ckpt->saver;
    if (!saver)
        return;
    dt_drain_stop(saver->drain);
    dt_drain_stop(saver->writer);
    if (saver->lock >= 0 && saver->clean)
        dt_memory_remove(ckpt->tier[DT_TIER_MEMORY].dir);
    if (saver->lock >= 0)
        close(saver->lock);
    dt_snapshot_close(saver->snapshot);
    dt_copy_close(saver->copy);
    for (int i = 0; i < DT_TIERS; i++)
        dt_written_clear(&saver->written[i]);
    dt_shard_clear(&saver->save.shard);
    free(saver);
    ckpt->saver = NULL;
}
