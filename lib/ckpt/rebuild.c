/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* rebuild.c - bringing back the files that lost nodes had. */
#include "ckpt/rebuild.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/chain.h"
#include "ckpt/nodes.h"
#include "ckpt/verify.h"

struct rebuild {
    struct dt_ckpt *ckpt;
    struct dt_source *source;
    struct dt_plan plan;
    struct dt_chain *chain;
    bool damaged;
    dt_result_t code; /* what went wrong here */
    struct dt_error why;
};

static dt_result_t agree(struct rebuild *b, struct dt_error *err)
{
    return dt_node_agree(b->ckpt, b->code, b->damaged, &b->why, err);
}

/* ---- the files ---- */

/* Under a hidden name until it is whole. */
static void hidden_name(const struct rebuild *b, const struct dt_job *job,
                        char name[96])
{
    snprintf(name, 96, ".rebuild-%s", b->source->manifest.file[job->file].name);
}

static void open_files(struct rebuild *b)
{
    char name[96];
    for (int j = 0; j < b->plan.jobs && b->code == DT_SUCCESS; j++) {
        struct dt_job *job = &b->plan.job[j];
        if (job->worker != b->ckpt->rank)
            continue;
        hidden_name(b, job, name);
        if (b->source->fd < 0) {
            b->code = dt_error_set(&b->why, DT_ERR_CORRUPT,
                                   "%s: there is no directory for it", name);
            break;
        }
        unlinkat(b->source->fd, name, 0); /* of a job that was cut short */
        job->fd =
            openat(b->source->fd, name,
                   O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (job->fd < 0)
            b->code = dt_error_set(&b->why, dt_file_result(errno), "%s: %s",
                                   name, strerror(errno));
        else
            b->code = dt_verify_begin(&job->verify, &b->source->manifest,
                                      job->file, &b->why);
    }
}

/* Give it its name, if it is what the manifest says. Not synced: should it be
 * lost once more, it can be made once more. */
static void finish_file(struct rebuild *b, const struct dt_job *job)
{
    const char *file = b->source->manifest.file[job->file].name;
    struct dt_error why = {0};
    char name[96];
    hidden_name(b, job, name);
    dt_result_t rc = dt_verify_end(job->verify, &why);
    if (rc != DT_SUCCESS)
        b->code =
            dt_error_set(&b->why, rc, "%s: brought back, but not as it was: %s",
                         file, why.text);
    else if (renameat(b->source->fd, name, b->source->fd, file))
        b->code = dt_error_set(&b->why, dt_file_result(errno), "%s: %s", file,
                               strerror(errno));
}

static void close_files(struct rebuild *b, bool made)
{
    char name[96];
    for (int j = 0; j < b->plan.jobs; j++) {
        struct dt_job *job = &b->plan.job[j];
        if (job->fd < 0)
            continue;
        if (made && b->code == DT_SUCCESS)
            finish_file(b, job);
        hidden_name(b, job, name);
        unlinkat(b->source->fd, name, 0);
    }
}

/* ---- all together ---- */

static dt_result_t rebuild(struct rebuild *b, bool check, struct dt_error *err)
{
    dt_result_t rc = dt_plan_make(&b->plan, b->ckpt, b->source, check, err);
    if (rc != DT_SUCCESS)
        return rc;
    b->code = dt_chain_open(&b->chain, &b->plan, b->source, &b->why);
    open_files(b);
    rc = agree(b, err);
    if (rc == DT_SUCCESS)
        rc = dt_chain_run(b->chain, &b->code, &b->why, err);
    close_files(b, rc == DT_SUCCESS);
    if (rc != DT_SUCCESS)
        return rc;
    b->damaged = b->code == DT_ERR_CORRUPT;
    rc = agree(b, err);
    for (int r = 0; r < b->ckpt->size; r++)
        b->damaged = b->damaged || b->ckpt->votes[r].bytes;
    for (int j = 0; j < b->plan.jobs && rc == DT_SUCCESS; j++)
        b->source->holder[b->plan.job[j].file] = b->plan.job[j].worker;
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
