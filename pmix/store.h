/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* store.h - the job's notice board: kept by the server of the step's root
 * node, for all. When that node is lost so is what was published; the next
 * root begins with an empty board. What the questions look like:
 *
 *   DT_ASK_PUBLISH    who | range u8 | persistence u8 |
 *                     count u32 | count times: key blob | value blob
 *   DT_ASK_LOOKUP     who | range u8 (0: all) | wanted u32 | timeout u64 |
 *                     count u32 | count times: key blob
 *   DT_ASK_UNPUBLISH  who | range u8 (0: all) |
 *                     count u32 (0: all) | count times: key blob
 *   who             = proc | incarnation u32
 *
 * The answer is a PMIx status; that of DT_ASK_LOOKUP brings, for each key that
 * is there, until its end,
 *
 *   owner proc | key blob | value blob
 *
 * A value is bytes of pack.h, here never looked into. A lookup waits until
 * `wanted` of its keys are there, for `timeout` ms; 0 is for ever. */
#ifndef DT_PMIX_STORE_H
#define DT_PMIX_STORE_H

#include <stddef.h>
#include <stdint.h>

struct dt_pmix;

/* Begin with all zero. */
struct dt_pmix_store {
    struct dt_pmix_item *items;     /* newest first */
    size_t count, bytes;            /* of them */
    struct dt_pmix_lookup *waiting; /* for keys that are not there, oldest
                                     * first */
    struct dt_pmix_question *asked; /* publish.c: our questions, unanswered */
};

/* A key is unique in its range. LOCAL is visible to the ranks of the
 * publisher's node, PROC_LOCAL to the publisher, the others to all ranks. */
void dt_pmix_store_asked(struct dt_pmix *pmix, size_t from_node,
                         uint64_t ticket, uint32_t what, const void *data,
                         size_t len);

/* Fail the lookups whose time is over. */
void dt_pmix_store_expire(struct dt_pmix *pmix);

/* When the next one is, of the clock of dt_pmix_now, or DT_NEVER. */
int64_t dt_pmix_store_due(const struct dt_pmix_store *store);

/* That life of the rank has ended: remove what it published for its life
 * only, and the lookups that it waits for. */
void dt_pmix_store_forget(struct dt_pmix_store *store, size_t rank,
                          uint32_t incarnation);

/* Also what publish.c has in it. */
void dt_pmix_store_free(struct dt_pmix_store *store);

#endif
