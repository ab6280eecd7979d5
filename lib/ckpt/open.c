/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* open.c - opening and closing a handle.
 *
 * Rank 0 creates the shared directory and a hidden one in it, as a save would;
 * the other ranks must then find that. So a directory that cannot be written,
 * or that is another one on each node, is an error here and not hours later, at
 * the first save. One that is mounted read-only is for loading: nothing is
 * created in it, and a line says so. */
#include "ckpt/open.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/env.h"
#include "base/file.h"
#include "base/notice.h"
#include "ckpt/save/save.h"
#include "ckpt/tensors.h"
#include "ckpt/tier.h"

/* The first record that the ranks exchange: whole 64-bit words. */
struct card {
    int64_t code, node, read_only;
    uint64_t tag; /* rank 0's counts */
    struct dt_error err;
};

static struct dt_tier *shared_tier(struct dt_ckpt *ckpt)
{
    struct dt_tier *dir = &ckpt->tier[DT_TIER_DIR];
    return dir->shared ? dir : &ckpt->tier[DT_TIER_FLUSH];
}

/* ---- the directories ---- */

/* Create, open and lock it. *fd is to be closed. */
static dt_result_t lock_directory(struct dt_tier *tier, int *fd,
                                  struct dt_error *err)
{
    int dirfd = dt_file_make_dirs(tier->dir) ? -1 : dt_store_open(tier->dir);
    if (dirfd < 0)
        return dt_error_set(err, DT_ERR_IO,
                            "cannot open or create the checkpoint directory "
                            "%s: %s",
                            tier->dir, strerror(errno));
    dt_result_t rc = dt_directory_lock_take(
        dirfd, tier->dir, dt_run_id(), dt_restart_count(), &tier->lock, err);
    if (rc == DT_SUCCESS)
        *fd = dirfd;
    else
        close(dirfd);
    return rc;
}

/* Create the hidden directory that all ranks must find. */
static dt_result_t make_probe(struct dt_tier *tier, uint64_t tag,
                              struct dt_error *err)
{
    char name[DT_STORE_NAME];
    int dirfd;
    dt_store_partial_name(name, 0, tag);
    dt_result_t rc = lock_directory(tier, &dirfd, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (mkdirat(dirfd, name, 0777))
        rc = dt_error_set(err, dt_file_result(errno),
                          "cannot write in the checkpoint directory %s: %s",
                          tier->dir, strerror(errno));
    close(dirfd);
    return rc;
}

static void remove_probe(const char *dir, uint64_t tag)
{
    char name[DT_STORE_NAME];
    dt_store_partial_name(name, 0, tag);
    int dirfd = dt_store_open(dir);
    if (dirfd < 0)
        return;
    dt_store_remove(dirfd, name, NULL);
    close(dirfd);
}

static bool is_read_only(const char *dir)
{
    struct statvfs fs;
    return statvfs(dir, &fs) == 0 && fs.f_flag & ST_RDONLY;
}

static dt_result_t make_directories(struct dt_ckpt *ckpt, uint64_t *tag,
                                    struct dt_error *err)
{
    struct dt_tier *dir = &ckpt->tier[DT_TIER_DIR];
    dt_result_t rc = DT_SUCCESS;
    int fd;
    if (!dir->shared && ckpt->local_rank == 0) {
        rc = lock_directory(dir, &fd, err);
        if (rc == DT_SUCCESS)
            close(fd);
    }
    if (rc != DT_SUCCESS || ckpt->rank != 0)
        return rc;
    if (getrandom(tag, sizeof(*tag), 0) != sizeof(*tag))
        return dt_error_set(err, DT_ERR_SYSTEM, "getrandom: %s",
                            strerror(errno));
    ckpt->read_only = is_read_only(shared_tier(ckpt)->dir);
    if (!ckpt->read_only)
        return make_probe(shared_tier(ckpt), *tag, err);
    dt_report("checkpoint directory %s is mounted read-only: checkpoints are "
              "loaded from it, and every save will fail",
              shared_tier(ckpt)->dir);
    return DT_SUCCESS;
}

/* ---- what all ranks must find ---- */

static dt_result_t find_probe(struct dt_ckpt *ckpt, struct dt_error *err)
{
    const char *dir = shared_tier(ckpt)->dir;
    char name[DT_STORE_NAME];
    struct stat st;
    dt_store_partial_name(name, 0, ckpt->tag);
    int dirfd = dt_store_open(dir);
    if (dirfd >= 0 && (ckpt->read_only || fstatat(dirfd, name, &st, 0) == 0)) {
        close(dirfd);
        return DT_SUCCESS;
    }
    int why = errno;
    if (dirfd >= 0)
        close(dirfd);
    return dt_error_set(err, DT_ERR_IO,
                        "rank %d does not find what rank 0 wrote in the "
                        "checkpoint directory %s (%s): it must be on a file "
                        "system that all nodes share",
                        ckpt->rank, dir, strerror(why));
}

/* The path of the memory tier on this node, or NULL if it is not safe. */
static char *memory_path(const struct dt_ckpt *ckpt)
{
    struct dt_error why = {0};
    char *path = dt_memory_path(dt_run_id(), ckpt->tier[DT_TIER_DIR].dir);
    if (!path || dt_memory_check(path, &why) == DT_SUCCESS)
        return path;
    if (ckpt->local_rank == 0)
        dt_report("checkpoints are not kept in the memory of the nodes: %s",
                  why.text);
    free(path);
    return NULL;
}

/* Check that all ranks find the directory. The memory tier is used if all ranks
 * have it. */
static dt_result_t check_tiers(struct dt_ckpt *ckpt, struct dt_error *err)
{
    struct dt_vote mine = {0};
    char *path = memory_path(ckpt);
    mine.code = find_probe(ckpt, &mine.err);
    mine.has_memory = path != NULL;
    dt_result_t rc =
        dt_vote_agree(ckpt->comm, &mine, ckpt->votes, ckpt->size, err);
    bool all = rc == DT_SUCCESS;
    for (int r = 0; r < ckpt->size && all; r++)
        all = ckpt->votes[r].has_memory;
    if (all)
        ckpt->tier[DT_TIER_MEMORY].dir = path;
    else
        free(path);
    return rc;
}

/* ---- all together ---- */

/* What this rank does alone; exchange_cards reports its errors to the others.
 */
static dt_result_t prepare(struct dt_ckpt *ckpt, const char *dir, int keep,
                           uint64_t *tag, struct dt_error *err)
{
    const char *interval = getenv(DT_ENV_CKPT_INTERVAL);
    ckpt->need = (struct dt_need){.due = INT64_MAX, .end = INT64_MAX};
    dt_result_t rc = dt_tier_choose(ckpt, dir, keep, err);
    ckpt->rate /= dt_local_size();
    if (rc == DT_SUCCESS && interval && *interval)
        rc = dt_interval_parse(interval, DT_ENV_CKPT_INTERVAL,
                               &ckpt->need.interval, err);
    if (rc == DT_SUCCESS)
        rc = make_directories(ckpt, tag, err);
    return rc;
}

/* Allgather the cards: the nodes of all ranks, the tag, the first error. */
static dt_result_t exchange_cards(struct dt_ckpt *ckpt, const struct card *mine,
                                  struct card *all, struct dt_error *err)
{
    dt_result_t rc = dt_vote_outcome(
        dt_allgather(mine, all, sizeof(*mine) / sizeof(int64_t), DT_DTYPE_I64,
                     dt_comm_world(), DT_STREAM_NONE),
        err);
    if (rc != DT_SUCCESS)
        return rc;
    ckpt->tag = all[0].tag;
    ckpt->read_only = all[0].read_only;
    for (int r = 0; r < ckpt->size; r++) {
        ckpt->node_of[r] = (int)all[r].node;
        if (all[r].code != DT_SUCCESS && rc == DT_SUCCESS)
            rc = dt_error_set(err, (dt_result_t)all[r].code, "%s",
                              all[r].err.text);
    }
    return rc;
}

static dt_result_t open_together(struct dt_ckpt *ckpt, const char *dir,
                                 int keep, struct dt_error *err)
{
    struct card mine = {.node = ckpt->node};
    struct card *all = calloc((size_t)ckpt->size, sizeof(*all));
    if (!all)
        return dt_no_memory(err);
    mine.code = prepare(ckpt, dir, keep, &mine.tag, &mine.err);
    mine.read_only = ckpt->read_only;
    dt_result_t rc = exchange_cards(ckpt, &mine, all, err);
    free(all);
    if (rc == DT_SUCCESS)
        rc = dt_vote_outcome(
            dt_comm_split(dt_comm_world(), 0, ckpt->rank, &ckpt->comm), err);
    if (rc == DT_SUCCESS)
        rc = check_tiers(ckpt, err);
    if (ckpt->rank == 0 && mine.code == DT_SUCCESS && !ckpt->read_only)
        remove_probe(shared_tier(ckpt)->dir, mine.tag);
    return rc;
}

dt_result_t dt_open_ckpt(const char *dir, int keep, struct dt_ckpt **ckpt,
                         struct dt_error *err)
{
    struct dt_ckpt *new = calloc(1, sizeof(*new));
    if (!new)
        return dt_no_memory(err);
    new->rank = dt_rank();
    new->size = dt_size();
    new->local_rank = dt_local_rank();
    new->node = dt_node_rank();
    new->num_nodes = dt_num_nodes();
    new->votes = calloc((size_t) new->size, sizeof(*new->votes));
    new->node_of = calloc((size_t) new->size, sizeof(*new->node_of));
    dt_result_t rc = new->votes &&new->node_of
                         ? open_together(new, dir, keep, err)
                         : dt_no_memory(err);
    if (rc == DT_SUCCESS)
        rc = dt_saver_open(new, err);
    if (rc != DT_SUCCESS) {
        dt_close_ckpt(new);
        return rc;
    }
    dt_notice_arm();
    *ckpt = new;
    return DT_SUCCESS;
}

/* The communicator stays until dt_finalize, since destroying it is collective.
 */
void dt_close_ckpt(struct dt_ckpt *ckpt)
{
    dt_saver_close(ckpt);
    for (int i = 0; i < DT_TIERS; i++)
        dt_directory_lock_release(ckpt->tier[i].lock);
    dt_tier_clear(ckpt);
    dt_tensors_clear(ckpt);
    free(ckpt->votes);
    free(ckpt->node_of);
    free(ckpt);
}
