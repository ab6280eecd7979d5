/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* loaded.c - what is written after a load, so that the checkpoint that was
 * loaded is as safe as when it was saved. */
#include <string.h>
#include <unistd.h>

#include "ckpt/redundancy/redundancy.h"
#include "ckpt/save/save.h"
#include "ckpt/save/saver.h"

/* ---- parity ---- */

static void restore_parity(void *arg)
{
    struct dt_ckpt *ckpt = arg;
    struct dt_saver *saver = ckpt->saver;
    struct dt_error why = {0};
    dt_result_t rc = dt_restore_parity(ckpt, &saver->loaded, &why);
    if (rc != DT_SUCCESS && ckpt->rank == 0)
        dt_report("the checkpoint that was loaded survives the loss of fewer "
                  "nodes than %s does, until the next save: %s",
                  saver->loaded.manifest.redundancy, why.text);
    dt_source_close(&saver->loaded);
}

/* ---- what was in the memory of the nodes ---- */

/* Has the tier the save that source is of, on this node? */
static bool has_save(const struct dt_tier *tier, const struct dt_source *source)
{
    struct dt_manifest manifest = {0};
    char name[DT_STORE_NAME];
    uint64_t identity;
    int dirfd = dt_store_open(tier->dir);
    if (dirfd < 0)
        return false;
    dt_store_name(name, source->manifest.step);
    int fd = dt_store_open_at(dirfd, name);
    bool has = fd >= 0 &&
               dt_manifest_read(&manifest, fd, &identity, NULL) == DT_SUCCESS &&
               manifest.tag == source->manifest.tag;
    dt_manifest_clear(&manifest);
    if (fd >= 0)
        close(fd);
    close(dirfd);
    return has;
}

/* Have all tiers on disk the save? The ranks that would commit there look. */
static dt_result_t find_on_disk(struct dt_ckpt *ckpt,
                                const struct dt_source *source, bool *on_disk,
                                struct dt_error *err)
{
    struct dt_vote mine = {0};
    for (int t = DT_TIER_DIR; t < DT_TIERS; t++) {
        const struct dt_tier *tier = &ckpt->tier[t];
        bool looks = tier->shared ? ckpt->rank == 0 : ckpt->local_rank == 0;
        bool all =
            tier->shared || source->manifest.num_nodes == ckpt->num_nodes;
        if (tier->dir && looks && !(all && has_save(tier, source)))
            mine.lost = true;
    }
    dt_result_t rc =
        dt_vote_agree(ckpt->comm, &mine, ckpt->votes, ckpt->size, err);
    *on_disk = true;
    for (int r = 0; r < ckpt->size; r++)
        *on_disk = *on_disk && !ckpt->votes[r].lost;
    return rc;
}

/* Save what only memory has, from the tensors into which it was loaded. */
static void write_through(struct dt_ckpt *ckpt, const struct dt_source *source)
{
    struct dt_error why = {0};
    bool on_disk = false;
    dt_result_t rc = find_on_disk(ckpt, source, &on_disk, &why);
    ckpt->saver->clean = rc == DT_SUCCESS && on_disk;
    if (rc == DT_SUCCESS && !on_disk && !ckpt->read_only)
        rc = dt_save_start(ckpt, source->manifest.step, &why);
    if (rc != DT_SUCCESS && ckpt->rank == 0)
        dt_report("the checkpoint that was loaded from the memory of the nodes "
                  "is not written to disk: %s",
                  why.text);
}

/* What a run that was killed has left in this node's memory is now this one's,
 * to be removed in the end. */
static void take_memory(struct dt_ckpt *ckpt)
{
    const char *path = ckpt->tier[DT_TIER_MEMORY].dir;
    struct dt_saver *saver = ckpt->saver;
    struct dt_error why;
    int fd;
    if (ckpt->local_rank != 0 || saver->lock >= 0 || !path ||
        access(path, F_OK) || dt_memory_open(path, &fd, &why) != DT_SUCCESS)
        return;
    dt_memory_lock(fd, &saver->lock, &why);
    close(fd);
}

/* ---- all of it ---- */

void dt_save_loaded(struct dt_ckpt *ckpt, struct dt_source *loaded)
{
    struct dt_saver *saver = ckpt->saver;
    struct dt_error ignored;
    take_memory(ckpt);
    saver->clean = true;
    if (loaded->memory)
        write_through(ckpt, loaded);
    if (loaded->memory || loaded->shared ||
        strcmp(loaded->manifest.redundancy, "none") == 0) {
        dt_source_close(loaded);
        return;
    }
    saver->loaded = *loaded;
    *loaded = (struct dt_source){.fd = -1};
    if (saver->drain || dt_drain_start(&saver->drain, &ignored) == DT_SUCCESS)
        dt_drain_run(saver->drain, restore_parity, ckpt);
    else
        restore_parity(ckpt); /* no thread could be started */
}
