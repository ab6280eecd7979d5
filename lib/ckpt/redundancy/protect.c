/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* protect.c - computing and writing parity.
 *
 * All stripes of a redundancy set are encoded at once, run by run of a few
 * chunks. For stripe s member s receives the data blocks of the k others,
 * computes the m parity blocks, keeps the first and sends the rest to the
 * members after it. The runs are divided among the rails, as many as the
 * smallest node has ranks:
 *
 *   the thread that drains   data of run i + 1 is sent -> data of run i is here
 *                            -> its parity is computed, is sent
 *                            -> parity of run i - 1 is here
 *   another thread           writes the parity of run i - 1
 *
 * Runs alternate between two sets of buffers. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/drain.h"
#include "ckpt/nodes.h"
#include "ckpt/redundancy/node_data.h"
#include "ckpt/redundancy/protect.h"
#include "ckpt/redundancy/redundancy.h"

#define MEMORY_MAX                                                             \
    ((size_t)64 << 20) /* bytes of two runs, if chunks allow it */

/* The same bytes of every block of every stripe. */
struct run {
    size_t at, len;
};

/* The buffers of a run, and its requests. */
struct set {
    unsigned char **mine, **theirs, **made, **kept; /* k, k, m, m */
    dt_request_t *data, *parity;                    /* 2k, 2m */
    int ndata, nparity;
};

struct encode {
    const struct dt_ckpt *ckpt;
    const struct dt_protect_part *part; /* NULL: this node writes its parity */
    struct dt_erasure_layout layout;
    struct dt_parity parity;
    int member; /* this node in the group */
    int rail, rails;
    int *peer; /* [group.size]: the rank of my rail there */
    struct dt_node_data data;
    int fd;      /* the file of parity, or -1 */
    size_t room; /* most bytes of a run */
    size_t runs; /* of this rail */
    struct set set[2];
    unsigned char *memory, **piece; /* of both sets */
    dt_request_t *request;          /* the same */
    struct dt_drain *drain;         /* writes run number writing */
    size_t writing;
    dt_result_t written; /* its result */
    struct dt_error unwritten;
    uint64_t *sum;    /* [m][chunks] */
    dt_result_t code; /* the first error of this rank */
    struct dt_error why;
};

static void keep_error(struct encode *e, dt_result_t code, const char *what)
{
    if (e->code == DT_SUCCESS)
        e->code = dt_error_set(&e->why, code, "%s: %s", what, strerror(errno));
}

static void no_memory(struct encode *e)
{
    errno = ENOMEM;
    keep_error(e, DT_ERR_NO_MEMORY, "parity");
}

static void open_parity(struct encode *e, int dirfd, int flags)
{
    char name[DT_PARITY_NAME];
    dt_parity_name(name, e->ckpt->num_nodes, e->ckpt->node);
    if (e->code != DT_SUCCESS)
        return;
    e->fd = openat(dirfd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0666);
    if (e->fd < 0)
        keep_error(e, dt_file_result(errno), name);
}

/* ---- all together ---- */

/* One result for all ranks. votes[] keep span_bytes. */
static dt_result_t agree(struct encode *e, struct dt_vote *votes,
                         struct dt_error *err)
{
    struct dt_vote mine = {
        .code = e->code, .span_bytes = e->data.span.bytes, .err = e->why};
    return dt_vote_agree(e->ckpt->comm, &mine, votes, e->ckpt->size, err);
}

/* Find the rank of my rail on each node of the set. Returns the bytes of the
 * node that has most. */
static size_t find_peers(struct encode *e, const struct dt_vote *votes)
{
    size_t longest = 0;
    for (int i = 0; i < e->layout.size; i++) {
        int node = e->layout.first + i, n = dt_nodes_ranks(e->ckpt, node);
        e->peer[i] = dt_nodes_rank_at(e->ckpt, node, e->rail);
        size_t bytes = votes[dt_nodes_rank_at(e->ckpt, node, 0)].span_bytes;
        longest = bytes > longest ? bytes : longest;
        if (i == 0 || n < e->rails)
            e->rails = n;
    }
    return longest;
}

/* ---- runs ---- */

static void divide(struct encode *e, unsigned char *memory)
{
    int k = e->layout.k, m = e->layout.m;
    for (int i = 0; i < 4 * (k + m); i++)
        e->piece[i] = memory + (size_t)i * e->room;
    for (int i = 0; i < 2; i++) {
        struct set *set = &e->set[i];
        set->mine = e->piece + 2 * i * (k + m);
        set->theirs = set->mine + k;
        set->made = set->theirs + k;
        set->kept = set->made + m;
        set->data = e->request + 2 * i * (k + m);
        set->parity = set->data + 2 * k;
    }
}

static struct run run_at(const struct encode *e, size_t i)
{
    size_t at = (i * (size_t)e->rails + (size_t)e->rail) * e->room;
    size_t left = e->parity.length - at;
    return (struct run){at, left < e->room ? left : e->room};
}

static void allocate(struct encode *e)
{
    size_t m = (size_t)e->layout.m, n = 4 * (size_t)e->layout.size;
    size_t chunk = e->parity.chunk, chunks = MEMORY_MAX / n / chunk;
    size_t all, rail = (size_t)e->rail, rails = (size_t)e->rails;
    e->room = chunks > 1 ? chunks * chunk : chunk;
    if (e->parity.length < e->room)
        e->room = e->parity.length;
    all = e->room ? (e->parity.length + e->room - 1) / e->room : 0;
    e->runs = all > rail ? (all - rail + rails - 1) / rails : 0;
    e->sum = calloc(2 * m * dt_parity_chunks(&e->parity) + 1, sizeof(*e->sum));
    e->piece = calloc(n, sizeof(*e->piece));
    e->request = calloc(n, sizeof(*e->request));
    e->memory = calloc(n, e->room + 1);
    if (!e->sum || !e->piece || !e->request || !e->memory)
        no_memory(e);
    else
        divide(e, e->memory);
    if (e->code == DT_SUCCESS)
        e->code = dt_drain_start(&e->drain, &e->why);
}

/* ---- to the file ---- */

static const unsigned char *kept_block(const struct encode *e, size_t i, int p)
{
    const struct set *set = &e->set[i % 2];
    return p == 0 ? set->made[0] : set->kept[p];
}

/* Does this node write its parity, or has it got that already? */
static bool writes(const struct encode *e)
{
    return !e->part || e->part->lost;
}

static void write_run(void *arg)
{
    struct encode *e = arg;
    struct run run = run_at(e, e->writing);
    for (int p = 0; p < e->layout.m && e->written == DT_SUCCESS; p++)
        e->written = dt_parity_write(e->fd, &e->parity, p, run.at,
                                     kept_block(e, e->writing, p), run.len,
                                     &e->unwritten);
}

static void end_writing(struct encode *e)
{
    dt_drain_wait(e->drain);
    if (e->code == DT_SUCCESS && e->written != DT_SUCCESS)
        e->code = dt_error_set(&e->why, e->written, "%s", e->unwritten.text);
}

static void begin_writing(struct encode *e, size_t i)
{
    e->writing = i;
    if (e->code == DT_SUCCESS && writes(e))
        dt_drain_run(e->drain, write_run, e);
}

static void sum_block(struct encode *e, size_t i, int p)
{
    struct run run = run_at(e, i);
    size_t block = e->parity.chunk;
    uint64_t *sum = e->sum + (size_t)p * dt_parity_chunks(&e->parity);
    for (size_t at = 0; at < run.len; at += block)
        sum[(run.at + at) / block] =
            dt_checksum(kept_block(e, i, p) + at,
                        run.len - at < block ? run.len - at : block);
}

/* ---- between the nodes ----
 *
 * Every rank begins the data of run i + 1 before the parity of run i, so that
 * two ranks send in the order in which they wait. */

static dt_result_t begin_send(struct encode *e, const void *data, size_t len,
                              int member, dt_request_t *request)
{
    return dt_isend(data, len, DT_DTYPE_U8, e->peer[member % e->layout.size],
                    e->ckpt->comm, DT_STREAM_NONE, request);
}

static dt_result_t begin_receive(struct encode *e, void *data, size_t len,
                                 int member, dt_request_t *request)
{
    return dt_irecv(data, len, DT_DTYPE_U8, e->peer[member % e->layout.size],
                    e->ckpt->comm, DT_STREAM_NONE, request);
}

/* Wait for all of them, also after an error of one. */
static dt_result_t end_all(dt_request_t *request, int *n, struct dt_error *err)
{
    dt_result_t code = DT_SUCCESS;
    for (int i = 0; i < *n; i++) {
        dt_result_t rc = dt_wait(&request[i]);
        if (code == DT_SUCCESS)
            code = dt_vote_outcome(rc, err);
    }
    *n = 0;
    return code;
}

/* Begin to send my data blocks to the members that encode them, and to receive
 * those that I encode. After an error of this rank the others get some bytes
 * all the same; the vote reports the error. */
static dt_result_t begin_data(struct encode *e, size_t i, struct dt_error *err)
{
    struct set *set = &e->set[i % 2];
    struct run run = run_at(e, i);
    int k = e->layout.k, m = e->layout.m, *n = &set->ndata;
    dt_result_t rc = DT_SUCCESS;
    for (int j = 0; j < k && rc == DT_SUCCESS; j++) {
        rc = begin_receive(e, set->theirs[j], run.len, e->member + m + j,
                           &set->data[*n]);
        *n += rc == DT_SUCCESS;
    }
    for (int j = 0; j < k && rc == DT_SUCCESS; j++) {
        size_t from = (size_t)j * e->parity.length + run.at;
        const void *mine = dt_node_data_at(&e->data, from, run.len);
        if (!mine && e->code == DT_SUCCESS)
            e->code = dt_node_data_read(&e->data, set->mine[j], from, run.len,
                                        &e->why);
        rc = begin_send(e, mine ? mine : set->mine[j], run.len,
                        dt_erasure_stripe(&e->layout, e->member, j),
                        &set->data[*n]);
        *n += rc == DT_SUCCESS;
    }
    return dt_vote_outcome(rc, err);
}

/* Begin to send the parity blocks that other members keep, and to receive mine.
 */
static dt_result_t begin_parity(struct encode *e, size_t i,
                                struct dt_error *err)
{
    struct set *set = &e->set[i % 2];
    size_t len = run_at(e, i).len;
    int m = e->layout.m, *n = &set->nparity;
    dt_result_t rc = DT_SUCCESS;
    for (int p = 1; p < m && rc == DT_SUCCESS; p++) {
        rc = begin_receive(e, set->kept[p], len, e->member - p + e->layout.size,
                           &set->parity[*n]);
        *n += rc == DT_SUCCESS;
    }
    for (int p = 1; p < m && rc == DT_SUCCESS; p++) {
        rc = begin_send(e, set->made[p], len, e->member + p, &set->parity[*n]);
        *n += rc == DT_SUCCESS;
    }
    return dt_vote_outcome(rc, err);
}

/* ---- run by run ---- */

static dt_result_t make_run(struct encode *e, size_t i, struct dt_error *err)
{
    struct set *set = &e->set[i % 2];
    dt_result_t rc = end_all(set->data, &set->ndata, err);
    if (rc != DT_SUCCESS)
        return rc;
    end_writing(e); /* of what these buffers had */
    if (e->code == DT_SUCCESS)
        e->code = dt_erasure_encode(e->layout.k, e->layout.m, run_at(e, i).len,
                                    (const unsigned char *const *)set->theirs,
                                    set->made, &e->why);
    return begin_parity(e, i, err);
}

static dt_result_t keep_run(struct encode *e, size_t i, struct dt_error *err)
{
    struct set *set = &e->set[i % 2];
    dt_result_t rc = end_all(set->parity, &set->nparity, err);
    for (int p = 0; p < e->layout.m && rc == DT_SUCCESS; p++)
        sum_block(e, i, p);
    end_writing(e);
    if (rc == DT_SUCCESS)
        begin_writing(e, i);
    return rc;
}

/* Returns the result of the communication only. */
static dt_result_t encode_runs(struct encode *e, struct dt_error *err)
{
    struct dt_error ignored;
    dt_result_t rc = e->runs > 0 ? begin_data(e, 0, err) : DT_SUCCESS;
    for (size_t i = 0; i < e->runs && rc == DT_SUCCESS; i++) {
        if (i + 1 < e->runs)
            rc = begin_data(e, i + 1, err);
        if (rc == DT_SUCCESS)
            rc = make_run(e, i, err);
        if (rc == DT_SUCCESS && i > 0)
            rc = keep_run(e, i - 1, err);
    }
    if (rc == DT_SUCCESS && e->runs > 0)
        rc = keep_run(e, e->runs - 1, err);
    for (int i = 0; i < 2; i++) { /* left over after an error */
        end_all(e->set[i].data, &e->set[i].ndata, &ignored);
        end_all(e->set[i].parity, &e->set[i].nparity, &ignored);
    }
    end_writing(e);
    return rc;
}

/* Send the checksums of all rails to the first, which completes the file. */
static dt_result_t finish(struct encode *e, struct dt_error *err)
{
    size_t n = (size_t)e->layout.m * dt_parity_chunks(&e->parity);
    dt_comm_t comm = e->ckpt->comm;
    if (e->rail > 0)
        return dt_vote_outcome(
            dt_send(e->sum, n, DT_DTYPE_I64,
                    dt_nodes_rank_at(e->ckpt, e->ckpt->node, 0), comm,
                    DT_STREAM_NONE),
            err);
    uint64_t *more = e->sum + n;
    dt_result_t rc = DT_SUCCESS;
    for (int rail = 1; rail < e->rails && rc == DT_SUCCESS; rail++) {
        int peer = dt_nodes_rank_at(e->ckpt, e->ckpt->node, rail);
        rc = dt_vote_outcome(
            dt_recv(more, n, DT_DTYPE_I64, peer, comm, DT_STREAM_NONE), err);
        for (size_t i = 0; rc == DT_SUCCESS && i < n; i++)
            e->sum[i] |=
                more[i]; /* a rail has zeros for the chunks of others */
    }
    if (rc == DT_SUCCESS && e->code == DT_SUCCESS && writes(e))
        e->code = dt_parity_finish(e->fd, &e->parity, e->sum, &e->why);
    return rc;
}

/* The files of every rank exist. */
static void open_files(struct encode *e, int dirfd, int memoryfd)
{
    e->code = dt_node_data_open(&e->data, dirfd, memoryfd, &e->why);
    if (e->code == DT_SUCCESS && e->part &&
        e->data.disk.manifest.nfiles != e->part->files)
        e->code = dt_error_set(&e->why, DT_ERR_UNSUPPORTED,
                               "a node has files of another node, too");
    if (e->rail == 0 && writes(e))
        open_parity(e, dirfd, O_CREAT | O_EXCL);
}

/* All nodes of the set have opened their files. */
static void begin(struct encode *e, int dirfd)
{
    size_t longest = find_peers(e, e->ckpt->votes);
    dt_parity_init(&e->parity, e->ckpt->tag, e->ckpt->num_nodes, e->ckpt->node,
                   &e->layout, longest);
    if (e->rail < e->rails) {
        allocate(e);
        if (e->rail > 0 && writes(e))
            open_parity(e, dirfd, 0);
    }
}

/* An idle node only votes. */
static dt_result_t encode(struct encode *e, int dirfd, int memoryfd,
                          struct dt_error *err)
{
    bool idle = e->part && e->part->idle;
    if (!idle)
        open_files(e, dirfd, memoryfd);
    dt_result_t rc = agree(e, e->ckpt->votes, err);
    if (rc != DT_SUCCESS)
        return rc;
    if (!idle)
        begin(e, dirfd);
    rc = agree(e, e->ckpt->votes, err);
    if (rc == DT_SUCCESS && e->rail < e->rails) {
        rc = encode_runs(e, err);
        if (rc == DT_SUCCESS)
            rc = finish(e, err);
    }
    return rc == DT_SUCCESS && e->code != DT_SUCCESS
               ? dt_error_set(err, e->code, "%s", e->why.text)
               : rc;
}

static void clear(struct encode *e)
{
    dt_drain_stop(e->drain);
    if (e->fd >= 0)
        close(e->fd);
    dt_node_data_close(&e->data);
    free(e->peer);
    free(e->sum);
    free(e->request);
    free(e->piece);
    free(e->memory);
}

static dt_result_t protect(struct encode *e, int dirfd, int memoryfd,
                           struct dt_error *err)
{
    const struct dt_ckpt *ckpt = e->ckpt;
    if (!e->part || !e->part->idle) {
        dt_result_t rc = dt_erasure_layout(&ckpt->redundancy, ckpt->num_nodes,
                                           ckpt->node, &e->layout, err);
        if (rc != DT_SUCCESS)
            return rc;
        e->member = ckpt->node - e->layout.first;
        e->rail = dt_nodes_rail(ckpt);
        e->peer = calloc((size_t)e->layout.size, sizeof(*e->peer));
        if (!e->peer)
            no_memory(e);
    }
    dt_result_t rc = agree(e, ckpt->votes, err);
    if (rc == DT_SUCCESS)
        rc = encode(e, dirfd, memoryfd, err);
    clear(e);
    return rc;
}

dt_result_t dt_protect(struct dt_ckpt *ckpt, int dirfd, int memoryfd,
                       dt_result_t code, struct dt_error *err)
{
    if (ckpt->redundancy.m == 0)
        return code;
    struct encode e = {.ckpt = ckpt, .fd = -1, .code = code};
    if (code != DT_SUCCESS)
        e.why = *err;
    return protect(&e, dirfd, memoryfd, err);
}

dt_result_t dt_protect_lost(const struct dt_ckpt *saved, int dirfd,
                            const struct dt_protect_part *part,
                            dt_result_t code, struct dt_error *err)
{
    struct encode e = {.ckpt = saved, .part = part, .fd = -1, .code = code};
    if (code != DT_SUCCESS)
        e.why = *err;
    return protect(&e, dirfd, -1, err);
}
