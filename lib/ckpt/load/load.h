/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* load.h - loading a checkpoint. This is the only header of load/ that other
 * folders include. */
#ifndef DT_CKPT_LOAD_LOAD_H
#define DT_CKPT_LOAD_LOAD_H

#include "ckpt/handle.h"
#include "ckpt/source.h"

/* dt_ckpt_load and dt_ckpt_latest, after the checks of their arguments. *loaded
 * is what was loaded, for dt_save_loaded. Collective; dt.h has their
 * contracts. */
dt_result_t dt_load(struct dt_ckpt *ckpt, int64_t *step,
                    struct dt_source *loaded, struct dt_error *err);
dt_result_t dt_load_latest(struct dt_ckpt *ckpt, int64_t *step,
                           struct dt_error *err);

#endif
