/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* transport.c - the transports of simulated ranks, and virtual time.
 *
 * A message is either copied when it is sent, and its send is complete at once,
 * or it is read from the sender's buffer when it is received, and the send is
 * complete some time after that. The seed decides. */
#include <stdlib.h>
#include <string.h>

#include "sim/state.h"

struct sim_message {
    struct sim_message *next;
    size_t from, to;
    uint64_t tag;
    size_t len;
    bool here;
    char *copy;             /* NULL: the bytes are in the sender's request */
    struct dt_tl_req *send; /* NULL: over, or given up */
};

static struct sim_rank *rank_of(struct dt_tl *tl)
{
    return (struct sim_rank *)tl;
}

/* ---- chance and time ---- */

/* splitmix64 (Steele, Lea and Flood 2014) */
static uint64_t next_random(struct dt_sim *sim)
{
    uint64_t z = sim->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t dt_sim_random(struct dt_sim *sim, uint64_t n)
{
    return n ? next_random(sim) % n : 0;
}

/* In 0 .. 1 */
static double chance(struct dt_sim *sim)
{
    return (double)(next_random(sim) >> 11) * 0x1p-53;
}

double dt_sim_delay(struct dt_sim *sim, size_t from, size_t to, size_t len)
{
    const struct dt_sim_config *c = &sim->config;
    bool near = sim->node_of[from] == sim->node_of[to];
    double delay = near ? c->node_latency + (double)len * c->node_byte
                        : c->net_latency + (double)len * c->net_byte;
    delay *= 1 + c->jitter * chance(sim);
    return !near && chance(sim) < c->lost ? delay + c->resend : delay;
}

void dt_sim_later(struct dt_sim *sim, double delay, struct sim_event event)
{
    event.time = sim->now + delay;
    if (!sim_events_push(&sim->events, event))
        sim->out_of_memory = true;
}

/* ---- failure ---- */

static void drop(struct dt_tl_req **list)
{
    while (*list) {
        struct dt_tl_req *req = *list;
        *list = req->next;
        req->status = DT_ERR_PROC_FAILED;
        struct sim_message *message = req->handle;
        if (message)
            message->send = NULL;
    }
}

/* The end of a rank's transport, of which the others are notified. by: the
 * rank that gave up first; missing: the rank + 1 that it misses, or 0. */
static void fail(struct sim_rank *me, size_t by, size_t missing)
{
    struct dt_sim *sim = me->sim;
    if (me->failed)
        return;
    me->failed = true;
    sim->failures++;
    if (missing)
        dt_error_set(&me->err, DT_ERR_PROC_FAILED,
                     "rank %zu is gone, as rank %zu reports", missing - 1, by);
    else
        dt_error_set(&me->err, DT_ERR_PROC_FAILED, "rank %zu has given up", by);
    drop(&me->posted);
    drop(&me->sends);
    dt_sim_overwrite_pieces(me);
    for (size_t r = 0; r < sim->config.size; r++)
        if (r != me->rank)
            dt_sim_later(sim, dt_sim_delay(sim, me->rank, r, 0),
                         (struct sim_event){.kind = SIM_REVOKE,
                                            .rank = r,
                                            .by = by,
                                            .missing = missing});
}

/* ---- messages ---- */

static void append(struct dt_tl_req **list, struct dt_tl_req *req)
{
    while (*list)
        list = &(*list)->next;
    req->next = NULL;
    *list = req;
}

static void take(struct dt_tl_req **list, struct dt_tl_req *req)
{
    while (*list != req)
        list = &(*list)->next;
    *list = req->next;
}

static void free_message(struct sim_message *message)
{
    if (message)
        free(message->copy);
    free(message);
}

/* A message has arrived, and its receive is posted. */
static void deliver(struct sim_rank *to, struct dt_tl_req *req,
                    struct sim_message *message)
{
    struct dt_sim *sim = to->sim;
    if (message->len != req->len) {
        fail(to, to->rank, 0);
        dt_error_set(&to->err, DT_ERR_PROC_FAILED,
                     "rank %zu sent %zu bytes where rank %zu expected %zu",
                     message->from, message->len, to->rank, req->len);
        if (message->send)
            message->send->handle = NULL;
        free_message(message);
        return;
    }
    take(&to->posted, req);
    const char *from = message->copy;
    if (!from && message->send)
        from = message->send->buf;
    if (from)
        memcpy(req->buf, from, req->len);
    req->tag = message->tag;
    /* the sender died or gave up before its bytes were fetched */
    req->status = from ? DT_SUCCESS : DT_ERR_PROC_FAILED;
    if (message->send)
        dt_sim_later(sim, dt_sim_delay(sim, to->rank, message->from, 0),
                     (struct sim_event){.kind = SIM_SENT,
                                        .rank = message->from,
                                        .message = message});
    else
        free_message(message);
}

static bool is_same(uint64_t tag, uint64_t other)
{
    return !((tag ^ other) & ~DT_TAG_NOTICE);
}

/* Match messages and receives of one peer and tag, each in order. */
static void match(struct sim_rank *me, size_t peer, uint64_t tag)
{
    while (!me->failed) {
        struct dt_tl_req *req = me->posted;
        struct sim_message **at = &me->coming, *message;
        while (req && (req->peer != peer || !is_same(req->tag, tag)))
            req = req->next;
        while (*at && ((*at)->from != peer || !is_same((*at)->tag, tag)))
            at = &(*at)->next;
        message = *at;
        if (!req || !message || !message->here)
            return;
        *at = message->next;
        if (!*at)
            me->coming_last = at;
        deliver(me, req, message);
    }
}

static bool prepare(struct sim_rank *me, size_t peer, uint64_t tag, char *buf,
                    size_t len, bool send, struct dt_tl_req *req)
{
    *req = (struct dt_tl_req){.status = DT_IN_PROGRESS,
                              .tag = tag,
                              .tl = &me->tl,
                              .buf = buf,
                              .len = len,
                              .peer = peer,
                              .send = send};
    if (me->failed)
        req->status = DT_ERR_PROC_FAILED;
    else if (peer >= me->sim->config.size || peer == me->rank || !len)
        req->status = DT_ERR_INVALID_ARG;
    return req->status == DT_IN_PROGRESS;
}

static void sim_isend(struct dt_tl *tl, size_t peer, uint64_t tag,
                      const void *buf, size_t len, struct dt_tl_req *req)
{
    struct sim_rank *me = rank_of(tl);
    struct dt_sim *sim = me->sim;
    if (!prepare(me, peer, tag, (char *)(uintptr_t)buf, len, true, req))
        return;
    struct sim_message *message = calloc(1, sizeof(*message));
    bool eager = dt_sim_random(sim, 2);
    char *copy = eager && message ? malloc(len) : NULL;
    if (!message || (eager && !copy)) {
        free(message);
        sim->out_of_memory = true;
        req->status = DT_ERR_NO_MEMORY;
        return;
    }
    *message = (struct sim_message){.from = me->rank,
                                    .to = peer,
                                    .tag = tag,
                                    .len = len,
                                    .copy = copy,
                                    .send = eager ? NULL : req};
    if (sim->node_of[peer] != sim->node_of[me->rank])
        me->bytes += len;
    if (eager) {
        memcpy(copy, buf, len);
        req->status = DT_SUCCESS;
    } else {
        req->handle = message;
        append(&me->sends, req);
    }
    *sim->ranks[peer].coming_last = message;
    sim->ranks[peer].coming_last = &message->next;
    double wait = me->busy > sim->now ? me->busy - sim->now : 0;
    dt_sim_later(sim, wait + dt_sim_delay(sim, me->rank, peer, len),
                 (struct sim_event){
                     .kind = SIM_ARRIVE, .rank = peer, .message = message});
}

static void sim_irecv(struct dt_tl *tl, size_t peer, uint64_t tag, void *buf,
                      size_t len, struct dt_tl_req *req)
{
    struct sim_rank *me = rank_of(tl);
    if (!prepare(me, peer, tag, buf, len, false, req))
        return;
    append(&me->posted, req);
    match(me, peer, tag);
}

static bool sim_progress(struct dt_tl *tl)
{
    (void)tl; /* things happen in dt_sim_step */
    return false;
}

/* ---- death ---- */

static bool on_list(const struct dt_tl_req *list, size_t peer)
{
    while (list && list->peer != peer)
        list = list->next;
    return list;
}

static dt_result_t sim_check(struct dt_tl *tl, struct dt_error *err)
{
    struct sim_rank *me = rank_of(tl);
    struct dt_sim *sim = me->sim;
    for (size_t r = 0; r < sim->config.size && !me->failed; r++)
        if (sim->ranks[r].dead &&
            (on_list(me->posted, r) || on_list(me->sends, r) ||
             dt_sim_boards_need(me, r)))
            fail(me, me->rank, r + 1);
    if (me->failed && err)
        *err = me->err;
    return me->failed ? DT_ERR_PROC_FAILED : DT_SUCCESS;
}

/* Inside a node, a failure is seen at once. */
static bool sim_revoked(struct dt_tl *tl)
{
    struct sim_rank *me = rank_of(tl);
    struct dt_sim *sim = me->sim;
    for (size_t r = 0; sim->failures && r < sim->config.size && !me->failed;
         r++) {
        const struct sim_rank *peer = &sim->ranks[r];
        if (peer->failed && !peer->dead &&
            sim->node_of[r] == sim->node_of[me->rank])
            fail(me, r, 0);
    }
    return me->failed;
}

static void sim_revoke(struct dt_tl *tl)
{
    fail(rank_of(tl), rank_of(tl)->rank, 0);
}

void dt_sim_kill(struct dt_sim *sim, size_t rank)
{
    struct sim_rank *me = &sim->ranks[rank];
    me->dead = me->failed = true;
    drop(&me->posted);
    drop(&me->sends);
}

/* ---- events ---- */

/* An event happens to a rank; false: the rank is dead. */
static bool happens(struct sim_rank *me, const struct sim_event *event)
{
    struct sim_message *message = event->message;
    switch (event->kind) {
    case SIM_ARRIVE:
        message->here = true;
        match(me, message->from, message->tag);
        break;
    case SIM_SENT:
        if (message->send) {
            take(&me->sends, message->send);
            message->send->status = DT_SUCCESS;
        }
        free_message(message);
        break;
    case SIM_REVOKE:
        if (!me->dead)
            fail(me, event->by, event->missing);
        break;
    case SIM_RELEASE:
        dt_sim_on_release(me, event);
        break;
    case SIM_WAKE:
        break;
    }
    return !me->dead;
}

size_t dt_sim_step(struct dt_sim *sim)
{
    while (sim->events.count) {
        struct sim_event event = sim_events_pop(&sim->events);
        struct sim_rank *me = &sim->ranks[event.rank];
        if (!me->dead && me->busy > event.time) {
            dt_sim_later(sim, me->busy - sim->now, event);
            continue;
        }
        sim->now = event.time;
        if (happens(me, &event))
            return event.rank;
    }
    return DT_SIM_OVER;
}

double dt_sim_now(const struct dt_sim *sim)
{
    return sim->now;
}

void dt_sim_compute(struct dt_sim *sim, size_t rank, double seconds)
{
    sim->ranks[rank].busy = sim->now + seconds;
    dt_sim_later(sim, seconds,
                 (struct sim_event){.kind = SIM_WAKE, .rank = rank});
}

uint64_t dt_sim_bytes(const struct dt_sim *sim, size_t rank)
{
    return sim->ranks[rank].bytes;
}

/* ---- life ---- */

static const struct dt_tl_ops sim_ops = {
    .name = "sim",
    .isend = sim_isend,
    .irecv = sim_irecv,
    .progress = sim_progress,
    .check = sim_check,
    .revoked = sim_revoked,
    .revoke = sim_revoke,
};

dt_result_t dt_sim_open(const struct dt_sim_config *config, struct dt_sim **out,
                        struct dt_error *err)
{
    size_t n = config->size;
    struct dt_sim *sim = calloc(1, sizeof(*sim));
    if (!sim)
        goto no_memory;
    sim->config = *config;
    sim->random = config->seed;
    sim->node_of = calloc(n, sizeof(*sim->node_of));
    sim->ranks = calloc(n, sizeof(*sim->ranks));
    if (!sim->node_of || !sim->ranks)
        goto close_sim;
    memcpy(sim->node_of, config->node_of, n * sizeof(*sim->node_of));
    for (size_t r = 0; r < n; r++)
        sim->ranks[r] = (struct sim_rank){.tl = {&sim_ops, &dt_sim_boards},
                                          .sim = sim,
                                          .rank = r,
                                          .coming_last = &sim->ranks[r].coming};
    *out = sim;
    return DT_SUCCESS;

close_sim:
    dt_sim_close(sim);
no_memory:
    return dt_error_set(err, DT_ERR_NO_MEMORY,
                        "no memory to simulate %zu ranks", n);
}

void dt_sim_close(struct dt_sim *sim)
{
    if (!sim)
        return;
    for (size_t i = 0; i < sim->events.count; i++)
        if (sim->events.heap[i].kind == SIM_SENT)
            free_message(sim->events.heap[i].message);
    for (size_t r = 0; sim->ranks && r < sim->config.size; r++) {
        for (struct sim_message *m; (m = sim->ranks[r].coming);) {
            sim->ranks[r].coming = m->next;
            free_message(m);
        }
        dt_sim_close_boards(&sim->ranks[r]);
    }
    free(sim->ranks);
    free(sim->node_of);
    free(sim->events.heap);
    free(sim);
}

struct dt_tl *dt_sim_tl(struct dt_sim *sim, size_t rank)
{
    return &sim->ranks[rank].tl;
}
