/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* state.h - checkpoints that a test makes itself, of tensors that are cut
 * at random, and handles to load them with. */
#ifndef CKPT_STATE_H
#define CKPT_STATE_H

#include "ckpt/handle.h"
#include "fake-world.h"

struct state {
    char *dir[2];  /* of the tiers MEMORY and DIR; NULL: there is none */
    int seed;      /* how tensors are cut */
    unsigned salt; /* the values depend on this, too */
    bool own;      /* there are tensors of the ranks' own */
    bool wide;     /* and one that takes several rounds to send */
    bool empty;    /* no tensor at all: the test adds its own */

    int64_t step; /* what was loaded */
    bool right, untouched;
    int no_blob, shared_blob; /* ranks without their own, with the common one */
    char text[512];
};

/* Write step with nranks ranks into the tier directory dir. */
void state_write(const char *dir, const struct state *state, int nranks,
                 int64_t step);

/* Load as size ranks. The result if it is the same on all, else 1. */
int state_load(struct state *state, int size);
int state_latest(struct state *state, int size, int64_t *step);

/* Flip a bit in byte at (-1: the last) of rank file's file. */
void state_flip(const char *dir, int64_t step, int file, long at);
long state_size(const char *dir, int64_t step, int file);

/* In a rank: a handle with the tensors, cut for this rank; do they hold what
 * was written? */
struct dt_ckpt *state_open(const struct state *state);
bool state_holds(const struct state *state, const struct dt_ckpt *ckpt);
void state_close(struct dt_ckpt *ckpt);
int state_dirfd(const char *dir, int64_t step);

/* One tensor more; at NULL: all of it. */
dt_result_t state_add(struct dt_ckpt *ckpt, const char *name,
                      enum dt_manifest_kind kind, bool replicated,
                      dt_dtype_t dtype, int ndim, const int64_t *shape,
                      const int64_t *at, const int64_t *extent, void *data);

#endif
