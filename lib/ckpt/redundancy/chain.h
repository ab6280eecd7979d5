/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* chain.h - rebuilding files from blocks that many ranks have: each rank adds
 * its blocks to a sum that passes from rank to rank. */
#ifndef DT_CKPT_REDUNDANCY_CHAIN_H
#define DT_CKPT_REDUNDANCY_CHAIN_H

#include "ckpt/redundancy/plan.h"

struct dt_chain;

/* plan and source must outlive the chain. Error: NO_MEMORY. */
dt_result_t dt_chain_open(struct dt_chain **chain, const struct dt_plan *plan,
                          const struct dt_source *source, struct dt_error *err);

/* Do this rank's part of all items; an item whose worker it is has fd and
 * verify. Collective over the world. Errors of this rank alone are in *code and
 * *why, for a vote: CORRUPT if data cannot be read, IO, NO_SPACE, NO_MEMORY.
 * The return value is an error of sending or receiving. */
dt_result_t dt_chain_run(struct dt_chain *chain, dt_result_t *code,
                         struct dt_error *why, struct dt_error *err);

void dt_chain_close(struct dt_chain *chain); /* NULL is allowed */

#endif
