/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* event.h - the events of a simulation, in the order of their time. */
#ifndef DT_SIM_EVENT_H
#define DT_SIM_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_message;

enum sim_event_kind {
    SIM_WAKE,    /* the rank may make progress */
    SIM_ARRIVE,  /* a message arrives at it */
    SIM_SENT,    /* its send is complete */
    SIM_REVOKE,  /* another rank has revoked its transport */
    SIM_RELEASE, /* another rank has released rounds of a board */
};

struct sim_event {
    double time;
    uint64_t order; /* among events of the same time */
    size_t rank;    /* that it happens to */
    enum sim_event_kind kind;
    struct sim_message *message; /* ARRIVE, SENT */
    size_t missing;              /* REVOKE: a rank + 1, or 0 */
    size_t by;                   /* REVOKE: the rank that did it */
    uint64_t serial;             /* RELEASE: of the board */
    size_t index;                /* RELEASE: of the other rank on it */
    uint64_t round;              /* RELEASE: all below it are released */
};

/* A binary heap; zeroed it is empty. */
struct sim_events {
    struct sim_event *heap;
    size_t count, room;
    uint64_t pushed;
};

/* Add an event at its time; its order is set here. false: no memory. */
bool sim_events_push(struct sim_events *events, struct sim_event event);

/* Remove the earliest event; there is one. */
struct sim_event sim_events_pop(struct sim_events *events);

#endif
