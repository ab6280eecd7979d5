/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fetch.c - reading the files of a checkpoint, on this node or from another.
 *
 * The ranks first exchange their requests for what is remote. Then, for each
 * distance d, a rank receives from the one d above it and sends to the one d
 * below: each has one peer to send to and one to receive from at a time, so one
 * piece of memory is enough, and no rank has to serve many at once. */
#include "ckpt/load/fetch.h"

#include <stdlib.h>
#include <string.h>

#include "ckpt/vote.h"

#define PIECE ((size_t)8 << 20)

/* A piece of a file. It is sent as it is in memory, as whole 64-bit words. */
struct request {
    int64_t file;
    uint64_t offset, len;
};
#define WORDS (sizeof(struct request) / sizeof(int64_t))

struct fetch {
    const struct dt_source *source;
    int rank, size;
    /* [size]: the requests to a rank and from it, and where they begin in asked
     * and served; in 64-bit words */
    size_t *asks, *asks_at, *serves, *serves_at;
    struct request *asked, *served;
    char **to; /* where the bytes of each request in asked go */
    struct dt_reader reader;
    unsigned char *piece;
    struct dt_vote *votes;
    dt_result_t code; /* the first error of this rank */
    struct dt_error why;
};

static void no_memory(struct fetch *f)
{
    if (f->code == DT_SUCCESS)
        f->code = dt_no_memory(&f->why);
}

static dt_result_t vote(struct fetch *f, struct dt_error *err)
{
    struct dt_vote mine = {.code = f->code, .err = f->why};
    return dt_vote_agree(dt_comm_world(), &mine, f->votes, f->size, err);
}

/* Is it a read of at least a byte that another rank holds? */
static bool is_remote(const struct fetch *f, const struct dt_read *read)
{
    return read->len > 0 && f->source->holder[read->file] != f->rank;
}

static void offsets(const size_t *count, size_t *at, int n)
{
    for (int r = 0; r < n; r++)
        at[r] = r ? at[r - 1] + count[r - 1] : 0;
}

/* Make the requests, by holder and then in the order of the reads. */
static void make_requests(struct fetch *f, const struct dt_read *read, size_t n)
{
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        size_t pieces = (read[i].len + PIECE - 1) / PIECE;
        if (is_remote(f, &read[i])) {
            f->asks[f->source->holder[read[i].file]] += pieces * WORDS;
            total += pieces;
        }
    }
    offsets(f->asks, f->asks_at, f->size);
    f->asked = calloc(total + 1, sizeof(*f->asked));
    f->to = calloc(total + 1, sizeof(*f->to));
    if (!f->asked || !f->to) {
        memset(f->asks, 0, (size_t)f->size * sizeof(*f->asks));
        offsets(f->asks, f->asks_at, f->size);
        no_memory(f);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (!is_remote(f, &read[i]))
            continue;
        size_t *next = &f->asks_at[f->source->holder[read[i].file]];
        for (size_t at = 0; at < read[i].len; at += PIECE, *next += WORDS) {
            size_t left = read[i].len - at;
            f->asked[*next / WORDS] = (struct request){
                read[i].file, read[i].offset + at, left < PIECE ? left : PIECE};
            f->to[*next / WORDS] = (char *)read[i].to + at;
        }
    }
    offsets(f->asks, f->asks_at, f->size);
}

/* Exchange the requests: an alltoall of their numbers, then of the requests. */
static dt_result_t exchange_requests(struct fetch *f, struct dt_error *err)
{
    dt_comm_t world = dt_comm_world();
    _Static_assert(sizeof(size_t) == sizeof(int64_t), "64-bit");
    dt_result_t rc = dt_vote_outcome(
        dt_alltoall(f->asks, f->serves, 1, DT_DTYPE_I64, world, DT_STREAM_NONE),
        err);
    if (rc != DT_SUCCESS)
        return rc;
    size_t total = 0;
    for (int r = 0; r < f->size; r++)
        total += f->serves[r] / WORDS;
    offsets(f->serves, f->serves_at, f->size);
    f->served = calloc(total + 1, sizeof(*f->served));
    if (!f->served)
        no_memory(f);
    rc = vote(f, err);
    if (rc != DT_SUCCESS)
        return rc;
    return dt_vote_outcome(dt_alltoallv(f->asked, f->asks, f->asks_at,
                                        f->served, f->serves, f->serves_at,
                                        DT_DTYPE_I64, world, DT_STREAM_NONE),
                           err);
}

/* Read what a request asks for into f->piece. After an error some bytes are
 * sent all the same, since the peer waits for them; the vote reports the error.
 */
static size_t read_piece(struct fetch *f, const struct request *request)
{
    size_t len = request->len < PIECE ? request->len : PIECE;
    if (f->code == DT_SUCCESS)
        f->code = dt_reader_read(&f->reader, (int)request->file,
                                 request->offset, len, f->piece, &f->why);
    return len;
}

/* Receive one piece from the rank above, send one to the rank below, or only
 * one of both. */
static dt_result_t exchange(struct fetch *f, const struct request *mine,
                            char *to, int above, const struct request *theirs,
                            int below, struct dt_error *err)
{
    dt_comm_t world = dt_comm_world();
    size_t len = theirs ? read_piece(f, theirs) : 0;
    dt_result_t rc = dt_group_start();
    if (rc == DT_SUCCESS && theirs)
        rc = dt_send(f->piece, len, DT_DTYPE_U8, below, world, DT_STREAM_NONE);
    if (rc == DT_SUCCESS && mine)
        rc = dt_recv(to, mine->len, DT_DTYPE_U8, above, world, DT_STREAM_NONE);
    dt_result_t end = dt_group_end();
    return dt_vote_outcome(rc == DT_SUCCESS ? end : rc, err);
}

static dt_result_t exchange_pieces(struct fetch *f, struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    for (int d = 1; d < f->size; d++) {
        int above = (f->rank + d) % f->size;
        int below = (f->rank - d + f->size) % f->size;
        size_t asks = f->asks[above] / WORDS, serves = f->serves[below] / WORDS;
        size_t asked = f->asks_at[above] / WORDS;
        size_t served = f->serves_at[below] / WORDS;
        for (size_t i = 0; (i < asks || i < serves) && rc == DT_SUCCESS; i++)
            rc = exchange(f, i < asks ? &f->asked[asked + i] : NULL,
                          i < asks ? f->to[asked + i] : NULL, above,
                          i < serves ? &f->served[served + i] : NULL, below,
                          err);
    }
    return rc;
}

static dt_result_t fetch_remote(const struct dt_source *source,
                                const struct dt_read *read, size_t n,
                                dt_result_t code, const struct dt_error *why,
                                struct dt_error *err)
{
    struct fetch f = {.source = source,
                      .rank = dt_rank(),
                      .size = dt_size(),
                      .reader = {.source = source, .fd = -1},
                      .code = code,
                      .why = *why};
    size_t *lists = calloc(4 * (size_t)f.size, sizeof(*lists));
    f.votes = calloc((size_t)f.size, sizeof(*f.votes));
    f.piece = calloc(1, PIECE);
    dt_result_t rc = DT_SUCCESS;
    if (!lists || !f.votes || !f.piece) {
        rc = dt_no_memory(err);
        goto free_lists;
    }
    f.asks = lists;
    f.asks_at = lists + f.size;
    f.serves = lists + 2 * f.size;
    f.serves_at = lists + 3 * f.size;
    make_requests(&f, read, n);
    rc = exchange_requests(&f, err);
    if (rc == DT_SUCCESS)
        rc = exchange_pieces(&f, err);
    if (rc == DT_SUCCESS)
        rc = vote(&f, err);
    dt_reader_close(&f.reader);
    free(f.served);
    free(f.asked);
    free(f.to);
free_lists:
    free(f.piece);
    free(f.votes);
    free(lists);
    return rc;
}

dt_result_t dt_fetch(const struct dt_source *source, const struct dt_read *read,
                     size_t n, struct dt_error *err)
{
    struct dt_reader reader = {.source = source, .fd = -1};
    struct dt_error why = {0};
    dt_result_t rc = DT_SUCCESS;
    int rank = source->shared ? 0 : dt_rank();
    for (size_t i = 0; i < n && rc == DT_SUCCESS; i++)
        if (source->shared || source->holder[read[i].file] == rank)
            rc = dt_reader_read(&reader, read[i].file, read[i].offset,
                                read[i].len, read[i].to, &why);
    dt_reader_close(&reader);
    if (!source->shared)
        return fetch_remote(source, read, n, rc, &why, err);
    return rc == DT_SUCCESS ? rc : dt_error_set(err, rc, "%s", why.text);
}
