/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* matching.h - the messages that come from one peer in the order in which they
 * were sent, and the receives that take them. A message whose receive has not
 * been posted yet is unexpected, and is kept until it is.
 *
 * One message is current: it comes in parts, each of which the transport writes
 * where dt_inbound_room says. */
#ifndef DT_TL_MATCHING_H
#define DT_TL_MATCHING_H

#include <stddef.h>
#include <stdint.h>

#include "tl/tl.h"

/* ---- requests in the order in which they were made ---- */

struct dt_tl_queue {
    struct dt_tl_req *first, *last;
};

static inline void dt_tl_queue_add(struct dt_tl_queue *queue,
                                   struct dt_tl_req *req)
{
    req->next = NULL;
    req->prev = queue->last;
    if (queue->last)
        queue->last->next = req;
    else
        queue->first = req;
    queue->last = req;
}

static inline void dt_tl_queue_remove(struct dt_tl_queue *queue,
                                      struct dt_tl_req *req)
{
    if (req->prev)
        req->prev->next = req->next;
    else
        queue->first = req->next;
    if (req->next)
        req->next->prev = req->prev;
    else
        queue->last = req->prev;
}

/* All of them fail with PROC_FAILED; the queue is empty then. */
void dt_tl_queue_fail(struct dt_tl_queue *queue);

/* ---- the messages of one peer ---- */

struct dt_unexpected; /* a message without a receive */

/* Free memory for unexpected messages, by the power of two of its size, shared
 * by the peers of a transport: repeated traffic allocates nothing. */
struct dt_unexpected_pool {
    struct dt_unexpected *bins[48];
};

void dt_unexpected_pool_free(struct dt_unexpected_pool *pool);

/* All zeros at first. */
struct dt_inbound {
    struct dt_tl_queue posted; /* receives */
    struct dt_unexpected *first, *last;
    size_t unexpected; /* bytes of these messages */
    /* where the current message goes; at most one is not NULL */
    struct dt_tl_req *receiving;
    struct dt_unexpected *keeping;
};

/* Post a receive; it may be complete at once. False: its message has *sent
 * bytes, which are not the expected ones; it stays posted. */
bool dt_inbound_post(struct dt_inbound *in, struct dt_unexpected_pool *pool,
                     struct dt_tl_req *req, size_t *sent);

/* A message begins, and becomes the current one. SUCCESS; NO_MEMORY;
 * INVALID_ARG: *req is the receive that expects another length, and stays
 * posted. */
dt_result_t dt_inbound_begin(struct dt_inbound *in,
                             struct dt_unexpected_pool *pool, uint64_t tag,
                             size_t len, struct dt_tl_req **req);

/* Is there a current message? */
static inline bool dt_inbound_current(const struct dt_inbound *in)
{
    return in->receiving || in->keeping;
}

/* Where the next bytes of the current message go, and how many are missing. */
void *dt_inbound_room(const struct dt_inbound *in, size_t *left);

/* So many bytes, at most those missing, were written there. True: that was the
 * last part, and the receive, if there is one, is complete. */
bool dt_inbound_wrote(struct dt_inbound *in, size_t len);

/* Fail all receives; unexpected messages stay. */
void dt_inbound_fail(struct dt_inbound *in);

/* Return the memory of unexpected messages. */
void dt_inbound_clear(struct dt_inbound *in, struct dt_unexpected_pool *pool);

#endif
