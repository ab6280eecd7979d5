/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* encode.c - writing parity.
 *
 * All stripes of a group are made at once, run by run of a few blocks. Of
 * stripe s member s gets the data of the k others, makes the m pieces of
 * parity, keeps the first and sends the rest to the members after it. The runs
 * are dealt out to the local ranks: the first rank of each node together, the
 * second together, and so on, for as many as the smallest node has.
 *
 *   the thread that saves   data of run i + 1 goes out -> data of run i is here
 *                           -> its parity is made, goes out
 *                           -> parity of run i - 1 is here
 *   another                 parity of run i - 1 to the file
 *
 * Runs take turns with two sets of buffers. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/checksum.h"
#include "ckpt/drain.h"
#include "ckpt/nodes.h"
#include "ckpt/own.h"
#include "ckpt/parity.h"
#include "ckpt/protect.h"

#define MEMORY_MAX ((size_t)64 << 20) /* of two runs, if blocks allow it */

/* The same bytes of every stripe: where in each piece, */
struct run {
    size_t at, len;
};

/* and their buffers, with what is under way. */
struct set {
    unsigned char **mine, **theirs, **made, **kept; /* k, k, m, m */
    dt_request_t *data, *parity;                    /* 2k, 2m */
    int ndata, nparity;
};

struct encode {
    struct dt_ckpt *ckpt;
    struct dt_redundancy_group group;
    struct dt_parity parity;
    int member; /* this node in the group */
    int lane, lanes;
    int *peer; /* [group.size]: the rank of my lane there */
    struct dt_own own;
    int fd;      /* the file of parity, or -1 */
    size_t room; /* the most that a run has, bytes */
    size_t runs; /* of this lane */
    struct set set[2];
    unsigned char *memory, **piece; /* of both sets */
    dt_request_t *request;          /* the same */
    struct dt_drain *drain;         /* it writes this run: */
    size_t writing;
    dt_result_t written; /* how that went */
    struct dt_error unwritten;
    uint64_t *sum;    /* [m][blocks] */
    dt_result_t code; /* what went wrong here */
    struct dt_error why;
};

static void note(struct encode *e, dt_result_t code, const char *what)
{
    if (e->code == DT_SUCCESS)
        e->code = dt_error_set(&e->why, code, "%s: %s", what, strerror(errno));
}

static void no_memory(struct encode *e)
{
    errno = ENOMEM;
    note(e, DT_ERR_NO_MEMORY, "parity");
}

static void open_parity(struct encode *e, int dirfd, int flags)
{
    char name[DT_PARITY_NAME];
    dt_parity_name(name, e->ckpt->num_nodes, e->ckpt->node);
    if (e->code != DT_SUCCESS)
        return;
    e->fd = openat(dirfd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0666);
    if (e->fd < 0)
        note(e, dt_file_result(errno), name);
}

/* ---- all together ---- */

/* Whose code is not SUCCESS, everybody gets it. votes[] keep the bytes. */
static dt_result_t agree(struct encode *e, struct dt_vote *votes,
                         struct dt_error *err)
{
    struct dt_vote mine = {
        .code = e->code, .bytes = e->own.span.bytes, .err = e->why};
    int who;
    dt_result_t rc = dt_vote_gather(e->ckpt->comm, &mine, votes, err);
    return rc == DT_SUCCESS ? dt_vote_result(votes, e->ckpt->size, &who, err)
                            : rc;
}

/* The rank of my lane on each node of the group, and the longest node. */
static size_t find_peers(struct encode *e, const struct dt_vote *votes)
{
    size_t longest = 0;
    for (int i = 0; i < e->group.size; i++) {
        int node = e->group.first + i, n = dt_node_ranks(e->ckpt, node);
        e->peer[i] = dt_node_rank_at(e->ckpt, node, e->lane);
        size_t bytes = votes[dt_node_rank_at(e->ckpt, node, 0)].bytes;
        longest = bytes > longest ? bytes : longest;
        if (i == 0 || n < e->lanes)
            e->lanes = n;
    }
    return longest;
}

/* ---- runs ---- */

static void divide(struct encode *e, unsigned char *memory)
{
    int k = e->group.k, m = e->group.m;
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
    size_t at = (i * (size_t)e->lanes + (size_t)e->lane) * e->room;
    size_t left = e->parity.segment - at;
    return (struct run){at, left < e->room ? left : e->room};
}

static void allocate(struct encode *e)
{
    size_t m = (size_t)e->group.m, n = 4 * (size_t)e->group.size;
    size_t block = e->parity.block, blocks = MEMORY_MAX / n / block;
    size_t all, lane = (size_t)e->lane, lanes = (size_t)e->lanes;
    e->room = blocks > 1 ? blocks * block : block;
    if (e->parity.segment < e->room)
        e->room = e->parity.segment;
    all = e->room ? (e->parity.segment + e->room - 1) / e->room : 0;
    e->runs = all > lane ? (all - lane + lanes - 1) / lanes : 0;
    e->sum = calloc(2 * m * dt_parity_blocks(&e->parity) + 1, sizeof(*e->sum));
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

static const unsigned char *kept_piece(const struct encode *e, size_t i, int p)
{
    const struct set *set = &e->set[i % 2];
    return p == 0 ? set->made[0] : set->kept[p];
}

static void write_run(void *arg)
{
    struct encode *e = arg;
    struct run run = run_at(e, e->writing);
    for (int p = 0; p < e->group.m && e->written == DT_SUCCESS; p++)
        e->written = dt_parity_write(e->fd, &e->parity, p, run.at,
                                     kept_piece(e, e->writing, p), run.len,
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
    if (e->code == DT_SUCCESS)
        dt_drain_run(e->drain, write_run, e);
}

static void sum_piece(struct encode *e, size_t i, int p)
{
    struct run run = run_at(e, i);
    size_t block = e->parity.block;
    uint64_t *sum = e->sum + (size_t)p * dt_parity_blocks(&e->parity);
    for (size_t at = 0; at < run.len; at += block)
        sum[(run.at + at) / block] =
            dt_checksum(kept_piece(e, i, p) + at,
                        run.len - at < block ? run.len - at : block);
}

/* ---- between the nodes ----
 *
 * Every rank begins the data of run i + 1 before the parity of run i, so that
 * what two ranks send each other arrives in the order in which it is waited
 * for. */

static dt_result_t give(struct encode *e, const void *data, size_t len,
                        int member, dt_request_t *request)
{
    return dt_isend(data, len, DT_DTYPE_U8, e->peer[member % e->group.size],
                    e->ckpt->comm, DT_STREAM_NONE, request);
}

static dt_result_t take(struct encode *e, void *data, size_t len, int member,
                        dt_request_t *request)
{
    return dt_irecv(data, len, DT_DTYPE_U8, e->peer[member % e->group.size],
                    e->ckpt->comm, DT_STREAM_NONE, request);
}

/* All of them, also after an error: it may be only one of them. */
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

/* My data to who makes parity of it, that of the others to me. What goes wrong
 * here is noted, the others get their bytes. */
static dt_result_t begin_data(struct encode *e, size_t i, struct dt_error *err)
{
    struct set *set = &e->set[i % 2];
    struct run run = run_at(e, i);
    int k = e->group.k, m = e->group.m, *n = &set->ndata;
    dt_result_t rc = DT_SUCCESS;
    for (int j = 0; j < k && rc == DT_SUCCESS; j++) {
        rc =
            take(e, set->theirs[j], run.len, e->member + m + j, &set->data[*n]);
        *n += rc == DT_SUCCESS;
    }
    for (int j = 0; j < k && rc == DT_SUCCESS; j++) {
        size_t from = (size_t)j * e->parity.segment + run.at;
        const void *mine = dt_own_look(&e->own, from, run.len);
        if (!mine && e->code == DT_SUCCESS)
            e->code =
                dt_own_read(&e->own, set->mine[j], from, run.len, &e->why);
        rc =
            give(e, mine ? mine : set->mine[j], run.len,
                 dt_redundancy_stripe(&e->group, e->member, j), &set->data[*n]);
        *n += rc == DT_SUCCESS;
    }
    return dt_vote_outcome(rc, err);
}

/* What I made to who keeps it, what I keep to me. */
static dt_result_t begin_parity(struct encode *e, size_t i,
                                struct dt_error *err)
{
    struct set *set = &e->set[i % 2];
    size_t len = run_at(e, i).len;
    int m = e->group.m, *n = &set->nparity;
    dt_result_t rc = DT_SUCCESS;
    for (int p = 1; p < m && rc == DT_SUCCESS; p++) {
        rc = take(e, set->kept[p], len, e->member - p + e->group.size,
                  &set->parity[*n]);
        *n += rc == DT_SUCCESS;
    }
    for (int p = 1; p < m && rc == DT_SUCCESS; p++) {
        rc = give(e, set->made[p], len, e->member + p, &set->parity[*n]);
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
        e->code = dt_redundancy_encode(
            e->group.k, e->group.m, run_at(e, i).len,
            (const unsigned char *const *)set->theirs, set->made, &e->why);
    return begin_parity(e, i, err);
}

static dt_result_t keep_run(struct encode *e, size_t i, struct dt_error *err)
{
    struct set *set = &e->set[i % 2];
    dt_result_t rc = end_all(set->parity, &set->nparity, err);
    for (int p = 0; p < e->group.m && rc == DT_SUCCESS; p++)
        sum_piece(e, i, p);
    end_writing(e);
    if (rc == DT_SUCCESS)
        begin_writing(e, i);
    return rc;
}

/* Only what the communication comes to. */
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
    for (int i = 0; i < 2; i++) { /* what is left after an error */
        end_all(e->set[i].data, &e->set[i].ndata, &ignored);
        end_all(e->set[i].parity, &e->set[i].nparity, &ignored);
    }
    end_writing(e);
    return rc;
}

/* The sums of all lanes to the first, which completes the file. */
static dt_result_t finish(struct encode *e, struct dt_error *err)
{
    size_t n = (size_t)e->group.m * dt_parity_blocks(&e->parity);
    dt_comm_t comm = e->ckpt->comm;
    if (e->lane > 0)
        return dt_vote_outcome(
            dt_send(e->sum, n, DT_DTYPE_I64,
                    dt_node_rank_at(e->ckpt, e->ckpt->node, 0), comm,
                    DT_STREAM_NONE),
            err);
    uint64_t *more = e->sum + n;
    dt_result_t rc = DT_SUCCESS;
    for (int lane = 1; lane < e->lanes && rc == DT_SUCCESS; lane++) {
        int peer = dt_node_rank_at(e->ckpt, e->ckpt->node, lane);
        rc = dt_vote_outcome(
            dt_recv(more, n, DT_DTYPE_I64, peer, comm, DT_STREAM_NONE), err);
        for (size_t i = 0; rc == DT_SUCCESS && i < n; i++)
            e->sum[i] |= more[i]; /* of another's blocks it has zeros */
    }
    if (rc == DT_SUCCESS && e->code == DT_SUCCESS)
        e->code = dt_parity_finish(e->fd, &e->parity, e->sum, &e->why);
    return rc;
}

/* From when every rank's files are there. */
static dt_result_t encode(struct encode *e, int dirfd, int memoryfd,
                          struct dt_error *err)
{
    struct dt_vote *votes = e->ckpt->votes;
    e->code = dt_own_open(&e->own, dirfd, memoryfd, &e->why);
    if (e->lane == 0)
        open_parity(e, dirfd, O_CREAT | O_EXCL);
    dt_result_t rc = agree(e, votes, err);
    if (rc != DT_SUCCESS)
        return rc;
    size_t longest = find_peers(e, votes);
    dt_parity_init(&e->parity, e->ckpt->tag, e->ckpt->num_nodes, e->ckpt->node,
                   &e->group, longest);
    if (e->lane < e->lanes) {
        allocate(e);
        if (e->lane > 0)
            open_parity(e, dirfd, 0);
    }
    rc = agree(e, votes, err);
    if (rc == DT_SUCCESS && e->lane < e->lanes) {
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
    dt_own_close(&e->own);
    free(e->peer);
    free(e->sum);
    free(e->request);
    free(e->piece);
    free(e->memory);
}

dt_result_t dt_protect(struct dt_ckpt *ckpt, int dirfd, int memoryfd,
                       dt_result_t code, struct dt_error *err)
{
    if (ckpt->redundancy.m == 0)
        return code;
    struct encode e = {.ckpt = ckpt, .fd = -1, .code = code};
    if (code != DT_SUCCESS)
        e.why = *err;
    dt_result_t rc = dt_redundancy_group(&ckpt->redundancy, ckpt->num_nodes,
                                         ckpt->node, &e.group, err);
    if (rc != DT_SUCCESS)
        return rc;
    e.member = ckpt->node - e.group.first;
    e.lane = dt_node_lane(ckpt);
    e.peer = calloc((size_t)e.group.size, sizeof(*e.peer));
    if (!e.peer)
        no_memory(&e);
    rc = agree(&e, ckpt->votes, err);
    if (rc == DT_SUCCESS)
        rc = encode(&e, dirfd, memoryfd, err);
    clear(&e);
    return rc;
}
