/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* rebuild.c - bringing back the files that lost nodes had.
 *
 * The jobs of the plan run in waves. In a round every job of the wave gets one
 * block of k pieces of its stripe from those who have them, and makes one block
 * of its file. */
#include "ckpt/rebuild.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/far.h"
#include "ckpt/nodes.h"
#include "ckpt/plan.h"
#include "ckpt/verify.h"

struct rebuild {
    struct dt_ckpt *ckpt;
    struct dt_source *source;
    struct dt_plan plan;
    struct dt_reader reader;
    unsigned char *out;   /* blocks that go out in this round */
    size_t used;          /* bytes of it */
    unsigned char *piece; /* of my job: all of its stripe, a block each */
    bool damaged;
    dt_result_t code; /* what went wrong here */
    struct dt_error why;
};

/* ---- one round ---- */

static bool in_round(const struct dt_job *job, int wave)
{
    return job->wave == wave && job->at < job->end;
}

static void cut_job(const struct rebuild *b, const struct dt_job *job,
                    struct dt_cut *cut)
{
    dt_team_cut(&b->plan.team[job->team], job->member, job->at, job->end,
                b->plan.block, cut);
}

static void read_run(struct rebuild *b, const struct dt_team *team,
                     const struct dt_read *run, int parity, void *to)
{
    if (b->code != DT_SUCCESS)
        return;
    if (run->file >= 0) {
        b->code = dt_reader_read(&b->reader, run->file, run->offset, run->len,
                                 to, &b->why);
        return;
    }
    int node = team->group.first + parity;
    ssize_t n =
        dt_file_read(b->plan.fd[node], to, run->len, (off_t)run->offset);
    if (n != (ssize_t)run->len)
        b->code = dt_error_set(&b->why, DT_ERR_CORRUPT, "parity of node %d: %s",
                               node, n < 0 ? strerror(errno) : "truncated");
}

/* What others need of me, in the order in which they wait for it; what I need
 * of myself at once. */
static dt_result_t give(struct rebuild *b, const struct dt_job *job,
                        const struct dt_cut *cut, int i)
{
    const struct dt_team *team = &b->plan.team[job->team];
    struct dt_read run;
    dt_result_t rc = DT_SUCCESS;
    int parity, holder;
    for (size_t done = 0, at = 0;
         rc == DT_SUCCESS &&
         dt_team_next(team, cut, cut->use[i], &done, &run, &parity, &holder);
         at = done) {
        unsigned char *mine =
            b->piece + (size_t)cut->use[i] * b->plan.block + at;
        if (holder != b->ckpt->rank)
            continue;
        if (job->worker == holder) {
            read_run(b, team, &run, parity, mine);
            continue;
        }
        read_run(b, team, &run, parity, b->out + b->used);
        rc = dt_send(b->out + b->used, run.len, DT_DTYPE_U8, job->worker,
                     dt_comm_world(), DT_STREAM_NONE);
        b->used += run.len;
    }
    return rc;
}

/* What I need of others. Behind the last file of a node there are zeros. */
static dt_result_t take(struct rebuild *b, const struct dt_job *job,
                        const struct dt_cut *cut, int i)
{
    const struct dt_team *team = &b->plan.team[job->team];
    unsigned char *piece = b->piece + (size_t)cut->use[i] * b->plan.block;
    struct dt_read run;
    dt_result_t rc = DT_SUCCESS;
    size_t done = 0, at = 0;
    int parity, holder;
    if (job->worker != b->ckpt->rank)
        return rc;
    for (; rc == DT_SUCCESS &&
           dt_team_next(team, cut, cut->use[i], &done, &run, &parity, &holder);
         at = done)
        if (holder != b->ckpt->rank)
            rc = dt_recv(piece + at, run.len, DT_DTYPE_U8, holder,
                         dt_comm_world(), DT_STREAM_NONE);
    memset(piece + done, 0, cut->len - done);
    return rc;
}

static dt_result_t move(struct rebuild *b, int wave, struct dt_error *err)
{
    struct dt_cut cut;
    b->used = 0;
    dt_result_t rc = dt_group_start();
    for (int pass = 0; pass < 2; pass++)
        for (int j = 0; j < b->plan.jobs; j++) {
            const struct dt_job *job = &b->plan.job[j];
            if (!in_round(job, wave))
                continue;
            cut_job(b, job, &cut);
            int k = b->plan.team[job->team].group.k;
            for (int i = 0; i < k && rc == DT_SUCCESS; i++)
                rc = (pass ? take : give)(b, job, &cut, i);
        }
    dt_result_t end = dt_group_end();
    return dt_vote_outcome(rc == DT_SUCCESS ? end : rc, err);
}

static void make(struct rebuild *b, const struct dt_job *job,
                 const struct dt_cut *cut)
{
    const struct dt_redundancy_group *group = &b->plan.team[job->team].group;
    unsigned char *piece[255];
    for (int i = 0; i < group->size; i++)
        piece[i] = b->piece + (size_t)i * b->plan.block;
    if (b->code == DT_SUCCESS)
        b->code = dt_redundancy_decode(group->k, group->m, cut->len, piece,
                                       cut->lost, cut->n, &b->why);
    if (b->code == DT_SUCCESS &&
        dt_file_write(job->fd, piece[cut->wanted], cut->len))
        b->code = dt_error_set(&b->why, dt_file_result(errno), "%s: %s",
                               b->source->manifest.file[job->file].name,
                               strerror(errno));
}

/* False when all jobs of the wave are done. */
static bool round_of(struct rebuild *b, int wave, dt_result_t *rc,
                     struct dt_error *err)
{
    bool more = false;
    for (int j = 0; j < b->plan.jobs; j++)
        more = more || in_round(&b->plan.job[j], wave);
    if (more)
        *rc = move(b, wave, err);
    for (int j = 0; j < b->plan.jobs && *rc == DT_SUCCESS; j++) {
        struct dt_job *job = &b->plan.job[j];
        struct dt_cut cut;
        if (!in_round(job, wave))
            continue;
        cut_job(b, job, &cut);
        if (job->worker == b->ckpt->rank)
            make(b, job, &cut);
        job->at += cut.len;
    }
    return more && *rc == DT_SUCCESS;
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
        unlinkat(b->source->fd, name, 0); /* of a job that was cut short */
        job->fd =
            openat(b->source->fd, name,
                   O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (job->fd < 0)
            b->code = dt_error_set(&b->why, dt_file_result(errno), "%s: %s",
                                   name, strerror(errno));
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
    dt_result_t rc =
        dt_verify_file(&b->source->manifest, job->file, job->fd, &why);
    b->damaged = b->damaged || rc == DT_ERR_CORRUPT;
    if (rc != DT_SUCCESS)
        b->code =
            dt_error_set(&b->why, rc, "%s: brought back, but not as it was: %s",
                         file, why.text);
    else if (renameat(b->source->fd, name, b->source->fd, file))
        b->code = dt_error_set(&b->why, dt_file_result(errno), "%s: %s", file,
                               strerror(errno));
}

static void close_files(struct rebuild *b)
{
    char name[96];
    for (int j = 0; j < b->plan.jobs; j++) {
        struct dt_job *job = &b->plan.job[j];
        if (job->fd < 0)
            continue;
        if (b->code == DT_SUCCESS)
            finish_file(b, job);
        hidden_name(b, job, name);
        unlinkat(b->source->fd, name, 0);
    }
}

/* ---- all together ---- */

static void allocate(struct rebuild *b)
{
    int size = 1;
    for (int t = 0; t < b->plan.teams; t++)
        if (b->plan.team[t].group.size > size)
            size = b->plan.team[t].group.size;
    b->out = calloc(1, b->plan.room + 1);
    b->piece = calloc((size_t)size, b->plan.block);
    if (!b->out || !b->piece)
        b->code = dt_error_set(&b->why, DT_ERR_NO_MEMORY, "out of memory");
}

static dt_result_t rebuild(struct rebuild *b, struct dt_error *err)
{
    dt_result_t rc = dt_plan_make(&b->plan, b->ckpt, b->source, err);
    if (rc != DT_SUCCESS)
        return rc;
    allocate(b);
    open_files(b);
    rc = dt_node_agree(b->ckpt, b->code, 0, &b->why, err);
    for (int wave = 0; wave < b->plan.waves && rc == DT_SUCCESS; wave++)
        while (round_of(b, wave, &rc, err))
            ;
    if (rc == DT_SUCCESS) {
        close_files(b);
        rc = dt_node_agree(b->ckpt, b->code, b->damaged, &b->why, err);
        for (int r = 0; r < b->ckpt->size; r++)
            b->damaged = b->damaged || b->ckpt->votes[r].bytes;
    }
    for (int j = 0; j < b->plan.jobs && rc == DT_SUCCESS; j++)
        b->source->holder[b->plan.job[j].file] = b->plan.job[j].worker;
    return rc;
}

dt_result_t dt_rebuild(struct dt_ckpt *ckpt, struct dt_source *source,
                       bool *damaged, struct dt_error *err)
{
    struct rebuild b = {
        .ckpt = ckpt, .source = source, .reader = {.source = source, .fd = -1}};
    bool lost = false;
    *damaged = false;
    for (size_t f = 0; f < source->manifest.nfiles; f++)
        lost = lost || source->holder[f] < 0;
    if (!lost)
        return DT_SUCCESS;
    dt_result_t rc = rebuild(&b, err);
    *damaged = b.damaged;
    dt_reader_close(&b.reader);
    dt_plan_clear(&b.plan, source);
    free(b.out);
    free(b.piece);
    return rc;
}
