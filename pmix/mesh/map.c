/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* map.c - the nodes and ranks of a step: entries and maps as bytes, and the
 * check that each node and each rank is there once. */
#include <stdlib.h>
#include <string.h>

#include "mesh/map.h"

/* An entry without ranks and with a name of one byte; a range of ranks; a port.
 */
enum { ENTRY_LEAST = 4 + 2 + 16 + 1 + 1 + 4 + 4, RANGE = 8, PORT = 2 };

void dt_map_entry_free(struct dt_map_entry *entry)
{
    free(entry->ranks);
    free(entry->held);
    entry->ranks = NULL;
    entry->held = NULL;
    entry->nranks = entry->nheld = 0;
}

/* ---- as bytes ---- */

/* How many ranks from the i-th on are consecutive. */
static size_t run_length(const struct dt_map_entry *entry, size_t i)
{
    size_t n = 1;
    while (i + n < entry->nranks && entry->ranks[i + n] == entry->ranks[i] + n)
        n++;
    return n;
}

void dt_map_entry_pack(struct dt_frame *frame, const struct dt_map_entry *entry)
{
    size_t name_len = strnlen(entry->name, sizeof(entry->name) - 1);
    size_t ranges = 0;
    for (size_t i = 0; i < entry->nranks; i += run_length(entry, i))
        ranges++;
    dt_frame_uint(frame, 4, entry->node);
    dt_frame_uint(frame, 2, entry->port);
    dt_frame_bytes(frame, entry->ip, sizeof(entry->ip));
    dt_frame_uint(frame, 1, name_len);
    dt_frame_bytes(frame, entry->name, name_len);
    dt_frame_uint(frame, 4, ranges);
    for (size_t i = 0, n; i < entry->nranks; i += n) {
        n = run_length(entry, i);
        dt_frame_uint(frame, 4, entry->ranks[i]);
        dt_frame_uint(frame, 4, n);
    }
    dt_frame_uint(frame, 4, entry->nheld);
    for (size_t i = 0; i < entry->nheld; i++)
        dt_frame_uint(frame, PORT, entry->held[i]);
}

/* Names are printed in lines of text: graphic ASCII, at least one byte. */
static bool name_good(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (name[i] <= ' ' || name[i] > '~')
            return false;
    return len > 0;
}

/* Check n ranges and count their ranks: at most limit, as they rise. */
static dt_result_t count_ranks(struct dt_cursor ranges, size_t n, size_t limit,
                               size_t *nranks, struct dt_error *err)
{
    uint64_t free_from = 0;
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t first = dt_cursor_uint(&ranges, 4);
        uint64_t count = dt_cursor_uint(&ranges, 4);
        if (count == 0 || first < free_from || first + count > limit)
            return dt_error_set(err, DT_ERR_CORRUPT,
                                "range %zu of a node's ranks is %llu+%llu, "
                                "expected some from %llu on, below %zu",
                                i, (unsigned long long)first,
                                (unsigned long long)count,
                                (unsigned long long)free_from, limit);
        free_from =
            first + count + 1; /* an adjacent range would be one with it */
        total += count;
    }
    *nranks = total;
    return DT_SUCCESS;
}

static dt_result_t unpack_ranks(struct dt_cursor *body, size_t limit,
                                struct dt_map_entry *entry,
                                struct dt_error *err)
{
    size_t ranges = dt_cursor_uint(body, 4);
    const void *bytes = dt_cursor_bytes(body, ranges * RANGE);
    if (!bytes)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "the entry of a node is cut short");
    struct dt_cursor cursor = dt_cursor(bytes, ranges * RANGE);
    dt_result_t rc = count_ranks(cursor, ranges, limit, &entry->nranks, err);
    if (rc != DT_SUCCESS)
        return rc;
    entry->ranks = malloc((entry->nranks + 1) * sizeof(*entry->ranks));
    if (!entry->ranks)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for %zu ranks",
                            entry->nranks);
    for (size_t i = 0; i < entry->nranks;) {
        uint32_t first = (uint32_t)dt_cursor_uint(&cursor, 4);
        uint32_t count = (uint32_t)dt_cursor_uint(&cursor, 4);
        for (uint32_t k = 0; k < count; k++)
            entry->ranks[i++] = first + k;
    }
    return DT_SUCCESS;
}

static dt_result_t unpack_ports(struct dt_cursor *body,
                                struct dt_map_entry *entry,
                                struct dt_error *err)
{
    size_t n = dt_cursor_uint(body, 4);
    const void *bytes = dt_cursor_bytes(body, n * PORT);
    if (!bytes)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "the entry of a node is cut short");
    if (!n)
        return DT_SUCCESS;
    struct dt_cursor cursor = dt_cursor(bytes, n * PORT);
    entry->held = malloc(n * sizeof(*entry->held));
    if (!entry->held)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for %zu ports",
                            n);
    entry->nheld = n;
    for (size_t i = 0; i < n; i++)
        entry->held[i] = (uint16_t)dt_cursor_uint(&cursor, PORT);
    return DT_SUCCESS;
}

dt_result_t dt_map_entry_unpack(struct dt_cursor *body, size_t limit,
                                struct dt_map_entry *entry,
                                struct dt_error *err)
{
    struct dt_map_entry got = {0};
    got.node = (uint32_t)dt_cursor_uint(body, 4);
    got.port = (uint16_t)dt_cursor_uint(body, 2);
    const void *ip = dt_cursor_bytes(body, sizeof(got.ip));
    size_t name_len = dt_cursor_uint(body, 1);
    const void *name = dt_cursor_bytes(body, name_len);
    if (!name)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "the entry of a node is cut short");
    if (!name_good(name, name_len))
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "the name of node %u is empty, or not ASCII",
                            got.node);
    memcpy(got.ip, ip, sizeof(got.ip));
    memcpy(got.name, name, name_len);
    dt_result_t rc = unpack_ranks(body, limit, &got, err);
    if (rc == DT_SUCCESS)
        rc = unpack_ports(body, &got, err);
    if (rc == DT_SUCCESS)
        *entry = got;
    else
        dt_map_entry_free(&got);
    return rc;
}

/* ---- the check ---- */

/* Is each node there once? owner, all zero, has room for nodes. */
static dt_result_t check_nodes(const struct dt_map_entry *entries, size_t nodes,
                               uint32_t *owner, struct dt_error *err)
{
    for (size_t i = 0; i < nodes; i++) {
        uint32_t node = entries[i].node;
        if (node >= nodes)
            return dt_error_set(
                err, DT_ERR_MISMATCH,
                "%s claims to be node %u, expected less than %zu",
                entries[i].name, node, nodes);
        if (owner[node])
            return dt_error_set(err, DT_ERR_MISMATCH,
                                "node %u is claimed by %s and %s", node,
                                entries[owner[node] - 1].name, entries[i].name);
        owner[node] = (uint32_t)i + 1;
    }
    return DT_SUCCESS;
}

static dt_result_t claim_ranks(const struct dt_map_entry *entries, size_t i,
                               size_t ranks, uint32_t *owner,
                               struct dt_error *err)
{
    for (size_t k = 0; k < entries[i].nranks; k++) {
        uint32_t rank = entries[i].ranks[k];
        if (rank >= ranks)
            return dt_error_set(err, DT_ERR_MISMATCH,
                                "%s claims rank %u, expected less than %zu",
                                entries[i].name, rank, ranks);
        if (owner[rank])
            return dt_error_set(err, DT_ERR_MISMATCH,
                                "rank %u is claimed by %s and %s", rank,
                                entries[owner[rank] - 1].name, entries[i].name);
        owner[rank] = (uint32_t)i + 1;
    }
    return DT_SUCCESS;
}

/* Is each rank there once? owner, all zero, has room for ranks; it is set to
 * the number of each one's entry, from 1. */
static dt_result_t check_ranks(const struct dt_map_entry *entries, size_t nodes,
                               size_t ranks, uint32_t *owner,
                               struct dt_error *err)
{
    for (size_t i = 0; i < nodes; i++) {
        dt_result_t rc = claim_ranks(entries, i, ranks, owner, err);
        if (rc != DT_SUCCESS)
            return rc;
    }
    for (size_t rank = 0; rank < ranks; rank++)
        if (!owner[rank])
            return dt_error_set(err, DT_ERR_MISMATCH,
                                "rank %zu is on no node, expected each of %zu "
                                "on one",
                                rank, ranks);
    return DT_SUCCESS;
}

/* Sort the entries by their nodes. */
static void sort_entries(struct dt_map_entry *entries, size_t nodes)
{
    for (size_t i = 0; i < nodes; i++)
        while (entries[i].node != i) {
            struct dt_map_entry entry = entries[i];
            entries[i] = entries[entry.node];
            entries[entry.node] = entry;
        }
}

static dt_result_t check_all(const struct dt_map_entry *entries, size_t nodes,
                             size_t ranks, uint32_t *owner,
                             struct dt_error *err)
{
    uint32_t *seen = calloc(nodes, sizeof(*seen));
    if (!seen)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for %zu nodes",
                            nodes);
    dt_result_t rc = check_nodes(entries, nodes, seen, err);
    free(seen);
    return rc != DT_SUCCESS ? rc
                            : check_ranks(entries, nodes, ranks, owner, err);
}

dt_result_t dt_map_create(struct dt_map **map, struct dt_map_entry *entries,
                          size_t nodes, size_t ranks, struct dt_error *err)
{
    if (nodes == 0 || nodes > DT_MAP_MAX_NODES || ranks == 0 ||
        ranks > DT_MAP_MAX_RANKS)
        return dt_error_set(err, DT_ERR_MISMATCH,
                            "%zu nodes and %zu ranks, expected 1 to %d and 1 "
                            "to %d",
                            nodes, ranks, DT_MAP_MAX_NODES, DT_MAP_MAX_RANKS);
    struct dt_map *made = malloc(sizeof(*made));
    uint32_t *owner = calloc(ranks, sizeof(*owner));
    dt_result_t rc =
        made && owner ? check_all(entries, nodes, ranks, owner, err)
                      : dt_error_set(err, DT_ERR_NO_MEMORY,
                                     "no memory for a map of %zu ranks", ranks);
    if (rc != DT_SUCCESS)
        goto free_made;
    for (size_t rank = 0; rank < ranks; rank++)
        owner[rank] = entries[owner[rank] - 1].node;
    sort_entries(entries, nodes);
    *made = (struct dt_map){nodes, ranks, entries, owner};
    *map = made;
    return DT_SUCCESS;

free_made:
    free(owner);
    free(made);
    return rc;
}

static void entries_free(struct dt_map_entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dt_map_entry_free(&entries[i]);
    free(entries);
}

void dt_map_destroy(struct dt_map *map)
{
    if (!map)
        return;
    entries_free(map->entry, map->nodes);
    free(map->node_of);
    free(map);
}

/* ---- the whole map ---- */

dt_result_t dt_map_pack(const struct dt_map *map, struct dt_frame **frame,
                        struct dt_error *err)
{
    struct dt_frame *made = dt_frame_begin(DT_WIRE_MAP);
    dt_frame_uint(made, 4, map->nodes);
    dt_frame_uint(made, 4, map->ranks);
    for (size_t i = 0; i < map->nodes; i++)
        dt_map_entry_pack(made, &map->entry[i]);
    dt_result_t rc = dt_frame_end(&made, err);
    if (rc == DT_SUCCESS)
        *frame = made;
    return rc;
}

/* Read nodes entries, *got of which are there also on failure. Together they
 * have no more than ranks: a few bytes of each entry can claim many. */
static dt_result_t unpack_entries(struct dt_cursor *body, size_t nodes,
                                  size_t ranks, struct dt_map_entry *entries,
                                  size_t *got, struct dt_error *err)
{
    size_t left = ranks;
    while (*got < nodes) {
        struct dt_map_entry *entry = &entries[*got];
        dt_result_t rc = dt_map_entry_unpack(body, ranks, entry, err);
        if (rc != DT_SUCCESS)
            return rc;
        ++*got;
        if (entry->nranks > left)
            return dt_error_set(err, DT_ERR_MISMATCH,
                                "the nodes claim more than the %zu ranks "
                                "there are",
                                ranks);
        left -= entry->nranks;
    }
    if (body->at != body->end)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "%zu bytes follow the map, expected none",
                            (size_t)(body->end - body->at));
    return DT_SUCCESS;
}

dt_result_t dt_map_unpack(const struct dt_frame *frame, struct dt_map **map,
                          struct dt_error *err)
{
    struct dt_cursor body = dt_frame_body(frame);
    size_t nodes = dt_cursor_uint(&body, 4);
    size_t ranks = dt_cursor_uint(&body, 4);
    size_t most = (size_t)(body.end - body.at) / ENTRY_LEAST, got = 0;
    if (most > DT_MAP_MAX_NODES)
        most = DT_MAP_MAX_NODES;
    if (dt_frame_kind(frame) != DT_WIRE_MAP)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "a message of kind %d, expected a map, %d",
                            dt_frame_kind(frame), DT_WIRE_MAP);
    if (nodes == 0 || nodes > most || ranks > DT_MAP_MAX_RANKS)
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "a map of %zu nodes and %zu ranks, expected 1 to "
                            "%zu, which its bytes can hold, and at most %d",
                            nodes, ranks, most, DT_MAP_MAX_RANKS);
    struct dt_map_entry *entries = malloc(nodes * sizeof(*entries));
    if (!entries)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for %zu nodes",
                            nodes);
    dt_result_t rc = unpack_entries(&body, nodes, ranks, entries, &got, err);
    if (rc == DT_SUCCESS)
        rc = dt_map_create(map, entries, nodes, ranks, err);
    if (rc != DT_SUCCESS)
        entries_free(entries, got);
    return rc;
}
