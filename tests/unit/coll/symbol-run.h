/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* symbol-run.h - the inside of symbol.h: ranks, their memories, and what is
 * under way between them. */
#ifndef SYMBOL_RUN_H
#define SYMBOL_RUN_H

#include "symbol.h"

#define SYMBOL_ROOM 8 /* rounds open at once: the fewest there can be */

/* One element. mask 0: nothing has been written there. */
struct cell {
    uint64_t mask;  /* whose contributions are in it */
    uint64_t hash;  /* the tree in which they came together */
    uint32_t index; /* of the element, in the sender's buffer */
    uint32_t divided;
    double factor;
};

struct memory {
    struct cell *cells;
    size_t n;
};

/* Elements of one memory. */
struct range {
    struct memory *memory;
    size_t first, count;
};

struct posted {
    bool there;
    struct range range;
    size_t hole, hole_count; /* elements, within the range */
};

/* An operation that reads, or waits, in a list per round. */
struct link {
    size_t operation, next;
};

struct rank {
    struct dt_sched sched;
    struct dt_layout layout;
    struct dt_shape shape;
    size_t *counts; /* of the shape's uneven forms */
    struct memory user, other, scratch;
    struct range send, recv; /* in one of them */
    uint32_t *pending;
    bool *done;
    size_t left;
    /* per round */
    struct posted *posts;
    size_t *reads;         /* left */
    size_t *first_read;    /* list over next_in_round */
    size_t *next_in_round; /* per operation: of those that read in its round */
    size_t *waiting;       /* list over next_waiting: held up in this round */
    size_t *next_waiting;
    size_t passed;
    /* in flight: messages */
    size_t *flight, nflight;
};

struct message {
    size_t from, to, slot;
    size_t send, recv; /* operations, or DT_OPERATION_NONE */
    bool sent, wanted; /* started */
    bool eager;
    struct cell *copy;
};

struct action {
    size_t rank,
        operation; /* operation DT_OPERATION_NONE: deliver message rank */
};

struct queue {
    struct action *items;
    size_t head, tail, room;
};

struct machine {
    const struct symbol_case *c;
    struct symbol_report *report;
    struct rank *ranks;
    size_t size, elem;
    struct message *messages;
    size_t nmessages, *table, table_size;
    struct queue queues[2]; /* what is favoured, and the rest */
    uint64_t random;
    size_t victim;
    bool failed;
};

/* The first thing that is wrong; the rest follows from it. */
void symbol_fail(struct machine *m, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Zeroed; ends the program where there is none. */
void *symbol_get(size_t n, size_t size);

uint64_t symbol_mix(uint64_t x);

/* Run what has been set up, until nothing can happen any more. */
void symbol_run_all(struct machine *m);

/* The elements that a reference of a rank means. */
struct range symbol_at(struct machine *m, size_t rank, struct dt_ref ref,
                       size_t len);

/* What a FOLD or FETCH reads of a piece. */
struct range symbol_part(struct machine *m, const struct posted *post,
                         const struct dt_operation *operation);

/* The memory at both ends of a message. */
struct range symbol_sending(struct machine *m, const struct message *message);
struct range symbol_receiving(struct machine *m, const struct message *message);

/* Is it fine that a rank reads, or writes, as the end of message if it is
 * not DT_OPERATION_NONE? Quiet: nothing is on its way to there. */
void symbol_quiet(struct machine *m, size_t rank, struct range range,
                  size_t but);
void symbol_read(struct machine *m, size_t rank, struct range range);
void symbol_write(struct machine *m, size_t rank, struct range range,
                  size_t message);

/* The message of a send or receive, made when it is first asked for. */
size_t symbol_message(struct machine *m, size_t rank,
                      const struct dt_operation *operation);

#endif
