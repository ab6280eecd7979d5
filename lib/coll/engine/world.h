/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* world.h - this process as a rank: where all ranks are, the transports that
 * reach them, and the one lock and the one failure of all communicators. */
#ifndef DT_COLL_ENGINE_WORLD_H
#define DT_COLL_ENGINE_WORLD_H

#include <pthread.h>

#include "boot/boot.h"
#include "boot/card.h"
#include "coll/algorithm/algorithm.h"
#include "tune/tune.h"
#include "tl/tl.h"

struct dt_comm;
struct dt_device;
struct dt_memory;
struct dt_progress;

/* The ids of communicators, as a tag has eight bits for one; that of the
 * world's; and that on which ranks agree about a new communicator of theirs
 * before they have one. */
#define DT_COMMS       256
#define DT_COMM_WORLD  0
#define DT_COMM_CREATE 1

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
    long timeout;                  /* seconds in which nothing arrives */
    struct dt_boot *boot;          /* borrowed */
    struct dt_tl *tl[DT_CARD_TLS]; /* shm, ucx, tcp; NULL where not needed */
    size_t far;                    /* which of them reaches other nodes */
    struct dt_layout layout;       /* of all ranks */
    struct dt_tune tune;           /* rank 0's */
    unsigned spins;                /* before a wait yields the core; 0 where
                                    * this node has more ranks than cores */
    unsigned far_spins;            /* the same for communicators of several
                                    * nodes */
    struct dt_device *device;      /* device.h; NULL: none, because of: */
    struct dt_error no_device;     /* "no ... (why)" */

    /* One thread at a time makes progress: this lock covers all below, the
     * transports, and communicators as comm.h says. */
    pthread_mutex_t lock;
    pthread_mutex_t create;          /* held while DT_COMM_CREATE is in use */
    _Atomic unsigned waiting;        /* threads that want the lock */
    struct dt_comm *comms[DT_COMMS]; /* by id */
    _Atomic int grads;               /* gradient engines that are open */
    const struct dt_comm_ops *comm_ops;
    size_t ncomms;                /* all ids used so far are below it */
    uint64_t serial;              /* the highest of this rank so far */
    struct dt_progress *progress; /* the progress thread, or NULL */
    struct dt_memory *memory;     /* of dt_mem_alloc and dt_mem_register */

    bool check; /* DT_CHECK: compare the arguments of all ranks */

    /* DT_SUCCESS, or why everything now fails: set once, with the lock held,
     * after the text, and read without the lock. */
    _Atomic dt_result_t failure;
    struct dt_error failure_text;
};

/* Connect to all ranks: exchange cards, open transports. Collective. Errors:
 * those of dt_init. */
dt_result_t dt_world_open(struct dt_boot *boot, struct dt_world **world,
                          struct dt_error *err);

/* Close the communicators and the transports. NULL is fine. */
void dt_world_close(struct dt_world *world);

/* The transport that reaches another rank. */
struct dt_tl *dt_world_route(const struct dt_world *world, size_t peer);

/* The transport of this node; NULL: there is no other rank on it. */
struct dt_tl *dt_world_node_tl(const struct dt_world *world);

/* The transport that wakes this rank whenever something arrives; NULL: there is
 * none, as another transport has to be polled. */
struct dt_tl *dt_world_sleeper(const struct dt_world *world);

void dt_world_lock(struct dt_world *world);
void dt_world_unlock(struct dt_world *world);

/* The following are called with the lock held. */

/* Release the lock for a moment if another thread waits for it. */
void dt_world_let_in(struct dt_world *world);

/* Make progress of all transports and communicators; true if anything moved. */
bool dt_world_progress(struct dt_world *world);

/* Fail everything from now on, and revoke the transports, so that the peers
 * fail, too. Only the first call counts. Returns why the world failed. */
dt_result_t dt_world_fail(struct dt_world *world, dt_result_t why,
                          const struct dt_error *err);

/* Check whether the launcher has reported lost ranks, and fail the world then;
 * patience as in dt_boot_ops.check. */
void dt_world_listen(struct dt_world *world, int patience);

/* Check, by a few system calls, whether ranks that a request waits for have
 * ended, and fail the world then. */
void dt_world_check(struct dt_world *world);

#endif
