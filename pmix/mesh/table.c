/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* table.c - a hash table with chains; it grows. */
#include "mesh/table.h"

#include <stdlib.h>

enum { BUCKETS = 16 }; /* at first; always a power of two */

static struct dt_table_item **bucket_of(const struct dt_table *table,
                                        uint64_t hash)
{
    return &table->bucket[(hash ^ hash >> 32) & (table->buckets - 1)];
}

static void insert(struct dt_table *table, struct dt_table_item *item)
{
    struct dt_table_item **bucket = bucket_of(table, item->hash);
    item->next = *bucket;
    *bucket = item;
}

static dt_result_t grow(struct dt_table *table)
{
    struct dt_table old = *table;
    table->buckets = old.buckets ? 2 * old.buckets : BUCKETS;
    table->bucket = calloc(table->buckets, sizeof(table->bucket[0]));
    if (!table->bucket) {
        *table = old;
        return DT_ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < old.buckets; i++)
        while (old.bucket[i]) {
            struct dt_table_item *item = old.bucket[i];
            old.bucket[i] = item->next;
            insert(table, item);
        }
    free(old.bucket);
    return DT_SUCCESS;
}

dt_result_t dt_table_add(struct dt_table *table, struct dt_table_item *item)
{
    /* a full table that cannot grow only gets slower */
    if (table->count >= table->buckets && grow(table) != DT_SUCCESS &&
        table->buckets == 0)
        return DT_ERR_NO_MEMORY;
    insert(table, item);
    table->count++;
    return DT_SUCCESS;
}

void dt_table_remove(struct dt_table *table, struct dt_table_item *item)
{
    struct dt_table_item **at = bucket_of(table, item->hash);
    while (*at != item)
        at = &(*at)->next;
    *at = item->next;
    table->count--;
}

struct dt_table_item *dt_table_find(const struct dt_table *table, uint64_t hash,
                                    const struct dt_table_item *after)
{
    if (table->buckets == 0)
        return NULL;
    struct dt_table_item *item = after ? after->next : *bucket_of(table, hash);
    while (item && item->hash != hash)
        item = item->next;
    return item;
}

void dt_table_each(struct dt_table *table,
                   void (*visit)(struct dt_table_item *item, void *arg),
                   void *arg)
{
    for (size_t i = 0; i < table->buckets; i++)
        for (struct dt_table_item *item = table->bucket[i], *next; item;
             item = next) {
            next = item->next;
            visit(item, arg);
        }
}

void dt_table_free(struct dt_table *table)
{
    free(table->bucket);
    *table = (struct dt_table){0};
}

uint64_t dt_table_hash(const void *data, size_t len)
{
    const unsigned char *bytes = data;
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash;
}
