/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* state.h - the engine as its own files see it.
 *
 * Two locks. The drive lock is held by who makes progress: the engine's thread,
 * or a thread of the program that waits. It guards all but what follows, and is
 * the thread that communicators of the engine belong to. The submit lock is
 * held for moments only and guards what the program hands in: lists of new
 * work, gradients of a plan, and how work has ended. Drive comes before
 * submit. */
#ifndef DT_GRAD_STATE_H
#define DT_GRAD_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/error.h"
#include "dt_grad.h"

struct dt_entry;
struct dt_gpu_part;
struct dt_gpus;
struct dt_grad_set;
struct dt_mark;
struct dt_pinned;
struct dt_quantized;
struct dt_run;
struct dt_stage;
struct dt_stall;
struct dt_timeline;

/* ---- one operation ---- */

/* Where a tensor is; ANY is one without elements. */
enum dt_place { DT_PLACE_HOST, DT_PLACE_GPU, DT_PLACE_ANY };

/* What the ranks compare. */
struct dt_item_type {
    uint8_t kind, dtype, wire, op;
    uint32_t element; /* bytes */
    int32_t root;
    int32_t ndim;
    int64_t place; /* enum dt_place; as wide as what follows, since types are
                      compared byte by byte */
    int64_t shape[DT_GRAD_DIMS];
    double prescale, postscale;
};

struct dt_item {
    struct dt_item_type type;
    int64_t *splits; /* of an alltoall: rows to each rank; else NULL */
    const void *in;
    void *out;
    /* the results of an allgather and of an alltoall, owned */
    void *result;
    int64_t rows;      /* first dimension of the output */
    int64_t *received; /* rows from each rank */
    /* of a tensor on a GPU: its number, else -1; when the program has made it;
     * while the host has a copy, that, and then in and out are in it */
    int device;
    struct dt_mark *mark;
    struct dt_stage *stage;
};

/* ---- work ---- */

enum dt_work_kind {
    DT_WORK_OPERATIONS,
    DT_WORK_JOIN,
    DT_WORK_CLOSE,
    DT_WORK_SET_ADD,    /* the first item's splits are the ranks */
    DT_WORK_SET_REMOVE, /* the first item's root is the set */
    DT_WORK_PLAN_CREATE,
    DT_WORK_PLAN_DESTROY,
    DT_WORK_STEP,
};

/* What one rank has started. Freed when it is complete and forgotten. */
struct dt_grad_work {
    struct dt_grad *grad;
    struct dt_grad_set *set;
    enum dt_work_kind kind;
    uint32_t plan; /* its number; 0: of none */
    char *name;
    int n;
    struct dt_item *items;
    /* what is done at its end instead of what follows: for what is part of
     * something else */
    void (*on_end)(struct dt_grad_work *work);
    struct dt_grad_work *next; /* in one of the set's lists */
    /* all operations that were not freed; with the submit lock */
    struct dt_grad_work *newer, *older;
    struct dt_grad_work *chain; /* in the engine's table of names */
    int left;                   /* items that are not complete */
    int number;                 /* the answer: a set, the last to join */
    struct dt_grad_plan *made;  /* the plan that is to be made, or ended */
    double since;
    bool forgotten;
    _Atomic dt_result_t status;
    struct dt_error err;
};

/* ---- process sets ---- */

enum dt_round_phase { DT_ROUND_NONE, DT_ROUND_HEADS, DT_ROUND_BODIES };

/* One round of negotiation: all ranks of the set tell what they have started
 * since the last one. */
struct dt_round {
    enum dt_round_phase phase;
    dt_request_t request;
    double since;
    double pause;        /* before the next one, as the last brought nothing */
    unsigned char *mine; /* what this rank tells */
    size_t len, room;
    unsigned char *heads, *bodies; /* of all ranks */
    size_t *counts, *displs;
};

#define DT_ROUND_HEAD 256 /* bytes that each rank tells at first */

#define DT_NAMES 1024 /* chains of a table of names */

struct dt_grad_set {
    struct dt_grad *grad;
    int id, n;
    int me;     /* -1 where this rank is none of it */
    int *ranks; /* of the world, ascending */
    dt_comm_t control, data;
    struct dt_round round;
    /* new work: begins at first, ends at *last; with the submit lock */
    struct dt_grad_work *first, **last;
    struct dt_grad_work *telling; /* in this round, in order */
    int open;                     /* told and not complete */
    struct dt_entry *entries;     /* in the order in which they were heard of */
    struct dt_entry **entries_end;
    struct dt_entry *table[DT_NAMES]; /* the same by name */
    uint64_t heard;                   /* of the first rank's requests, so far */
    bool *joined, *closed;
    int njoined, nclosed, last_joined;
    /* the number of the next operation without a name, with the submit lock; it
     * begins anew with each join */
    uint64_t unnamed, joins;
    uint32_t plans; /* made so far */
    struct dt_grad_set *next;
};

/* ---- plans ---- */

enum dt_gradient_state {
    DT_GRADIENT_IDLE,
    DT_GRADIENT_PLANNED,    /* in the bucket, or for it */
    DT_GRADIENT_NEGOTIATED, /* its work is */
};

struct dt_gradient {
    struct dt_grad_plan *plan;
    /* of a gradient that goes as I8: what rounding took away on this rank, to
     * be added in the next step; count elements, owned. Else NULL. */
    float *residual;
    struct dt_item item;
    struct dt_grad_work work; /* its negotiated form */
    int id;
    size_t count;   /* elements */
    int bucket;     /* -1: in none */
    size_t offset;  /* in it, bytes */
    uint64_t heard; /* its place in the first rank's order */
    double since;
    dt_result_t result;
    struct dt_error err;
    struct dt_gradient *chain; /* in the plan's table of names */
    _Atomic int state;         /* enum dt_gradient_state */
};

struct dt_bucket {
    uint8_t wire, op;
    size_t elements; /* without the flag behind them */
    int n;
    struct dt_gradient **gradients;
    int last; /* place of the last of them in the order of all */
    unsigned char *data;
    bool shared; /* it is from dt_mem_alloc */
    /* of gradients on a GPU: its number, else -1; lib/grad/plan/gpu_bucket.h */
    int device;
    struct dt_pinned *pinned;
    struct dt_gpu_part *parts;
    bool unpacks; /* it has arrived, and is being unpacked there */
    struct dt_quantized *quantized; /* instead of data, as it goes as I8 */
    bool counted;                   /* among the bytes that are held */
    _Atomic int missing;            /* gradients that were not submitted */
    dt_request_t request;
    double since;
};

enum dt_plan_state {
    DT_PLAN_NEGOTIATES, /* there is no plan */
    DT_PLAN_STANDS,
    DT_PLAN_BREAKS, /* a rank could not follow: what is under way is emptied */
};

struct dt_grad_plan {
    struct dt_grad *grad;
    struct dt_grad_set *set;
    uint32_t number; /* in its set */
    dt_comm_t comm;
    /* for the second collective of quantized buckets, which does not begin at
     * the same point among the others on all ranks; NULL: there are none */
    dt_comm_t second;
    _Atomic int state; /* enum dt_plan_state */
    /* with the submit lock */
    struct dt_gradient **gradients;
    int n, room;
    struct dt_gradient *names[DT_NAMES];
    int submitted; /* gradients of the plan, in this step */
    struct dt_grad_work *step;
    dt_result_t code; /* the first error of this step */
    struct dt_error err;
    /* the plan */
    struct dt_bucket *buckets;
    int nbuckets, nplanned;
    /* buckets, since the plan stands; all may read them */
    _Atomic uint64_t launched, finished;
    uint64_t reduced; /* of them, those in the last collective */
    uint64_t end;     /* while it breaks: launch up to here */
    struct dt_gradient **learned;
    int nlearned, learned_room;
    atomic_int open;    /* gradients that are under way */
    _Atomic bool leave; /* this rank cannot follow the plan */
    _Atomic bool went;  /* some of this step went by buckets */
    struct dt_grad_plan *next;
};

/* ---- the engine ---- */

struct dt_grad {
    struct dt_grad_options options;
    pid_t pid;
    double timeout, looked;
    unsigned spins;
    pthread_mutex_t drive, submit;
    pthread_cond_t wake; /* with submit: there is something for the thread */
    pthread_t thread;
    /* progress: what can be done now, true when anything was; and whether
     * anything is under way. The drive lock is held. */
    bool (*pass)(struct dt_grad *grad);
    bool (*busy)(const struct dt_grad *grad);
    bool ending, woken, running;
    atomic_int waiters;
    dt_comm_t world;
    struct dt_grad_set *sets; /* ascending; the first is the world */
    int next_set;
    struct dt_grad_plan *plans;
    struct dt_run *runs, **runs_end;
    int nrunning;

    struct dt_grad_work *names[DT_NAMES]; /* under way here; with submit */
    struct dt_grad_work *newest;          /* of all operations; with submit */
    struct dt_grad_work *join;
    struct dt_gpus *gpus; /* NULL: this process has none */
    struct dt_stall *stall;
    struct dt_timeline *timeline;
    struct dt_grad_stats stats;
    _Atomic dt_result_t failure;
    struct dt_error failure_text;
    _Atomic bool told; /* all that was under way has ended with the failure, and
                          no GPU uses its memory any more */
};

/* rc of a call of dt.h, and its text. */
dt_result_t dt_grad_failed(dt_result_t rc, struct dt_error *err);

/* The chain of a name. */
unsigned dt_grad_hash(uint32_t plan, const char *name);

/* Seconds of CLOCK_MONOTONIC. */
double dt_grad_now(void);

/* Is this the process that opened the engine? Else INVALID_ARG. */
dt_result_t dt_grad_not_forked(struct dt_grad *grad, struct dt_error *err);

/* Is this engine usable by the caller? Else an error. */
dt_result_t dt_grad_usable(struct dt_grad *grad, struct dt_error *err);

#endif
