/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* table.h - a hash table of items that contain their link. */
#ifndef DT_MESH_TABLE_H
#define DT_MESH_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct dt_table_item {
    struct dt_table_item *next; /* in the same bucket */
    uint64_t hash;
};

/* Begin with all zero. */
struct dt_table {
    struct dt_table_item **bucket;
    size_t buckets, count;
};

/* Add item, whose hash is set. NO_MEMORY. */
dt_result_t dt_table_add(struct dt_table *table, struct dt_table_item *item);
void dt_table_remove(struct dt_table *table, struct dt_table_item *item);

/* The items of this hash, one after the other: first with after NULL. */
struct dt_table_item *dt_table_find(const struct dt_table *table, uint64_t hash,
                                    const struct dt_table_item *after);

/* Call visit for each item; it may remove the item, nothing else. */
void dt_table_each(struct dt_table *table,
                   void (*visit)(struct dt_table_item *item, void *arg),
                   void *arg);

void dt_table_free(struct dt_table *table); /* not the items */

uint64_t dt_table_hash(const void *data, size_t len);

#endif
