/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* symbol.h - the schedules of all ranks of a communicator, run in one process
 * on symbols instead of numbers: every element knows whose contributions are
 * in it, and in which order they came together. */
#ifndef SYMBOL_H
#define SYMBOL_H

#include "coll/algorithm/algorithm.h"

/* Which of the things that could happen next does. */
enum symbol_order {
    SYMBOL_FIRST,     /* what could happen first */
    SYMBOL_LAST,      /* what became possible last */
    SYMBOL_RANDOM,    /* by the seed, as in all that follow */
    SYMBOL_LATE_READ, /* nobody looks at what is posted before he must */
    SYMBOL_LATE_NET,  /* messages take longer than all else */
    SYMBOL_LATE_RANK, /* one rank is slow */
    SYMBOL_LATE_POST, /* rounds begin late */
    SYMBOL_ORDERS,
};

enum symbol_place {
    SYMBOL_APART,    /* no rank is in place */
    SYMBOL_IN_PLACE, /* all are */
    SYMBOL_MIXED,    /* the odd ones are */
    SYMBOL_PLACES,
};

struct symbol_case {
    size_t size;
    const size_t *node_of;
    size_t piece_max; /* bytes; ignored where no node has two ranks */
    struct dt_shape shape;
    enum symbol_place place;
    struct dt_tune tune;
    const char *forced;
    /* ALLTOALL: the elements from rank r to rank s at [r * size + s]; or
     * NULL */
    const size_t *matrix;
    enum symbol_order order;
    uint64_t seed;
};

/* What was seen. */
struct symbol_report {
    char why[400];     /* "" or what is wrong */
    char name[32];     /* the algorithm */
    size_t operations; /* most of a rank */
    size_t wire;       /* bytes that a node sends to others, at most */
    bool serves;       /* else nothing was run */
    uint64_t hash;     /* of all results */
};

/* Build and run one case, in memory of its own. True if all is well. */
bool symbol_run(const struct symbol_case *c, struct symbol_report *report);

#endif
