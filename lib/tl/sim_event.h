/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* sim_event.h - what sim.c (messages), sim_event.c (time) and sim_board.c
 * (boards) of the simulator share. */
#ifndef DT_TL_SIM_EVENT_H
#define DT_TL_SIM_EVENT_H

#include "tl/sim.h"

struct sim_message;
struct sim_rank;

/* Something that will happen to a rank. Ties are broken by order of birth. */
struct sim_event {
    double time;
    uint64_t order;
    size_t rank;
    enum { SIM_WAKE, SIM_ARRIVE, SIM_SENT, SIM_REVOKE, SIM_PASS } kind;
    struct sim_message *message; /* ARRIVE, SENT */
    size_t missing;              /* REVOKE: a rank + 1, or 0 */
    uint64_t serial;             /* PASS: of the board, */
    size_t index;                /* whose pass it is, */
    uint64_t round;              /* and how far */
};

struct dt_sim {
    struct dt_sim_config config;
    size_t *node_of;
    struct sim_rank *ranks;
    uint64_t random, born;
    size_t failures; /* ranks that have given up */
    double now;
    struct sim_event *heap;
    size_t nheap, room;
    bool out_of_memory; /* nothing can be relied on any more */
};

/* One rank's transport. */
struct sim_rank {
    struct dt_tl tl;
    struct dt_sim *sim;
    size_t rank;
    double busy; /* until then */
    bool dead, failed;
    struct dt_error err;
    struct dt_tl_req *posted, *sends; /* pending, in order */
    /* not received, in order of sending */
    struct sim_message *coming, **coming_last;
    struct sim_board *boards;
    uint64_t bytes;
};

/* Have it happen after delay; its time and order are set here. */
void dt_sim_later(struct dt_sim *sim, double delay, struct sim_event event);

/* Take out the event that is next; there is one. */
struct sim_event dt_sim_pop(struct dt_sim *sim);

/* How long len bytes take from one rank to another, this time. */
double dt_sim_delay(struct dt_sim *sim, size_t from, size_t to, size_t len);

/* Another rank of a board is through with more rounds. */
void dt_sim_heard_pass(struct sim_rank *to, const struct sim_event *event);

/* Does a board of this rank wait for that one? */
bool dt_sim_board_needs(const struct sim_rank *rank, size_t peer);

/* A rank has given up, and uses what it showed in place for something else. */
void dt_sim_spoil(struct sim_rank *rank);

/* Close what is left. */
void dt_sim_close_boards(struct sim_rank *rank);

/* The functions of tl.h for boards. */
dt_result_t dt_sim_board_open(struct dt_tl *tl,
                              const struct dt_board_config *config,
                              struct dt_board **board, struct dt_error *err);
void dt_sim_board_close(struct dt_board *board);
bool dt_sim_post(struct dt_board *board, uint64_t round,
                 const struct dt_piece *piece, bool *in_place);
bool dt_sim_peek(struct dt_board *board, size_t index, uint64_t round,
                 struct dt_view *view);
void dt_sim_pass(struct dt_board *board, uint64_t round);
bool dt_sim_passed(struct dt_board *board, uint64_t round);

#endif
