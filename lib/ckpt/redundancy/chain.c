/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* chain.c - rebuilding files from blocks that many ranks have.
 *
 * A lost block is a sum of k others, each times a factor. The ranks that have
 * those form a chain: each receives the sum so far from the rank before, adds
 * its own blocks, and sends it on; the worker is at the end. So the bytes cross
 * each link once, not k times the link of the worker (R. Li and others, Repair
 * Pipelining for Erasure-Coded Storage, 2017).
 *
 * A queue rebuilds its files chunk by chunk; number i begins in turn i. What
 * each rank does, and when, follows from the plan:
 *
 *   turn t + 2   the worker, at the end of the chain
 *   turn t       the rank before it: its message travels while it is at t + 1
 *
 * In a turn a rank does its parts of all queues, in order of chunk and queue.
 * So two ranks send and receive in the same order, and no rank waits for
 * something that only a later rank could do: whatever the last rank of all
 * waits for is there or on its way. */
#include "ckpt/redundancy/chain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "ckpt/vote.h"

#define HOP       2 /* turns from rank to rank */
#define CHAIN_MAX 256

/* The part of this rank in one chunk. */
struct link {
    size_t turn;       /* when, */
    size_t from, len;  /* bytes of the member's span; len 0: unused */
    int item;          /* of this item */
    int before, after; /* ranks, or -1 at the ends of the chain */
    unsigned char *sum;
    dt_request_t request;
};

struct queue {
    int number;
    int item;    /* under way; the number of items: all are done */
    size_t from; /* where its next chunk begins */
    struct dt_reader reader;
    struct dt_cut known; /* the cut that row is for */
    bool is_known;
    unsigned char row[255];
};

struct dt_chain {
    const struct dt_plan *plan;
    const struct dt_source *source;
    int rank;
    int queues; /* in which this rank may have a part */
    struct queue *queue;
    size_t depth;      /* turns until a chunk is complete on all ranks */
    struct link *link; /* [queues][depth] */
    size_t live;       /* links in use */
    unsigned char *memory, *block; /* of all links; what was read */
    unsigned char **spare;         /* chunks of memory that are free */
    size_t spares;
    struct dt_cut cut; /* the one at hand */
    dt_result_t code;  /* the first error of this rank */
    struct dt_error why;
};

/* ---- the chain of a chunk ---- */

static const struct dt_redundancy_set *set_of(const struct dt_chain *c,
                                              int item)
{
    return &c->plan->set[c->plan->item[item].set];
}

/* Set c->cut to a chunk, of which the plan knows that it can be rebuilt. */
static void set_cut(struct dt_chain *c, int item, size_t from)
{
    const struct dt_rebuild_item *j = &c->plan->item[item];
    dt_redundancy_set_cut(set_of(c, item), j->member, from, j->end,
                          c->plan->chunk, &c->cut);
}

/* The ranks of the chain for c->cut, the worker last. */
static int make_chain(const struct dt_chain *c, int item, int who[CHAIN_MAX])
{
    int n = 0, worker = c->plan->item[item].worker;
    for (int i = 0; i < set_of(c, item)->layout.k; i++) {
        int holder = c->cut.use[i].holder, seen = 0;
        while (seen < n && who[seen] != holder)
            seen++;
        if (seen == n && holder >= 0 && holder != worker)
            who[n++] = holder;
    }
    who[n++] = worker;
    return n;
}

static void next_item(const struct dt_chain *c, struct queue *queue, int item)
{
    const struct dt_plan *plan = c->plan;
    while (item < plan->items &&
           (plan->item[item].queue != queue->number ||
            plan->item[item].from == plan->item[item].end))
        item++;
    queue->item = item;
    queue->from = item < plan->items ? plan->item[item].from : 0;
}

/* Begin the next chunk of a queue. */
static void begin_chunk(struct dt_chain *c, int l, size_t turn)
{
    struct queue *queue = &c->queue[l];
    int who[CHAIN_MAX], item = queue->item, at = 0;
    if (item == c->plan->items)
        return;
    size_t from = queue->from;
    set_cut(c, item, from);
    queue->from += c->cut.len;
    if (queue->from == c->plan->item[item].end)
        next_item(c, queue, item + 1);
    int n = make_chain(c, item, who);
    while (at < n && who[at] != c->rank)
        at++;
    if (at == n)
        return;
    int distance = set_of(c, item)->layout.k - (n - 1 - at);
    c->link[(size_t)l * c->depth + turn % c->depth] = (struct link){
        .turn = turn + HOP + HOP * (size_t)distance,
        .from = from,
        .len = c->cut.len,
        .item = item,
        .before = at > 0 ? who[at - 1] : -1,
        .after = at < n - 1 ? who[at + 1] : -1,
    };
    c->live++;
}

/* Call fn for all links of a turn. */
static dt_result_t each(struct dt_chain *c, size_t turn,
                        dt_result_t (*fn)(struct dt_chain *, struct queue *,
                                          struct link *))
{
    dt_result_t rc = DT_SUCCESS;
    size_t first = turn < c->depth ? 0 : turn - c->depth;
    for (size_t i = first; i < turn; i++)
        for (int l = 0; l < c->queues && rc == DT_SUCCESS; l++) {
            struct link *link = &c->link[(size_t)l * c->depth + i % c->depth];
            if (link->len > 0 && link->turn == turn)
                rc = fn(c, &c->queue[l], link);
        }
    return rc;
}

/* ---- a block ---- */

static void keep_error(struct dt_chain *c, dt_result_t code, const char *what)
{
    if (c->code == DT_SUCCESS)
        c->code = dt_error_set(&c->why, code, "%s: %s", what, strerror(errno));
}

/* Have the kernel read in advance what the link will need. */
static dt_result_t prefetch(struct dt_chain *c, struct queue *queue,
                            struct link *link)
{
    set_cut(c, link->item, link->from);
    for (int i = 0; i < set_of(c, link->item)->layout.k; i++) {
        const struct dt_cut_block *p = &c->cut.use[i];
        char none;
        if (p->holder != c->rank)
            continue;
        int fd = p->file < 0 ? c->plan->fd[p->node]
                 : dt_reader_read(&queue->reader, p->file, p->offset, 0, &none,
                                  NULL) == DT_SUCCESS
                     ? queue->reader.fd
                     : -1;
        posix_fadvise(fd, (off_t)p->offset, (off_t)link->len,
                      POSIX_FADV_WILLNEED);
    }
    return DT_SUCCESS;
}

static void read_block(struct dt_chain *c, struct queue *queue,
                       const struct dt_cut_block *p, unsigned char *to)
{
    size_t len = c->cut.len;
    if (c->code != DT_SUCCESS)
        return;
    if (p->file >= 0) {
        c->code = dt_reader_read(&queue->reader, p->file, p->offset, len, to,
                                 &c->why);
        return;
    }
    errno = EIO; /* it ends too early */
    if (dt_file_read(c->plan->fd[p->node], to, len, (off_t)p->offset) !=
        (ssize_t)len)
        keep_error(c, DT_ERR_CORRUPT, "parity");
}

/* The factors of the blocks in c->cut. */
static const unsigned char *find_row(struct dt_chain *c, struct queue *queue,
                                     int item)
{
    const struct dt_redundancy_set *set = set_of(c, item);
    bool same = queue->is_known && queue->known.wanted == c->cut.wanted;
    for (int i = 0; i < set->layout.k && same; i++)
        same = queue->known.use[i].number == c->cut.use[i].number;
    if (same)
        return queue->row;
    struct dt_error why = {0};
    dt_result_t rc = dt_redundancy_set_row(set, &c->cut, queue->row, &why);
    queue->known = c->cut;
    queue->is_known = rc == DT_SUCCESS;
    if (rc != DT_SUCCESS && c->code == DT_SUCCESS)
        c->code = dt_error_set(&c->why, rc, "%s", why.text);
    return queue->row;
}

/* Add the blocks that this rank has. */
static void add_blocks(struct dt_chain *c, struct queue *queue,
                       struct link *link)
{
    bool begun = link->before >= 0;
    for (int i = 0; i < set_of(c, link->item)->layout.k; i++) {
        const struct dt_cut_block *p = &c->cut.use[i];
        if (p->holder != c->rank)
            continue;
        unsigned char factor = find_row(c, queue, link->item)[i];
        if (!begun && factor == 1) {
            read_block(c, queue, p, link->sum);
        } else {
            if (!begun)
                memset(link->sum, 0, link->len);
            read_block(c, queue, p, c->block);
            dt_erasure_add(link->sum, factor, c->block, link->len);
        }
        begun = true;
    }
    if (!begun) /* of nothing but zeros */
        memset(link->sum, 0, link->len);
}

/* ---- a turn ---- */

static void free_link(struct dt_chain *c, struct link *link)
{
    c->spare[c->spares++] = link->sum;
    link->len = 0;
    c->live--;
}

static dt_result_t begin_receiving(struct dt_chain *c, struct queue *queue,
                                   struct link *link)
{
    (void)queue;
    link->sum = c->spare[--c->spares];
    if (link->before < 0)
        return DT_SUCCESS;
    return dt_irecv(link->sum, link->len, DT_DTYPE_U8, link->before,
                    dt_comm_world(), DT_STREAM_NONE, &link->request);
}

/* After an error of this rank the next one gets some bytes all the same, since
 * it waits for them; the vote reports the error. */
static dt_result_t work(struct dt_chain *c, struct queue *queue,
                        struct link *link)
{
    const struct dt_rebuild_item *item = &c->plan->item[link->item];
    dt_result_t rc = dt_wait(&link->request);
    if (rc != DT_SUCCESS)
        return rc;
    set_cut(c, link->item, link->from);
    add_blocks(c, queue, link);
    if (link->after >= 0)
        return dt_isend(link->sum, link->len, DT_DTYPE_U8, link->after,
                        dt_comm_world(), DT_STREAM_NONE, &link->request);
    if (c->code == DT_SUCCESS && dt_file_write(item->fd, link->sum, link->len))
        keep_error(c, dt_file_result(errno),
                   c->source->manifest.file[item->file].name);
    dt_verify_add(item->verify, link->sum, link->len);
    free_link(c, link);
    return DT_SUCCESS;
}

static dt_result_t end_sending(struct dt_chain *c, struct queue *queue,
                               struct link *link)
{
    (void)queue;
    dt_result_t rc = dt_wait(&link->request);
    if (rc == DT_SUCCESS)
        free_link(c, link);
    return rc;
}

static dt_result_t take_turn(struct dt_chain *c, size_t turn)
{
    dt_result_t rc = turn < HOP ? DT_SUCCESS : each(c, turn - HOP, end_sending);
    for (int l = 0; l < c->queues; l++)
        begin_chunk(c, l, turn);
    if (rc == DT_SUCCESS)
        rc = each(c, turn + HOP, prefetch);
    if (rc == DT_SUCCESS)
        rc = each(c, turn + 1, begin_receiving);
    return rc == DT_SUCCESS ? each(c, turn, work) : rc;
}

/* ---- all of it ---- */

static bool is_over(const struct dt_chain *c)
{
    for (int l = 0; l < c->queues; l++)
        if (c->queue[l].item < c->plan->items)
            return false;
    return c->live == 0;
}

dt_result_t dt_chain_run(struct dt_chain *c, dt_result_t *code,
                         struct dt_error *why, struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    for (size_t turn = 0; rc == DT_SUCCESS && !is_over(c); turn++)
        rc = dt_vote_outcome(take_turn(c, turn), err);
    for (size_t i = 0; i < (size_t)c->queues * c->depth; i++)
        dt_wait(&c->link[i].request); /* what is left after an error */
    *code = c->code;
    *why = c->why;
    return rc;
}

static bool takes_part(const struct dt_chain *c,
                       const struct dt_rebuild_item *item)
{
    const struct dt_redundancy_set *set = &c->plan->set[item->set];
    bool part = item->worker == c->rank;
    for (int i = 0; i < set->layout.size && !part; i++) {
        part = set->parity_holder[i] == c->rank;
        for (size_t j = 0; j < set->span[i].count && !part; j++)
            part = c->source->holder[set->span[i].part[j].file] == c->rank;
    }
    return part;
}

/* In the same order on all ranks. */
static void find_queues(struct dt_chain *c)
{
    size_t k = 1;
    for (int number = 0; number < c->plan->queues; number++) {
        int item = 0;
        while (item < c->plan->items && (c->plan->item[item].queue != number ||
                                         !takes_part(c, &c->plan->item[item])))
            item++;
        if (item == c->plan->items)
            continue;
        struct queue *queue = &c->queue[c->queues++];
        queue->number = number;
        queue->reader = (struct dt_reader){.source = c->source, .fd = -1};
        next_item(c, queue, 0);
        size_t pieces = (size_t)set_of(c, item)->layout.k;
        k = pieces > k ? pieces : k;
    }
    c->depth = HOP * (k + 3);
}

dt_result_t dt_chain_open(struct dt_chain **chain, const struct dt_plan *plan,
                          const struct dt_source *source, struct dt_error *err)
{
    struct dt_chain *c = calloc(1, sizeof(*c));
    if (!c)
        return dt_no_memory(err);
    *c = (struct dt_chain){.plan = plan, .source = source, .rank = dt_rank()};
    c->queue = calloc((size_t)plan->queues + 1, sizeof(*c->queue));
    if (c->queue)
        find_queues(c);
    size_t n = (size_t)c->queues * c->depth;
    c->link = calloc(n + 1, sizeof(*c->link));
    c->spare = calloc(n + 1, sizeof(*c->spare));
    c->memory = malloc((n + 1) * plan->chunk); /* mostly never touched */
    c->block = malloc(plan->chunk);
    if (!c->queue || !c->link || !c->spare || !c->memory || !c->block) {
        dt_chain_close(c);
        return dt_no_memory(err);
    }
    while (c->spares < n) {
        c->spare[c->spares] = c->memory + c->spares * plan->chunk;
        c->spares++;
    }
    *chain = c;
    return DT_SUCCESS;
}

void dt_chain_close(struct dt_chain *c)
{
    if (!c)
        return;
    for (int l = 0; l < c->queues; l++)
        dt_reader_close(&c->queue[l].reader);
    free(c->block);
    free(c->memory);
    free(c->spare);
    free(c->link);
    free(c->queue);
    free(c);
}
