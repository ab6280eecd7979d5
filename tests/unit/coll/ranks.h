/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ranks.h - what the modes of coll-ranks share. */
#ifndef COLL_RANKS_H
#define COLL_RANKS_H

#include "dt.h"

#define WORLD dt_comm_world(), DT_STREAM_NONE

/* A fact of this rank; the first few that do not hold are told on standard
 * error, with what libdt said last. */
__attribute__((format(printf, 2, 3))) void expect(bool cond, const char *fmt,
                                                  ...);

/* ---- coll-modes.c: what the rank is to do ---- */

struct mode {
    const char *name; /* NULL ends a list */
    void (*fn)(int argc, char **argv);
    bool leaves;          /* calls dt_finalize itself, if at all */
    void (*before)(void); /* dt_init, or NULL */
};

/* dt_init for the mode that the program's first argument names, "all" if there
 * is none; exits if that fails. */
const struct mode *begin_mode(const struct mode *modes, int argc, char **argv);

/* The end, and the exit status. */
int end_mode(const struct mode *mode);

/* ---- coll-values.c: exact numbers ---- */

/* What rank gives for element i of a reduction: so small that every partial
 * result is exact in dtype, on up to 8 ranks. */
double value_of(dt_dtype_t dtype, dt_op_t op, int rank, size_t i);

/* All ranks' values, and so the results, begin again after so many. */
size_t value_period(dt_dtype_t dtype, dt_op_t op);

/* Element i of the result, computed the slow way; post multiplies it. */
double value_reduced(dt_dtype_t dtype, dt_op_t op, int size, size_t i,
                     double post);

/* buf[i] = value, rounded to nearest even. buf need not be aligned. */
void value_put(void *buf, size_t i, dt_dtype_t dtype, double value);

/* len bytes that no other seed has. */
void value_fill(void *buf, size_t len, unsigned seed);

/* ---- the modes ---- */

void mode_all(int argc, char **argv);
void mode_wrap(int argc, char **argv);
void mode_requests(int argc, char **argv);
void mode_open_end(int argc, char **argv);
void mode_notice(int argc, char **argv);
void mode_misuse(int argc, char **argv);
void mode_check(int argc, char **argv);
void mode_comms(int argc, char **argv);
void mode_create(int argc, char **argv);
void mode_exhaust(int argc, char **argv);
void mode_threads(int argc, char **argv);
void mode_groups(int argc, char **argv);
void mode_progress(int argc, char **argv);
void misuse_before_init(void);
/* these leave the job themselves */
void mode_die(int argc, char **argv);
void mode_stop(int argc, char **argv);
void mode_amid(int argc, char **argv);
void mode_lose_open(int argc, char **argv);
void mode_lose_busy(int argc, char **argv);
void mode_disagree(int argc, char **argv);

#endif
