/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* membership_state.h - the state of a membership, for its own files.
 *
 * Requests to the root, of the kind that the configuration names:
 *
 *   REQUEST = 1 u8 | rank u32 | incarnation u32 | number u64 |
 *             timeout u64 (ms, 0: none) | card, to the end
 *   EPOCH   = 2 u8 | term u32 | epoch u64 | the term that decided it u32
 *
 * A REQUEST is answered when it has ended: 0, as it is part of a decision, or
 * the dt_result_t and a text. Broadcasts:
 *
 *   DECISION = 1 u8 | term u32 | epoch u64 | length u32 | offset u32 | bytes
 *              of: count u32 | members (rank u32 | incarnation u32 |
 *              number u64 | card blob)
 *   HOLDS    = 2 u8 | term u32 | epoch u64 | the term that decided it u32
 *   GONE     = 3 u8 | rank u32 | incarnation u32 */
#ifndef DT_MEMBERSHIP_STATE_H
#define DT_MEMBERSHIP_STATE_H

#include <stdlib.h>
#include <string.h>

#include "membership/membership.h"

enum { REQUEST = 1, EPOCH };
enum { DECISION = 1, HOLDS, GONE };

/* A rank of this node that waits. */
struct request {
    struct request *next;
    uint32_t rank, incarnation;
    uint64_t number;
    int64_t timeout, end; /* end 0: it does not run yet */
    bool sent;            /* to the root of this term */
    void (*done)(void *arg, dt_result_t rc, const void *data, size_t len);
    void *arg;
    size_t len;
    unsigned char card[];
};

/* The same as the root has it. */
struct arrival {
    uint64_t ticket, number;
    uint32_t incarnation;
    int64_t timeout, end;
    size_t len;
    unsigned char card[];
};

struct decided {
    uint64_t epoch;
    uint32_t term;
};

/* A decision that has not been accepted, or not come completely. */
struct decision {
    struct decision *next;
    struct decided id;
    size_t length;
    struct dt_frame *bytes;
};

struct dt_membership {
    struct dt_mesh *mesh;
    const struct dt_map *map;
    size_t self;
    struct dt_membership_config config;
    int64_t now;
    uint64_t numbers; /* of this node's requests, so far */
    struct request *requests;
    struct decided last; /* of the decisions that were accepted */
    uint32_t *member;    /* [ranks] its incarnation + 1; 0: it is none */
    uint64_t *number;    /* [ranks] of the member's request */
    uint32_t *gone;      /* [ranks] its incarnation + 1: it is not replaced */
    struct decision *decisions;
    size_t term;
    bool reported;       /* the root of this term has our epoch */
    bool held;           /* what holds is known: */
    struct decided hold; /* of former terms */
    /* the root's */
    struct arrival **arrival; /* [ranks] */
    bool *timed_out;          /* [ranks] its last request has */
    size_t arrivals;
    bool changed;                 /* count the ranks before the next decision */
    size_t living, base, lacking; /* lacking: one that has not come */
    struct {
        bool reported;
        struct decided last;
    } * node; /* [nodes] whose root this node is */
};

static inline bool dt_decided_same(struct decided a, struct decided b)
{
    return a.epoch == b.epoch && a.term == b.term;
}

static inline void dt_decided_put(unsigned char *to, struct decided id)
{
    dt_wire_put(to, 8, id.epoch);
    dt_wire_put(to + 8, 4, id.term);
}

static inline struct decided dt_decided_get(struct dt_cursor *from)
{
    struct decided id = {.epoch = dt_cursor_uint(from, 8)};
    id.term = (uint32_t)dt_cursor_uint(from, 4);
    return id;
}

/* ---- request.c ---- */

struct request **dt_request_find(struct dt_membership *m, uint64_t number);
struct request *dt_request_first_unsent(const struct dt_membership *m);
/* It may end by that. */
void dt_request_send(struct dt_membership *m, struct request *request);
struct request *dt_request_unlink(struct request **at);
/* Of an unlinked one: call done, and free it. */
void dt_request_finish(struct request *request, dt_result_t rc,
                       const void *data, size_t len);
void dt_request_fail(struct request **at, dt_result_t rc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- decision.c ---- */

struct decision *dt_decision_find(const struct dt_membership *m,
                                  struct decided id);
bool dt_decision_is_complete(const struct decision *decision);
void dt_decision_take_part(struct dt_membership *m, struct dt_cursor *body);
void dt_decision_take_holds(struct dt_membership *m, struct dt_cursor *body);
void dt_decision_free_all(struct dt_membership *m);

/* ---- arrival.c ---- */

void dt_arrival_take(struct dt_membership *m, size_t from, uint64_t ticket,
                     struct dt_cursor *body);
void dt_arrival_drop(struct dt_membership *m, size_t rank, dt_result_t rc,
                     const char *text);
void dt_arrival_fail_all(struct dt_membership *m, dt_result_t rc,
                         const char *text);
/* Count the ranks that live, and those of the base, where that has changed. */
void dt_arrival_count(struct dt_membership *m);
/* Does a decision need a rank that has not come? */
bool dt_arrival_any_lacking(struct dt_membership *m);
/* "ranks 0, 2-5 and the replacement of rank 7 did not come" */
void dt_arrival_describe_lacking(const struct dt_membership *m, char *text,
                                 size_t room);

/* ---- root.c ---- */

void dt_root_take_epoch(struct dt_membership *m, size_t from,
                        struct dt_cursor *body);
/* Once all nodes that live have reported their epochs, the highest one holds.
 */
void dt_root_recover(struct dt_membership *m);
/* Decide if all have come, end the requests that cannot wait any longer.
 * Returns when their time is over. */
int64_t dt_root_check(struct dt_membership *m);

#endif
