/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* key.h - the key of a collective among its nodes: kind, name, ranks, and the
 * sum of these ranks' incarnations. */
#ifndef DT_MESH_KEY_H
#define DT_MESH_KEY_H

#include "mesh/mesh_state.h"

struct dt_collect; /* one in flight */

struct dt_key {
    struct dt_table_item item; /* of mesh->keys */
    uint64_t incarnations;     /* sum of its ranks', as the key has it */
    uint64_t now; /* the same as this node has it; lower: an event is missing */
    size_t ended; /* of its ranks, as this node has it */
    uint32_t starts; /* here: the next one's number */
    /* The tree of the nodes that have such ranks, by their numbers. */
    size_t nodes, position; /* position: this node's among them */
    size_t parent;          /* or DT_NO_NODE */
    size_t child[DT_MESH_WIDTH], nchild;
    struct dt_collect *flights;
    size_t len;
    unsigned char bytes[];
};

/* A key's bytes, as a frame of COLLECT with nothing else: what u32 |
 * incarnations u64 | name blob | ranges u32 | (first u32 | last u32)..., the
 * ranges rising and apart. INVALID_ARG: the ranks are not as dt_collective has
 * them; PROC_FAILED: one has ended; NO_MEMORY. */
dt_result_t dt_key_bytes(struct dt_mesh *mesh, const struct dt_collective *what,
                         struct dt_frame **frame);

/* The key of these bytes: a known one, or a new one. CORRUPT; NO_MEMORY;
 * NOT_FOUND: stale. */
dt_result_t dt_key_find(struct dt_mesh *mesh, const void *bytes, size_t len,
                        struct dt_key **key, struct dt_error *err);

bool dt_key_has(const struct dt_key *key, size_t rank);
/* Does it name an incarnation that has ended? It can only fail. */
bool dt_key_stale(const struct dt_key *key);
void dt_key_free(struct dt_mesh *mesh, struct dt_key *key);

/* How many nodes are in the part of the tree under its i-th child, with it? */
size_t dt_key_below(const struct dt_key *key, size_t i);

#endif
