/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* bench.h - one process of a run */
#ifndef BENCH_H
#define BENCH_H

#include "board.h"
#include "contender.h"
#include "options.h"

struct bench {
    struct options o;
    struct meeting meeting;
    const struct contender *contender;
    unsigned turn; /* the operations so far; what is added depends on it */
};

/* What is timed: any number of operations on the same memory. */
struct work {
    void (*dirty)(struct bench *b, void *arg);
    void (*run)(struct bench *b, void *arg);
    size_t (*wrong)(struct bench *b, void *arg); /* after dirty and run */
    void *arg;
    size_t bytes, count; /* for the output */
    const char *name;
};

/* Measure it, after a warm-up, and let rank 0 print one line:
 * NAME BYTES COUNT OPERATIONS MEDIAN MIN Q1 Q3 WRONG SENT
 * in us, the longest over the ranks; SENT is the most bytes that a node's
 * interface sent for one operation. */
void bench_measure(struct bench *b, const struct work *work);

/* The modes. */
void bench_sizes(struct bench *b);
void bench_list(struct bench *b);
void bench_idle(struct bench *b);

/* Memory of the contender's own or of the kernel's, page-aligned; lives as
 * long as the process. */
void *bench_alloc(struct bench *b, size_t bytes);

/* End everything if rc is not 0: with 77 if it is 1. */
void bench_check(struct bench *b, int rc);

#endif
