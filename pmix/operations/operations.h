/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* operations.h - the PMIx operations that the ranks call, as the server sees
 * them: a table of functions. Nothing else of this folder is used outside, but
 * for what a rank has put. */
#ifndef DT_PMIX_OPERATIONS_H
#define DT_PMIX_OPERATIONS_H

#include <pmix_common.h>
#include <pmix_server.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct dt_mesh_rank;
struct dt_pmix;

/* A replacement has called PMIx_Init. PMIx has no such event, and this code is
 * of the range that it leaves to its users. The ranks that register for it get
 * it. Like the events of ranks that end, it names the rank
 * (PMIX_EVENT_AFFECTED_PROC) and its incarnation (PMIX_REINCARNATION,
 * uint32_t): PMIx keeps events and delivers them to a replacement, too, which
 * so is notified of the end of its own predecessor. */
#define DT_EVENT_PROC_JOINED (PMIX_EXTERNAL_ERR_BASE - 1)

/* What servers request of each other: "what" of dt_mesh_ask. */
enum dt_pmix_ask {
    DT_ASK_MODEX = 1, /* of the rank's node */
    DT_ASK_PUBLISH,   /* these three, of the root: store.h */
    DT_ASK_LOOKUP,
    DT_ASK_UNPUBLISH,
    DT_ASK_MEMBERSHIP, /* of the root: membership_state.h */
};

/* What they notify all others of: the first byte of dt_mesh_broadcast. */
enum dt_pmix_broadcast {
    DT_BROADCAST_ABORT = 1,
    DT_BROADCAST_EVENT,
    DT_BROADCAST_MEMBERSHIP,
};

/* One operation, or a few that belong together. Any member may be NULL. All but
 * what fill enters run in the server's thread. */
struct dt_pmix_operation {
    /* Enter its functions into PMIx's module. They run in PMIx's thread. */
    void (*fill)(pmix_server_module_t *module);
    /* PMIx's library runs, there is no mesh yet. */
    dt_result_t (*open)(struct dt_pmix *pmix, struct dt_error *err);
    /* All ranks of this node have ended; PMIx's library still runs. */
    void (*close)(struct dt_pmix *pmix);
    /* PMIx's library and the mesh have ended; also after an open that failed,
     * or that was not called. */
    void (*free)(struct dt_pmix *pmix);
    /* A server requests something of these kinds: dt_mesh_answer answers. */
    enum dt_pmix_ask first, last;
    void (*asked)(struct dt_pmix *pmix, size_t from_node, uint64_t ticket,
                  enum dt_pmix_ask what, const void *data, size_t len);
    /* A server, maybe this one, has broadcast a message of this kind; data is
     * what follows the kind. */
    enum dt_pmix_broadcast kind;
    void (*received)(struct dt_pmix *pmix, size_t from_node, const void *data,
                     size_t len);
    /* A rank of any node has ended, or has been replaced. For a rank of this
     * node PMIx has seen its end, too. */
    void (*rank_ended)(struct dt_pmix *pmix, size_t rank,
                       const struct dt_mesh_rank *state);
    void (*rank_joined)(struct dt_pmix *pmix, size_t rank,
                        uint32_t incarnation);
    /* Time goes on; the next time that it is to be called, of the clock of
     * dt_pmix_now, or DT_NEVER. */
    void (*expire)(struct dt_pmix *pmix);
    int64_t (*due)(const struct dt_pmix *pmix);
};

extern const struct dt_pmix_operation dt_pmix_op_abort, dt_pmix_op_event,
    dt_pmix_op_fence, dt_pmix_op_group, dt_pmix_op_job_control, dt_pmix_op_meet,
    dt_pmix_op_modex, dt_pmix_op_publish, dt_pmix_op_query;

/* Keep what a rank of this node has put for other nodes, before PMIx forgets
 * it: call it before PMIx_server_deregister_client. In any thread; what it
 * keeps is in dt_pmix_client. */
void dt_pmix_modex_keep(const pmix_proc_t *proc);

#endif
