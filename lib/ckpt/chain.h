/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* chain.h - making lost files of pieces that many ranks have: each adds its own
 * to a sum that goes from rank to rank. */
#ifndef DT_CKPT_CHAIN_H
#define DT_CKPT_CHAIN_H

#include "ckpt/plan.h"

struct dt_chain;

/* plan and source outlive it. NO_MEMORY. */
dt_result_t dt_chain_open(struct dt_chain **chain, const struct dt_plan *plan,
                          const struct dt_source *source, struct dt_error *err);

/* Do this rank's part of all jobs; those whose worker it is have fd and verify.
 * Collective over the world. What goes wrong here alone is in *code and *why,
 * for a vote: CORRUPT of something that cannot be read, IO, NO_SPACE,
 * NO_MEMORY. Errors: those of send and receive. */
dt_result_t dt_chain_run(struct dt_chain *chain, dt_result_t *code,
                         struct dt_error *why, struct dt_error *err);

/* NULL is fine. */
void dt_chain_close(struct dt_chain *chain);

#endif
