/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* open.c - opening and closing a handle.
 *
 * Rank 0 makes the shared directory and in it a hidden one, as a save would;
 * the others must then see that. So what would only fail at the first save,
 * hours later, fails here: a directory that cannot be written, or that is
 * another one on each node. */
#include "ckpt/open.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "base/file.h"
#include "base/notice.h"
#include "ckpt/memory.h"
#include "ckpt/save.h"
#include "ckpt/tier.h"

/* What each rank tells all others first. Whole 64-bit words. */
struct hello {
    int64_t code, node;
    uint64_t tag; /* rank 0's counts */
    struct dt_error err;
};

static struct dt_tier *shared_tier(struct dt_ckpt *ckpt)
{
    struct dt_tier *dir = &ckpt->tier[DT_TIER_DIR];
    return dir->shared ? dir : &ckpt->tier[DT_TIER_FLUSH];
}

/* ---- who commits in a directory ---- */

/* Make, open and take it. *fd is to be closed. */
static dt_result_t take_directory(struct dt_tier *tier, int *fd,
                                  struct dt_error *err)
{
    int dirfd = dt_file_make_dirs(tier->dir) ? -1 : dt_store_open(tier->dir);
    if (dirfd < 0)
        return dt_error_set(err, DT_ERR_IO,
                            "cannot open or create the checkpoint directory "
                            "%s: %s",
                            tier->dir, strerror(errno));
    dt_result_t rc = dt_guard_take(dirfd, tier->dir, dt_run_id(),
                                   dt_restart_count(), &tier->guard, err);
    if (rc == DT_SUCCESS)
        *fd = dirfd;
    else
        close(dirfd);
    return rc;
}

/* The hidden directory that all ranks are to see. */
static dt_result_t make_probe(struct dt_tier *tier, uint64_t tag,
                              struct dt_error *err)
{
    char name[DT_STORE_NAME];
    int dirfd;
    dt_store_partial_name(name, 0, tag);
    dt_result_t rc = take_directory(tier, &dirfd, err);
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

static dt_result_t make_directories(struct dt_ckpt *ckpt, uint64_t *tag,
                                    struct dt_error *err)
{
    struct dt_tier *dir = &ckpt->tier[DT_TIER_DIR];
    dt_result_t rc = DT_SUCCESS;
    int fd;
    if (!dir->shared && ckpt->local_rank == 0) {
        rc = take_directory(dir, &fd, err);
        if (rc == DT_SUCCESS)
            close(fd);
    }
    if (rc != DT_SUCCESS || ckpt->rank != 0)
        return rc;
    if (getrandom(tag, sizeof(*tag), 0) != sizeof(*tag))
        return dt_error_set(err, DT_ERR_SYSTEM, "getrandom: %s",
                            strerror(errno));
    return make_probe(shared_tier(ckpt), *tag, err);
}

/* ---- who sees it ---- */

static dt_result_t see_probe(struct dt_ckpt *ckpt, struct dt_error *err)
{
    const char *dir = shared_tier(ckpt)->dir;
    char name[DT_STORE_NAME];
    struct stat st;
    dt_store_partial_name(name, 0, ckpt->tag);
    int dirfd = dt_store_open(dir);
    if (dirfd >= 0 && fstatat(dirfd, name, &st, 0) == 0) {
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

/* This rank's, if it is safe. */
static char *memory_path(const struct dt_ckpt *ckpt)
{
    struct dt_error why = {0};
    char *path = dt_memory_path(dt_run_id(), ckpt->tier[DT_TIER_DIR].dir);
    if (!path || dt_memory_check(path, &why) == DT_SUCCESS)
        return path;
    if (ckpt->local_rank == 0)
        fprintf(stderr,
                "dt: checkpoints are not kept in the memory of the nodes: %s\n",
                why.text);
    free(path);
    return NULL;
}

/* All ranks see the directory, and have a memory tier or none has. */
static dt_result_t see(struct dt_ckpt *ckpt, struct dt_error *err)
{
    struct dt_vote mine = {0};
    int who;
    char *path = memory_path(ckpt);
    mine.code = see_probe(ckpt, &mine.err);
    mine.bytes = path != NULL;
    dt_result_t rc = dt_vote_gather(ckpt->comm, &mine, ckpt->votes, err);
    if (rc == DT_SUCCESS)
        rc = dt_vote_result(ckpt->votes, ckpt->size, &who, err);
    bool all = rc == DT_SUCCESS;
    for (int r = 0; r < ckpt->size && all; r++)
        all = ckpt->votes[r].bytes;
    if (all)
        ckpt->tier[DT_TIER_MEMORY].dir = path;
    else
        free(path);
    return rc;
}

/* ---- all together ---- */

/* What can go wrong on one rank alone; the others hear of it. */
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

/* What all ranks said. */
static dt_result_t greet(struct dt_ckpt *ckpt, const struct hello *mine,
                         struct hello *all, struct dt_error *err)
{
    dt_result_t rc = dt_vote_outcome(
        dt_allgather(mine, all, sizeof(*mine) / sizeof(int64_t), DT_DTYPE_I64,
                     dt_comm_world(), DT_STREAM_NONE),
        err);
    if (rc != DT_SUCCESS)
        return rc;
    ckpt->tag = all[0].tag;
    for (int r = 0; r < ckpt->size; r++) {
        ckpt->node_of[r] = (int)all[r].node;
        if (all[r].code != DT_SUCCESS && rc == DT_SUCCESS)
            rc = dt_error_set(err, (dt_result_t)all[r].code, "%s",
                              all[r].err.text);
    }
    return rc;
}

static dt_result_t meet(struct dt_ckpt *ckpt, const char *dir, int keep,
                        struct dt_error *err)
{
    struct hello mine = {.node = ckpt->node};
    struct hello *all = calloc((size_t)ckpt->size, sizeof(*all));
    if (!all)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
    mine.code = prepare(ckpt, dir, keep, &mine.tag, &mine.err);
    dt_result_t rc = greet(ckpt, &mine, all, err);
    free(all);
    if (rc == DT_SUCCESS)
        rc = dt_vote_outcome(
            dt_comm_split(dt_comm_world(), 0, ckpt->rank, &ckpt->comm), err);
    if (rc == DT_SUCCESS)
        rc = see(ckpt, err);
    if (ckpt->rank == 0 && mine.code == DT_SUCCESS)
        remove_probe(shared_tier(ckpt)->dir, mine.tag);
    return rc;
}

dt_result_t dt_ckpt_do_open(const char *dir, int keep, struct dt_ckpt **ckpt,
                            struct dt_error *err)
{
    struct dt_ckpt *new = calloc(1, sizeof(*new));
    if (!new)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
    new->rank = dt_rank();
    new->size = dt_size();
    new->local_rank = dt_local_rank();
    new->node = dt_node_rank();
    new->num_nodes = dt_num_nodes();
    new->votes = calloc((size_t) new->size, sizeof(*new->votes));
    new->node_of = calloc((size_t) new->size, sizeof(*new->node_of));
    dt_result_t rc = new->votes &&new->node_of
                         ? meet(new, dir, keep, err)
                         : dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
    if (rc == DT_SUCCESS)
        rc = dt_saver_open(new, err);
    if (rc != DT_SUCCESS) {
        dt_ckpt_do_close(new);
        return rc;
    }
    dt_notice_arm();
    *ckpt = new;
    return DT_SUCCESS;
}

/* The communicator stays until dt_finalize: giving it back is collective. */
void dt_ckpt_do_close(struct dt_ckpt *ckpt)
{
    dt_saver_close(ckpt);
    for (int i = 0; i < DT_TIERS; i++)
        dt_guard_release(ckpt->tier[i].guard);
    dt_tier_clear(ckpt);
    dt_ckpt_forget(ckpt);
    free(ckpt->votes);
    free(ckpt->node_of);
    free(ckpt);
}
