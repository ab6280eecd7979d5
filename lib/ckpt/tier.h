/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* tier.h - where checkpoints go and how many stay, from the environment
 * (DT_CKPT and those that begin with it, base/env.h). */
#ifndef DT_CKPT_TIER_H
#define DT_CKPT_TIER_H

#include "ckpt/handle.h"

/* Parse "3", "3,every:1000", or "0" for all. INVALID_ARG names source. */
dt_result_t dt_tier_parse_keep(const char *text, const char *source,
                               struct dt_keep *keep, struct dt_error *err);

/* Parse "500", which is MB/s, into bytes/s. INVALID_ARG names source. */
dt_result_t dt_tier_parse_rate(const char *text, const char *source,
                               double *rate, struct dt_error *err);

/* Set the tiers, keep, redundancy and rate of ckpt from the arguments of
 * dt_ckpt_open and the environment; dir may be NULL, keep -1. rate is that of
 * the whole node. dt_tier_clear must follow, also after an error. Errors:
 * INVALID_ARG, NO_MEMORY. */
dt_result_t dt_tier_choose(struct dt_ckpt *ckpt, const char *dir, int keep,
                           struct dt_error *err);

/* Free the names of the directories. */
void dt_tier_clear(struct dt_ckpt *ckpt);

#endif
