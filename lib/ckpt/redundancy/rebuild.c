/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* rebuild.c - rebuilding the files of lost nodes. */
#include "ckpt/redundancy/rebuild.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/redundancy/chain.h"

struct rebuild {
    struct dt_ckpt *ckpt;
    struct dt_source *source;
    struct dt_plan plan;
    struct dt_chain *chain;
    struct dt_vote mine; /* code and err: the first error of this rank */
    bool damaged;        /* some rank has read damaged data */
};

static dt_result_t agree(struct rebuild *b, struct dt_error *err)
{
    return dt_vote_agree(dt_comm_world(), &b->mine, b->ckpt->votes,
                         b->ckpt->size, err);
}

/* ---- the files ---- */

/* The name of the file until it is complete. */
static void hidden_name(const struct rebuild *b,
                        const struct dt_rebuild_item *item, char name[96])
{
    snprintf(name, 96, ".rebuild-%s",
             b->source->manifest.file[item->file].name);
}

static void open_files(struct rebuild *b)
{
    char name[96];
    for (int j = 0; j < b->plan.items && b->mine.code == DT_SUCCESS; j++) {
        struct dt_rebuild_item *item = &b->plan.item[j];
        if (item->worker != b->ckpt->rank)
            continue;
        hidden_name(b, item, name);
        if (b->source->fd < 0) {
            b->mine.code =
                dt_error_set(&b->mine.err, DT_ERR_CORRUPT,
                             "%s: there is no directory for it", name);
            break;
        }
        unlinkat(b->source->fd, name,
                 0); /* left by a job that was interrupted */
        item->fd =
            openat(b->source->fd, name,
                   O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (item->fd < 0)
            b->mine.code = dt_failed(&b->mine.err, name);
        else
            b->mine.code = dt_verify_begin(&item->verify, &b->source->manifest,
                                           item->file, &b->mine.err);
    }
}

/* Give the file its name, if it matches the manifest. It is not synced: if it
 * is lost, it can be rebuilt once more. */
static void finish_file(struct rebuild *b, const struct dt_rebuild_item *item)
{
    const char *file = b->source->manifest.file[item->file].name;
    struct dt_error why = {0};
    char name[96];
    hidden_name(b, item, name);
    dt_result_t rc = dt_verify_end(item->verify, &why);
    if (rc != DT_SUCCESS)
        b->mine.code =
            dt_error_set(&b->mine.err, rc, "%s: was rebuilt, but differs: %s",
                         file, why.text);
    else if (renameat(b->source->fd, name, b->source->fd, file))
        b->mine.code = dt_failed(&b->mine.err, file);
}

static void close_files(struct rebuild *b, bool complete)
{
    char name[96];
    for (int j = 0; j < b->plan.items; j++) {
        struct dt_rebuild_item *item = &b->plan.item[j];
        if (item->fd < 0)
            continue;
        if (complete && b->mine.code == DT_SUCCESS)
            finish_file(b, item);
        hidden_name(b, item, name);
        unlinkat(b->source->fd, name, 0);
    }
}

/* ---- all together ---- */

static dt_result_t rebuild(struct rebuild *b, bool check, struct dt_error *err)
{
    dt_result_t rc = dt_plan_make(&b->plan, b->ckpt, b->source, check, err);
    if (rc != DT_SUCCESS)
        return rc;
    b->mine.code = dt_chain_open(&b->chain, &b->plan, b->source, &b->mine.err);
    open_files(b);
    rc = agree(b, err);
    if (rc == DT_SUCCESS) {
        dt_result_t code;
        rc = dt_chain_run(b->chain, &code, &b->mine.err, err);
        b->mine.code = code;
    }
    close_files(b, rc == DT_SUCCESS);
    if (rc != DT_SUCCESS)
        return rc;
    b->mine.damaged = b->mine.code == DT_ERR_CORRUPT;
    rc = agree(b, err);
    b->damaged = b->mine.damaged;
    for (int r = 0; r < b->ckpt->size; r++)
        b->damaged = b->damaged || b->ckpt->votes[r].damaged;
    for (int j = 0; j < b->plan.items && rc == DT_SUCCESS; j++)
        b->source->holder[b->plan.item[j].file] = b->plan.item[j].worker;
    return rc;
}

dt_result_t dt_rebuild(struct dt_ckpt *ckpt, struct dt_source *source,
                       bool check, bool *damaged, struct dt_error *err)
{
    struct rebuild b = {.ckpt = ckpt, .source = source};
    dt_result_t rc = rebuild(&b, check, err);
    *damaged = b.damaged;
    dt_chain_close(b.chain);
    dt_plan_clear(&b.plan, source);
    return rc;
}
