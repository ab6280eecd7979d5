/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* model.h - the tensors of checkpoints that a test makes itself: their
 * values, and how they are cut. */
#ifndef CKPT_MODEL_H
#define CKPT_MODEL_H

#include "state.h"

enum { MODEL_COUNT = 8, MODEL_RANKS = 8 };

/* What the program has. wide: only where it is asked for. */
extern const struct model_tensor {
    const char *name;
    enum dt_manifest_kind kind;
    bool replicated, wide;
    dt_dtype_t dtype;
    int ndim;
    int64_t shape[3];
} model[MODEL_COUNT];

/* Is tensor i among them? */
bool model_has(const struct state *state, size_t i);

/* Fill this part of a tensor, or see whether it is filled. */
bool model_fill(const struct dt_tensor *type, const int64_t *at,
                const int64_t *extent, unsigned salt, void *data, bool compare);
unsigned model_salt(const struct state *state, enum dt_manifest_kind kind,
                    bool replicated, int rank);

/* This rank's box of tensor i when it is cut for size ranks, MODEL_RANKS at
 * the most. */
void model_box(const struct state *state, size_t i, int size, int rank,
               int64_t *at, int64_t *extent);

#endif
