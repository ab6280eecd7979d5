/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* state.h - the state of a training, and its copy of the last commit. */
#ifndef DT_ELASTIC_STATE_H
#define DT_ELASTIC_STATE_H

#include "dt.h"

/* One piece of memory that is registered. */
struct dt_piece {
    char *name;
    char *data; /* the caller's */
    size_t bytes;
    char *copy; /* of the last commit; in the state's copies */
};

struct dt_state {
    struct dt_piece *pieces;
    size_t n, room;
    size_t bytes;    /* of all pieces */
    char *copies;    /* of the last commit, or NULL */
    uint64_t serial; /* of the last commit, counted from 1 in the training; 0:
                      * there is none here */
    int source;      /* the rank that the last dt_state_sync took as right */
};

#endif
