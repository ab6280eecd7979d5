/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* save.h - saving a checkpoint. This is the only header of save/ that other
 * folders include. */
#ifndef DT_CKPT_SAVE_SAVE_H
#define DT_CKPT_SAVE_SAVE_H

#include "ckpt/handle.h"
#include "ckpt/save/memory.h"
#include "ckpt/source.h"

/* Set ckpt->saver. Errors: NO_MEMORY. */
dt_result_t dt_saver_open(struct dt_ckpt *ckpt, struct dt_error *err);

/* Wait until no save is under way, and free it. */
void dt_saver_close(struct dt_ckpt *ckpt);

/* Wait until no save is under way. Its result stays for dt_save_wait. */
void dt_saver_idle(struct dt_ckpt *ckpt);

/* dt_ckpt_save, dt_ckpt_save_async and dt_ckpt_wait, after the checks of their
 * arguments. Collective; dt.h has their contracts. */
dt_result_t dt_save(struct dt_ckpt *ckpt, int64_t step, struct dt_error *err);
dt_result_t dt_save_start(struct dt_ckpt *ckpt, int64_t step,
                          struct dt_error *err);
dt_result_t dt_save_wait(struct dt_ckpt *ckpt, struct dt_error *err);

/* After a load, so that what was loaded is as safe as when it was saved: in the
 * background, have parity that was lost with a node written again, and save a
 * step that only the memory of the nodes has. When it is on disk,
 * dt_saver_close removes that memory. Takes ownership of loaded. What fails is
 * printed: the program has its checkpoint. Collective; no save is under way. */
void dt_save_loaded(struct dt_ckpt *ckpt, struct dt_source *loaded);

#endif
