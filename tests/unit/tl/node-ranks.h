/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* node-ranks.h - cases that a few ranks of one node run, each with its own shm
 * transport: as processes, or, for a thread sanitizer, as threads. */
#ifndef NODE_RANKS_H
#define NODE_RANKS_H

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tl/board.h"

#define NODE_RANKS 64

/* What the ranks share besides the transport. */
struct node {
    bool threads;
    _Atomic size_t entered[NODE_RANKS]; /* how many barriers */
    _Atomic int pid[NODE_RANKS];
    _Atomic uint64_t word[8]; /* for the case to use */
    size_t addr_len;
    char addr[NODE_RANKS][64];
    char complaint[NODE_RANKS][400];
};

struct node_rank {
    struct node *node;
    size_t me, size;
    struct dt_tl *tl;       /* connected; closed after the case */
    struct dt_board *board; /* of id 0 and serial 1; closed after the case */
    const void *arg;        /* the case's */
    struct dt_error err;
};

struct node_case {
    const char *name;
    void (*run)(struct node_rank *r);
    size_t sizes[4]; /* numbers of ranks to run it with */
    bool kills;      /* the last rank dies by SIGKILL: only as processes */
    const void *arg;
};

/* Run them. Arguments of the program: "threads" or "processes", then only
 * cases whose name contains this. The exit status. */
int node_run(const struct node_case *cases, size_t ncases, int argc,
             char **argv);

/* This rank has found a fault: the case has failed. */
void node_complain(struct node_rank *r, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), noreturn));

#define NEED(cond, ...)                                                        \
    do {                                                                       \
        if (!(cond))                                                           \
            node_complain(r, __LINE__, __VA_ARGS__);                           \
    } while (0)

/* Synchronize with the other ranks, without the transport. */
void node_barrier(struct node_rank *r);

/* Open a board of all ranks. */
struct dt_board *node_board(struct node_rank *r, uint32_t id, uint64_t serial);

/* Once in a while of waiting: fails the case when the transport has failed. */
void node_wait(struct node_rank *r, unsigned *turn);

/* Die by SIGKILL. */
void node_die(struct node_rank *r) __attribute__((noreturn));

/* A small generator of numbers: the next after *state. */
uint64_t node_random(uint64_t *state);

#endif
