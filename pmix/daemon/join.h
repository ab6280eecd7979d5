/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* join.h - how a step's PMIx server finds those of the other nodes: by the
 * rendezvous it gets the map of the step, and the links of its net. */
#ifndef DT_PMIX_JOIN_H
#define DT_PMIX_JOIN_H

#include <stdint.h>
#include <sys/types.h>

#include "mesh/rendezvous.h"
#include "mesh/net.h"
#include "daemon/held_ports.h"
#include "daemon/step.h"

#define DT_JOIN_VERSION_MAX 32 /* bytes of PMIx's version, with its NUL */

/* PMIx's version, as links compare it. */
void dt_join_pmix_version(char text[DT_JOIN_VERSION_MAX]);

/* A call of the net's from before the server was open. */
struct dt_join_pending {
    uint32_t node;
    bool left;
    struct dt_frame *frame; /* it came; or NULL: the node is gone, with why */
    char *why;
};

struct dt_join {
    struct dt_map *map;
    struct dt_net *net;              /* NULL: the step has one node */
    struct dt_join_pending *pending; /* in their order */
    size_t npending, pending_bytes;
    char pmix[DT_JOIN_VERSION_MAX];
    struct dt_net_host host; /* of the net, once the server is open */
    const struct dt_step *step;
    const struct dt_held_ports *held; /* go into this node's entry */
    dt_result_t rc; /* what went wrong in a call of the net's */
    struct dt_error why;
};

/* Register at the rendezvous, get the map, and send it to this node's children
 * in the tree. Blocks until then, alive reads end of file, or the step's limit
 * is over. The step and held, which may be NULL, must stay. */
dt_result_t dt_join_open(struct dt_join *join, const struct dt_step *step,
                         const struct dt_held_ports *held, int alive,
                         struct dt_error *err);

/* The server is open: the net calls host from now on, at once with the pending
 * calls. */
void dt_join_done(struct dt_join *join, const struct dt_net_host *host);

/* Send the shutdown message to the others, for ms at most, and free everything;
 * join may be as dt_join_open left it, or all 0. */
void dt_join_close(struct dt_join *join, int64_t ms);

#endif
