/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tier.h - where checkpoints go, and how many stay, as the environment says
 * (DT_CKPT and its kin, base/env.h). */
#ifndef DT_CKPT_TIER_H
#define DT_CKPT_TIER_H

#include "ckpt/ckpt.h"

/* "3", "3,every:1000", "0" for all. INVALID_ARG names source. */
dt_result_t dt_tier_parse_keep(const char *text, const char *source,
                               struct dt_keep *keep, struct dt_error *err);

/* "500": MB/s, as bytes/s. INVALID_ARG names source. */
dt_result_t dt_tier_parse_rate(const char *text, const char *source,
                               double *rate, struct dt_error *err);

/* Fill tiers, keep, redundancy and rate of ckpt from the environment and the
 * arguments of dt_ckpt_open: dir may be NULL, keep -1. rate is the whole
 * node's. Errors: INVALID_ARG, NO_MEMORY, and whatever is set is to be freed by
 * dt_tier_clear. */
dt_result_t dt_tier_choose(struct dt_ckpt *ckpt, const char *dir, int keep,
                           struct dt_error *err);

/* Free the names. */
void dt_tier_clear(struct dt_ckpt *ckpt);

#endif
