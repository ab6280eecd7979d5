/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* map.h - the nodes of a step, the addresses of their daemons, and the ranks on
 * each. The same on all nodes. Pure. */
#ifndef DT_MESH_MAP_H
#define DT_MESH_MAP_H

#include "mesh/wire.h"

/* One node. */
struct dt_map_entry {
    uint32_t node;
    char name[256]; /* Slurm's name of it, with its NUL */
    uint8_t ip[16]; /* of the daemon's listener; IPv4 as ::ffff:a.b.c.d */
    uint16_t port;
    uint32_t *ranks; /* rising; from malloc */
    size_t nranks;
    uint16_t *held; /* ports kept for the ranks' programs; from malloc */
    size_t nheld;
};

/* Limits of a map. */
#define DT_MAP_MAX_NODES (1 << 17)
#define DT_MAP_MAX_RANKS (1 << 24)

struct dt_map {
    size_t nodes, ranks;
    struct dt_map_entry *entry; /* [nodes], from malloc */
    uint32_t *node_of;          /* [ranks] */
};

void dt_map_entry_free(struct dt_map_entry *entry);

/* An entry as the body of a frame of that kind (ENTRY), ranks as ranges. */
void dt_map_entry_pack(struct dt_frame *frame,
                       const struct dt_map_entry *entry);
/* What follows it is left in body. CORRUPT: not an entry, with the reason.
 * Bounded by what the bytes hold, and by ranks < limit. *entry is the caller's
 * to free. */
dt_result_t dt_map_entry_unpack(struct dt_cursor *body, size_t limit,
                                struct dt_map_entry *entry,
                                struct dt_error *err);

/* Make a map of nodes entries, in any order, which it takes (they are from
 * malloc). MISMATCH, and the entries stay the caller's: a node or a rank is
 * claimed twice (names both nodes), or missing. */
dt_result_t dt_map_create(struct dt_map **map, struct dt_map_entry *entries,
                          size_t nodes, size_t ranks, struct dt_error *err);
void dt_map_destroy(struct dt_map *map);

/* The whole map as a frame of kind MAP, and back. CORRUPT, MISMATCH. */
dt_result_t dt_map_pack(const struct dt_map *map, struct dt_frame **frame,
                        struct dt_error *err);
dt_result_t dt_map_unpack(const struct dt_frame *frame, struct dt_map **map,
                          struct dt_error *err);

/* The tree of collectives and events: each node but the first has a
 * parent of lower number, at most DT_MESH_WIDTH children. */
#define DT_MESH_WIDTH 8
static inline size_t dt_tree_parent(size_t i)
{
    return (i - 1) / DT_MESH_WIDTH;
}
static inline size_t dt_tree_child(size_t i, size_t k)
{
    return i * DT_MESH_WIDTH + 1 + k;
}

#endif
