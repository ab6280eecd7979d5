/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* matching.c - the messages of one peer, and the receives that take them. */
#include "tl/matching.h"

#include <stdlib.h>
#include <string.h>

#define MIN_SHIFT 6

struct dt_unexpected {
    struct dt_unexpected *next;
    uint64_t tag; /* as sent */
    size_t len, done;
    unsigned bin;
    char data[];
};

static bool matches(uint64_t sent, uint64_t wanted)
{
    return !((sent ^ wanted) & ~DT_TAG_NOTICE);
}

void dt_tl_queue_fail(struct dt_tl_queue *queue)
{
    struct dt_tl_req *next;
    for (struct dt_tl_req *req = queue->first; req; req = next) {
        next = req->next;
        req->status = DT_ERR_PROC_FAILED;
    }
    *queue = (struct dt_tl_queue){0};
}

/* ---- unexpected messages ---- */

static struct dt_unexpected *get(struct dt_unexpected_pool *pool, uint64_t tag,
                                 size_t len)
{
    const unsigned bins = sizeof(pool->bins) / sizeof(pool->bins[0]);
    unsigned bin = 0;
    while (bin < bins && len > (size_t)1 << (bin + MIN_SHIFT))
        bin++;
    if (bin == bins)
        return NULL;
    struct dt_unexpected *unexpected = pool->bins[bin];
    if (unexpected)
        pool->bins[bin] = unexpected->next;
    else
        unexpected =
            malloc(sizeof(*unexpected) + ((size_t)1 << (bin + MIN_SHIFT)));
    if (unexpected)
        *unexpected =
            (struct dt_unexpected){.tag = tag, .len = len, .bin = bin};
    return unexpected;
}

static void put(struct dt_unexpected_pool *pool,
                struct dt_unexpected *unexpected)
{
    unexpected->next = pool->bins[unexpected->bin];
    pool->bins[unexpected->bin] = unexpected;
}

void dt_unexpected_pool_free(struct dt_unexpected_pool *pool)
{
    for (size_t i = 0; i < sizeof(pool->bins) / sizeof(pool->bins[0]); i++)
        while (pool->bins[i]) {
            struct dt_unexpected *unexpected = pool->bins[i];
            pool->bins[i] = unexpected->next;
            free(unexpected);
        }
}

/* Remove the first that matches; NULL: none. */
static struct dt_unexpected *take(struct dt_inbound *in, uint64_t tag)
{
    struct dt_unexpected *previous = NULL, *unexpected = in->first;
    while (unexpected && !matches(unexpected->tag, tag)) {
        previous = unexpected;
        unexpected = unexpected->next;
    }
    if (!unexpected)
        return NULL;
    if (previous)
        previous->next = unexpected->next;
    else
        in->first = unexpected->next;
    if (in->last == unexpected)
        in->last = previous;
    in->unexpected -= unexpected->len;
    return unexpected;
}

void dt_inbound_clear(struct dt_inbound *in, struct dt_unexpected_pool *pool)
{
    for (struct dt_unexpected *unexpected; (unexpected = in->first);) {
        in->first = unexpected->next;
        put(pool, unexpected);
    }
    in->last = in->keeping = NULL;
    in->unexpected = 0;
}

/* ---- matching ---- */

bool dt_inbound_post(struct dt_inbound *in, struct dt_unexpected_pool *pool,
                     struct dt_tl_req *req, size_t *sent)
{
    struct dt_unexpected *unexpected = take(in, req->tag);
    if (!unexpected) {
        dt_tl_queue_add(&in->posted, req);
        return true;
    }
    req->tag = unexpected->tag;
    bool fits = unexpected->len == req->len;
    *sent = unexpected->len;
    if (!fits) {
        dt_tl_queue_add(&in->posted, req);
    } else {
        memcpy(req->buf, unexpected->data, unexpected->done);
        req->done = unexpected->done;
        if (req->done == req->len)
            req->status = DT_SUCCESS;
        else
            in->receiving = req; /* the rest goes straight to it */
    }
    if (in->keeping == unexpected)
        in->keeping = NULL;
    put(pool, unexpected);
    return fits;
}

dt_result_t dt_inbound_begin(struct dt_inbound *in,
                             struct dt_unexpected_pool *pool, uint64_t tag,
                             size_t len, struct dt_tl_req **req)
{
    struct dt_tl_req *posted = in->posted.first;
    while (posted && !matches(tag, posted->tag))
        posted = posted->next;
    if (posted && posted->len != len) {
        *req = posted;
        return DT_ERR_INVALID_ARG;
    }
    if (posted) {
        dt_tl_queue_remove(&in->posted, posted);
        posted->tag = tag;
        in->receiving = posted;
        return DT_SUCCESS;
    }
    struct dt_unexpected *unexpected = get(pool, tag, len);
    if (!unexpected)
        return DT_ERR_NO_MEMORY;
    unexpected->next = NULL;
    if (in->last)
        in->last->next = unexpected;
    else
        in->first = unexpected;
    in->last = in->keeping = unexpected;
    in->unexpected += len;
    return DT_SUCCESS;
}

void *dt_inbound_room(const struct dt_inbound *in, size_t *left)
{
    const struct dt_tl_req *req = in->receiving;
    struct dt_unexpected *unexpected = in->keeping;
    *left = req ? req->len - req->done : unexpected->len - unexpected->done;
    return req ? req->buf + req->done : unexpected->data + unexpected->done;
}

bool dt_inbound_wrote(struct dt_inbound *in, size_t len)
{
    struct dt_tl_req *req = in->receiving;
    size_t *done = req ? &req->done : &in->keeping->done;
    *done += len;
    if (*done < (req ? req->len : in->keeping->len))
        return false;
    in->receiving = NULL;
    in->keeping = NULL;
    if (req)
        req->status = DT_SUCCESS;
    return true;
}

void dt_inbound_fail(struct dt_inbound *in)
{
    dt_tl_queue_fail(&in->posted);
    if (in->receiving)
        in->receiving->status = DT_ERR_PROC_FAILED;
    in->receiving = NULL;
}
