/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* world.h - this process as a rank of its job: who and where all ranks are,
 * the transports that reach them, and all that moves. */
#ifndef DT_COLL_ENGINE_WORLD_H
#define DT_COLL_ENGINE_WORLD_H

#include <pthread.h>

#include "boot/boot.h"
#include "boot/card.h"
#include "coll/algorithm/layout.h"
#include "tune/tune.h"
#include "tl/tl.h"

struct dt_comm;
struct dt_device;
struct dt_memory;
struct dt_progress;

/* Communicators a rank can be in at a time: what a tag can tell apart; and the
 * id of the one of all ranks. */
#define DT_COMMS      256
#define DT_COMM_WORLD 0

/* What the world does with a communicator. It knows nothing else of one, so
 * that communicators can be built on it. */
struct dt_comm_ops {
    /* Make progress; true if anything moved. */
    bool (*progress)(struct dt_comm *comm);
    /* Is any of its requests in progress? */
    bool (*active)(const struct dt_comm *comm);
    /* Close its board, before the transport is closed; nothing of it moves
     * afterwards. */
    void (*detach)(struct dt_comm *comm);
    /* Free it. */
    void (*close)(struct dt_comm *comm);
};

struct dt_world {
    size_t rank, size;
    long timeout; /* seconds without progress */
    struct dt_boot *boot;
    struct dt_tl *tl[DT_CARD_TLS]; /* shm, ucx; NULL where not needed */
    struct dt_layout layout;       /* of all ranks */
    struct dt_tune tune;           /* rank 0's */
    unsigned spins;                /* before a wait yields; 0: more ranks on
                                    * this node than cores */
    unsigned far_spins;            /* the same, for ranks of other nodes */
    struct dt_device *device;      /* device.h; NULL: none, because of: */
    struct dt_error no_device;     /* "no ... (why)" */

    /* One thread at a time moves things: this lock covers all below, the
     * transports, and what comm.h says. */
    pthread_mutex_t lock;
    _Atomic unsigned waiting;        /* threads that want the lock */
    struct dt_comm *comms[DT_COMMS]; /* by id */
    const struct dt_comm_ops *comm_ops;
    size_t ncomms;                /* ids ever used are below it */
    uint64_t serial;              /* the highest of any of mine so far */
    struct dt_progress *progress; /* libdt's own thread, or NULL */
    struct dt_memory *memory;     /* what dt_mem_* gave; NULL: nothing */

    bool check; /* DT_CHECK: compare the arguments of all ranks */
    bool over;  /* set when the last barrier is: all went well */

    /* DT_SUCCESS, or why everything now fails: set once, with the lock held,
     * and asked for without it; the text is there before. */
    _Atomic dt_result_t failure;
    struct dt_error failure_text;
};

/* Join the job: boot, exchange cards, connect. Collective. */
dt_result_t dt_world_open(struct dt_world **world, struct dt_error *err);

/* Leave it, and close its communicators. Collective when over is set, which
 * takes a barrier; immediate otherwise. NULL is fine. */
void dt_world_close(struct dt_world *world);

/* The transport that reaches another rank. */
struct dt_tl *dt_world_route(const struct dt_world *world, size_t peer);

/* The transport of this node; NULL: no other rank here. */
struct dt_tl *dt_world_node_tl(const struct dt_world *world);

/* The transport to sleep on: it hears of everything that comes; NULL: there is
 * none, other transports have to be looked at. */
struct dt_tl *dt_world_sleeper(const struct dt_world *world);

void dt_world_lock(struct dt_world *world);
void dt_world_unlock(struct dt_world *world);

/* The following are called with the lock held. */

/* Let another thread have the lock, if one wants it. */
void dt_world_let_in(struct dt_world *world);

/* Move everything, of all communicators; true if anything moved. */
bool dt_world_progress(struct dt_world *world);

/* Everything fails from now on; peers are told. Only the first call counts.
 * Returns why it failed. */
dt_result_t dt_world_fail(struct dt_world *world, dt_result_t why,
                          const struct dt_error *err);

/* Hear of lost ranks from the launcher, and fail then; patience as in boot.h's
 * news. */
void dt_world_listen(struct dt_world *world, int patience);

/* Look, at the cost of a few system calls, whether ranks that something waits
 * for are gone, and fail then. */
void dt_world_check(struct dt_world *world);

#endif
