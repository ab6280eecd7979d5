/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* stage.h - operations on tensors of a GPU that the host does: the input is
 * copied to pinned memory, the operation is that of the host, and its output is
 * copied back. All functions do nothing, and have arrived, for an item that is
 * not on a GPU. With the drive lock. */
#ifndef DT_GRAD_GPU_STAGE_H
#define DT_GRAD_GPU_STAGE_H

#include "grad/state.h"

/* Begin to copy the input; until dt_stage_end the item's in and out are in
 * pinned memory. Errors: those of gpu/gpu.h, NO_MEMORY. */
dt_result_t dt_stage_fetch(struct dt_grad *grad, struct dt_item *item,
                           const struct dt_grad_set *set, struct dt_error *err);

/* Is the last copy complete? */
bool dt_stage_has_arrived(const struct dt_item *item);

/* The output is in `out`: begin to copy it back. Errors: the same. */
dt_result_t dt_stage_return(struct dt_grad *grad, struct dt_item *item,
                            const struct dt_grad_set *set,
                            struct dt_error *err);

/* It has arrived, or failed: in and out are the caller's again. */
void dt_stage_end(struct dt_grad *grad, struct dt_item *item);

#endif
