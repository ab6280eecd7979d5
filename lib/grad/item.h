/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* item.h - one operation on one tensor: its type, and whether two ranks mean
 * the same one. */
#ifndef DT_GRAD_ITEM_H
#define DT_GRAD_ITEM_H

#include "grad/state.h"

/* Check what the caller gives, and copy it: shape and splits. n: ranks of the
 * set. Errors: INVALID_ARG, UNSUPPORTED, NO_MEMORY. */
dt_result_t dt_item_init(struct dt_item *item, const struct dt_grad_op *op,
                         int n, struct dt_error *err);

/* Are the buffers there that rank `me` of the set needs? Errors: INVALID_ARG.
 */
dt_result_t dt_item_check_buffers(const struct dt_item *item, int me,
                                  struct dt_error *err);

/* Free what the item owns, but not the item. */
void dt_item_fini(struct dt_item *item);

/* Elements in all, and in one row (all dimensions but the first). */
size_t dt_item_count(const struct dt_item_type *type);
size_t dt_item_row(const struct dt_item_type *type);

/* Bytes that this rank's in and out have; 0 for what it does not use. */
size_t dt_item_in_bytes(const struct dt_item *item,
                        const struct dt_grad_set *set);
size_t dt_item_out_bytes(const struct dt_item *item,
                         const struct dt_grad_set *set);

/* Rows of a reducescatter of `rows` in all that rank r of n gets. */
int64_t dt_item_share(int64_t rows, int r, int n);

/* The reduction op that the collective does for a gradient of this type: 16-bit
 * types are averaged by it, wider ones are summed and divided after. Both add
 * first: a sum that F16 cannot hold is infinite, unless prescale makes it
 * smaller. */
dt_op_t dt_item_wire_op(const struct dt_item_type *type);

/* Does it go in 8 bits per element, as lib/grad/compress/int8.h has it? */
bool dt_item_is_quantized(const struct dt_item_type *type);

/* "allreduce", ... */
const char *dt_item_kind(uint8_t kind);

/* Does b, of another rank, mean the same as a? Else false, and what differs:
 * "type f32", "type f64". */
#define DT_ITEM_TEXT 160
bool dt_item_agrees(const struct dt_item_type *a, const struct dt_item_type *b,
                    char a_has[DT_ITEM_TEXT], char b_has[DT_ITEM_TEXT]);

#endif
