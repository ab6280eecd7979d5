/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* homes.h - the checkpoint directories of several nodes, side by side. */
#ifndef DT_TOOLS_CKPT_HOMES_H
#define DT_TOOLS_CKPT_HOMES_H

#include "checkpoint.h"
#include "place.h"

/* That of one node. */
struct home {
    struct place place;
    int fd;     /* of the checkpoint that is entered, or -1: it has none */
    bool fresh; /* it had none, and one is being made */
    struct fresh making;
    int node; /* for which it is being made */
};

struct homes {
    struct home *home;
    int n;
    int64_t *step; /* of all complete checkpoints in any, the newest first */
    size_t nsteps;
};

/* Open and take them all. Errors: those of place_open; NOT_FOUND if there is no
 * checkpoint in any. */
dt_result_t homes_open(struct homes *homes, char **path, int n,
                       struct dt_error *err);
void homes_close(struct homes *homes);

/* Enter the checkpoint of step in each that has it; *c is one of them. CORRUPT
 * if they are not copies of one. */
dt_result_t homes_enter(struct homes *homes, int64_t step, struct checkpoint *c,
                        struct dt_error *err);

/* Where a file of node belongs: where others of its are, else into a home that
 * lacks the checkpoint, which is begun there, else anywhere. */
dt_result_t homes_for_node(struct homes *homes,
                           const struct dt_manifest *manifest, int node,
                           struct home **home, struct dt_error *err);

/* Leave it again; what was begun is completed with c's manifest, or removed if
 * rc is a failure. Returns rc, or what went wrong. */
dt_result_t homes_leave(struct homes *homes, const struct checkpoint *c,
                        dt_result_t rc, struct dt_error *err);

#endif
