/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* state.h - the state of the simulator, for its own files: transport.c
 * (messages, time and life) and board.c (boards). */
#ifndef DT_SIM_STATE_H
#define DT_SIM_STATE_H

#include "sim/event.h"
#include "sim/sim.h"
#include "tl/board.h"

struct sim_message;
struct sim_board;

struct dt_sim {
    struct dt_sim_config config;
    size_t *node_of;
    struct sim_rank *ranks;
    uint64_t random;
    size_t failures; /* ranks that have given up */
    double now;
    struct sim_events events;
    bool out_of_memory; /* the run is worthless */
};

/* One rank's transport. */
struct sim_rank {
    struct dt_tl tl;
    struct dt_sim *sim;
    size_t rank;
    double busy; /* computing until then */
    bool dead, failed;
    struct dt_error err;
    struct dt_tl_req *posted, *sends; /* pending, in order */
    /* sent to it and not received yet, in order of sending */
    struct sim_message *coming, **coming_last;
    struct sim_board *boards;
    uint64_t bytes;
};

/* ---- transport.c ---- */

/* Let an event happen after delay seconds; its time is set here. */
void dt_sim_later(struct dt_sim *sim, double delay, struct sim_event event);

/* How long len bytes take from one rank to another, this time. */
double dt_sim_delay(struct dt_sim *sim, size_t from, size_t to, size_t len);

/* ---- board.c ---- */

extern const struct dt_board_ops dt_sim_boards;

/* A RELEASE has arrived. */
void dt_sim_on_release(struct sim_rank *to, const struct sim_event *event);

/* Does a board of this rank wait for a piece, or for room, of that one? */
bool dt_sim_boards_need(const struct sim_rank *rank, size_t peer);

/* A rank has given up: overwrite what it posted in place, as a program may. */
void dt_sim_overwrite_pieces(struct sim_rank *rank);

/* Close the boards that are left. */
void dt_sim_close_boards(struct sim_rank *rank);

#endif
