/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* store.h - what the ranks of the job have published, kept by the server of the
 * root node for all nodes. If that node is lost, so is what was published, and
 * the next root begins with an empty store. The requests:
 *
 *   DT_ASK_PUBLISH    who | range u8 | persistence u8 |
 *                     count u32 | count times: key blob | value blob
 *   DT_ASK_LOOKUP     who | range u8 (0: all) | wanted u32 | timeout u64 |
 *                     count u32 | count times: key blob
 *   DT_ASK_UNPUBLISH  who | range u8 (0: all) |
 *                     count u32 (0: all) | count times: key blob
 *   who             = proc | incarnation u32
 *
 * The reply is a PMIx status; for DT_ASK_LOOKUP with, for each key that is
 * there,
 *
 *   owner proc | key blob | value blob
 *
 * A value is bytes of pack.h, which are not interpreted here. A lookup waits
 * until `wanted` of its keys are there, for `timeout` ms; 0: for ever. */
#ifndef DT_PMIX_STORE_H
#define DT_PMIX_STORE_H

#include <stddef.h>
#include <stdint.h>

struct dt_mesh;

/* Begin with all zero. */
struct dt_pmix_store {
    struct dt_pmix_item *items;     /* newest first */
    size_t count, bytes;            /* of them */
    struct dt_pmix_lookup *waiting; /* for missing keys, oldest first */
};

/* Answer a request, now or later, by mesh. A key is unique in its range. LOCAL
 * is visible to the ranks of the publisher's node, PROC_LOCAL to the publisher,
 * the others to all ranks. */
void dt_pmix_store_asked(struct dt_pmix_store *store, struct dt_mesh *mesh,
                         size_t from_node, uint64_t ticket, uint32_t what,
                         const void *data, size_t len);

/* Fail the lookups that have timed out. */
void dt_pmix_store_expire(struct dt_pmix_store *store, struct dt_mesh *mesh);

/* When the next one does, of the clock of dt_pmix_now, or DT_NEVER. */
int64_t dt_pmix_store_due(const struct dt_pmix_store *store);

/* This incarnation of the rank has ended: remove what it published for its own
 * lifetime only, and let its lookups time out. */
void dt_pmix_store_forget(struct dt_pmix_store *store, size_t rank,
                          uint32_t incarnation);

void dt_pmix_store_free(struct dt_pmix_store *store);

#endif
