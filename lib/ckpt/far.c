/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* far.c - reading what another node has.
 *
 * Everybody tells everybody what it wants of it. Then, for each distance d, a
 * rank asks the one d above it and serves the one d below: each has one peer
 * to send to and one to receive from at a time, so memory is one piece, and no
 * rank is asked by many at once. */
#include "ckpt/far.h"

#include <stdlib.h>
#include <string.h>

#include "ckpt/vote.h"

#define PIECE ((size_t)8 << 20)

/* A piece of a file. Sent as it lies: whole 64-bit words. */
struct request {
    int64_t file;
    uint64_t offset, len;
};
#define WORDS (sizeof(struct request) / sizeof(int64_t))

struct far {
    const struct dt_source *source;
    int rank, size;
    /* [size]: how many requests I make of a rank and it makes of me, and where
     * they begin in asked and served; in words */
    size_t *asks, *asks_at, *serves, *serves_at;
    struct request *asked, *served;
    char **to; /* of each asked */
    struct dt_reader reader;
    unsigned char *piece;
    struct dt_vote *votes;
    dt_result_t code; /* what went wrong here */
    struct dt_error why;
};

static void no_memory(struct far *f)
{
    if (f->code == DT_SUCCESS)
        f->code = dt_error_set(&f->why, DT_ERR_NO_MEMORY, "out of memory");
}

/* How it goes on every rank. */
static dt_result_t vote(struct far *f, struct dt_error *err)
{
    struct dt_vote mine = {.code = f->code, .err = f->why};
    int who;
    dt_result_t rc = dt_vote_gather(dt_comm_world(), &mine, f->votes, err);
    return rc == DT_SUCCESS ? dt_vote_result(f->votes, f->size, &who, err) : rc;
}

/* Is it for another rank, and does it want anything? */
static bool is_far(const struct far *f, const struct dt_read *read)
{
    return read->len > 0 && f->source->holder[read->file] != f->rank;
}

static void offsets(const size_t *count, size_t *at, int n)
{
    for (int r = 0; r < n; r++)
        at[r] = r ? at[r - 1] + count[r - 1] : 0;
}

/* Requests, by holder and then in the order of the reads. */
static void ask(struct far *f, const struct dt_read *read, size_t n)
{
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        size_t pieces = (read[i].len + PIECE - 1) / PIECE;
        if (is_far(f, &read[i])) {
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
        if (!is_far(f, &read[i]))
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

/* Who wants what of me. */
static dt_result_t listen(struct far *f, struct dt_error *err)
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

/* Into f->piece. Whatever goes wrong, bytes are sent: the vote tells. */
static size_t prepare(struct far *f, const struct request *request)
{
    size_t len = request->len < PIECE ? request->len : PIECE;
    if (f->code == DT_SUCCESS)
        f->code = dt_reader_read(&f->reader, (int)request->file,
                                 request->offset, len, f->piece, &f->why);
    return len;
}

/* One piece from the rank above, one to the rank below, or only one. */
static dt_result_t exchange(struct far *f, const struct request *mine, char *to,
                            int above, const struct request *theirs, int below,
                            struct dt_error *err)
{
    dt_comm_t world = dt_comm_world();
    size_t len = theirs ? prepare(f, theirs) : 0;
    dt_result_t rc = dt_group_start();
    if (rc == DT_SUCCESS && theirs)
        rc = dt_send(f->piece, len, DT_DTYPE_U8, below, world, DT_STREAM_NONE);
    if (rc == DT_SUCCESS && mine)
        rc = dt_recv(to, mine->len, DT_DTYPE_U8, above, world, DT_STREAM_NONE);
    dt_result_t end = dt_group_end();
    return dt_vote_outcome(rc == DT_SUCCESS ? end : rc, err);
}

static dt_result_t move(struct far *f, struct dt_error *err)
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

dt_result_t dt_far_fetch(const struct dt_source *source,
                         const struct dt_read *read, size_t n, dt_result_t code,
                         const struct dt_error *why, struct dt_error *err)
{
    struct far f = {.source = source,
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
        rc = dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
        goto free_lists;
    }
    f.asks = lists;
    f.asks_at = lists + f.size;
    f.serves = lists + 2 * f.size;
    f.serves_at = lists + 3 * f.size;
    ask(&f, read, n);
    rc = listen(&f, err);
    if (rc == DT_SUCCESS)
        rc = move(&f, err);
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
