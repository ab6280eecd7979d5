/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* grad.h - what the ranks that test dt_grad.h share: random numbers, process
 * sets, and operations with what must come out of them. */
#ifndef GRAD_TESTS_H
#define GRAD_TESTS_H

#include "dt_grad.h"
#include "ranks.h" /* of tests/unit/coll: expect, modes, values */

enum { MOST_RANKS = 8, MOST_PARTS = 3, MOST_SETS = 6 };

/* ---- random numbers: equal seeds give equal ones on all ranks ---- */

uint64_t draw(uint64_t *state, uint64_t n);

/* Put 0 ... n-1 into order, in a random one. */
void draw_order(uint64_t *state, int *order, int n);

/* ---- the engine and its process sets ---- */

/* Open the engine; the rank ends if that fails. */
dt_grad_t begin_engine(void);
void end_engine(dt_grad_t grad);

struct set {
    int id;
    int n, ranks[MOST_RANKS];
    int me; /* this rank's number in it, or -1 */
};

/* The world, then other sets, as many as the number of ranks allows. Returns
 * how many. */
int make_sets(dt_grad_t grad, struct set sets[MOST_SETS]);

/* ---- operations ---- */

/* What is asked for; the same on all ranks. */
struct wish {
    dt_grad_kind_t kind;
    dt_dtype_t dtype, wire;
    size_t element_bytes;
    int op, root;
    int ndim;
    int64_t shape[DT_GRAD_DIMS];
    bool uneven; /* rows and splits differ from rank to rank; some are 0 */
    double prescale, postscale;
    bool in_place;
    unsigned salt; /* other salt, other numbers */
};

/* An operation of this rank. */
struct part {
    struct wish wish;
    const struct set *set;
    dt_grad_op_t op;
    int64_t shape[DT_GRAD_DIMS], splits[MOST_RANKS];
    char *in, *room; /* room: out with bytes around that nobody may touch */
    size_t in_bytes, out_bytes;
};

/* One dt_grad_start. */
struct item {
    char name[48]; /* "": none */
    int n;
    struct part parts[MOST_PARTS];
    dt_grad_work_t work;
};

/* An allreduce of a vector; the other fields as for most. */
struct wish wish_of(dt_grad_kind_t kind, dt_dtype_t dtype, int64_t rows);

/* Add an operation of the set to the item; this rank is in the set. */
void item_add(struct item *item, const struct set *set,
              const struct wish *wish);
dt_result_t item_start(struct item *item, dt_grad_t grad);

/* Wait, compare shapes, counts and contents with what must come out, and free
 * it all. Says which item is wrong. */
void item_verify(struct item *item);

/* Wait, expect this result, and free it all. Returns it. */
dt_result_t item_end(struct item *item, dt_result_t wanted);

/* An operation without a struct item: all fields, factors of 1. */
dt_grad_op_t op_of(dt_grad_kind_t kind, dt_dtype_t dtype, int ndim,
                   const int64_t *shape, const void *in, void *out);

/* How work ended, with dt_last_error() where it failed. */
struct ended {
    dt_result_t rc;
    char text[1600];
};

/* Wait for it as long as DT_TIMEOUT, and free it. */
struct ended finish(dt_grad_work_t work);

/* Start, wait, free. */
dt_result_t run_op(dt_grad_t grad, const char *name, const dt_grad_op_t *op);

/* Start an allreduce of one I32, as often as is wished, wait: it is right. */
void expect_alive(dt_grad_t grad, const char *name);

/* The world's ranks wait for each other, outside of the engine. */
void meet(void);

/* A number that is the same wherever the bytes are. */
uint64_t digest(uint64_t sofar, const void *buf, size_t len);

/* All ranks have this number. */
void expect_same(uint64_t number, const char *what);

/* ---- modes ---- */

void mode_ops(int argc, char **argv);
void mode_groups_of_ops(int argc, char **argv);
void mode_poll(int argc, char **argv);
void mode_adasum(int argc, char **argv);
void mode_process_sets(int argc, char **argv);
void mode_long(int argc, char **argv);
void mode_join(int argc, char **argv);
void mode_mismatch(int argc, char **argv);
void mode_local(int argc, char **argv);
void mode_close(int argc, char **argv);
void mode_fork(int argc, char **argv);
void mode_timeline(int argc, char **argv);
void mode_lose(int argc, char **argv);
void mode_absent(int argc, char **argv);
void mode_stall(int argc, char **argv);
void open_before_init(void);
void mode_plan(int argc, char **argv);
void mode_breaks(int argc, char **argv);
void mode_plans(int argc, char **argv);
void mode_plan_threads(int argc, char **argv);
void mode_plan_local(int argc, char **argv);
void mode_int8(int argc, char **argv);
void mode_int8_bits(int argc, char **argv);
void mode_int8_feedback(int argc, char **argv);
void mode_int8_odd(int argc, char **argv);
void mode_int8_wrong(int argc, char **argv);
void mode_random(int argc, char **argv);
void mode_orders(int argc, char **argv);

#endif
