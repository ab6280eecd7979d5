/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fake-world-place.h - shared state of the ranks of a fake communicator. */
#ifndef FAKE_WORLD_PLACE_H
#define FAKE_WORLD_PLACE_H

#include "fake-world.h"

struct message;

/* One rank's end of a communicator; the members share the place. */
struct place {
    int size, arrived, generation;
    const void *post[FAKE_WORLD_MAX];
    struct message *messages; /* the oldest first */
    struct place *next;
};

struct dt_comm {
    struct place *place;
    int rank;  /* in it */
    int world; /* rank in the world */
    struct dt_comm *next;
};

/* Show the others buf; *deaf: nothing is received. false: place_gone(). */
bool place_post(struct dt_comm *comm, const void *buf, bool *deaf);

/* What was posted may change again once all have left. */
dt_result_t place_leave(struct dt_comm *comm, bool deaf);

/* The result of a collective that lost a rank. */
dt_result_t place_gone(void);

#endif
