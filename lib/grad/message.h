/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* message.h - what a rank tells of its work in a round of negotiation.
 *
 *   request   u8 work kind | u32 plan | u16 length, name | u16 items, each:
 *   item      u8 kind, dtype, wire, op, place | u32 element | i32 root
 *             | f64 prescale, postscale | u8 ndim, i64 shape[ndim]
 *             | u32 count, i64 splits[count]
 *
 * All numbers are little-endian. A body is any number of requests. */
#ifndef DT_GRAD_MESSAGE_H
#define DT_GRAD_MESSAGE_H

#include "base/cursor.h"
#include "grad/state.h"

/* A request of another rank, while it is read. */
struct dt_message {
    enum dt_work_kind kind;
    uint32_t plan;
    char name[1024];
    int n; /* items that follow */
};

/* Append work to what the round will tell. Errors: NO_MEMORY. */
dt_result_t dt_message_append(struct dt_round *round,
                              const struct dt_grad_work *work,
                              struct dt_error *err);

/* Read the head of the next request. False at the end of the body, and where it
 * is damaged: cursor->failed. */
bool dt_message_read(struct dt_cursor *cursor, struct dt_message *message);

/* Read one of its items. *splits is allocated, for the caller to free, or NULL;
 * count is how many. False where it is damaged or memory is out. */
bool dt_message_read_item(struct dt_cursor *cursor, struct dt_item_type *type,
                          int64_t **splits, uint32_t *count);

#endif
