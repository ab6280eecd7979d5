/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* key.c - the keys of collectives, and the tree of each. */
#include "mesh/key.h"

#include <stdlib.h>
#include <string.h>

/* The fields of a key's bytes. */
struct parts {
    uint64_t incarnations;
    struct dt_cursor ranges;
    size_t n;
};

struct range {
    size_t first, last;
};

static struct range next_range(struct dt_cursor *ranges)
{
    struct range range;
    range.first = dt_cursor_uint(ranges, 4);
    range.last = dt_cursor_uint(ranges, 4);
    return range;
}

/* ---- written ---- */

static bool valid(const struct dt_mesh *mesh, const struct dt_collective *what)
{
    bool one_here = false;
    for (size_t i = 0; i < what->nranks; i++) {
        if (what->ranks[i] >= mesh->map->ranks ||
            (i > 0 && what->ranks[i] <= what->ranks[i - 1]))
            return false;
        one_here |= mesh->map->node_of[what->ranks[i]] == mesh->self;
    }
    return one_here;
}

/* The index after the run of consecutive ranks at i. */
static size_t run_end(const struct dt_collective *what, size_t i)
{
    for (i++; i < what->nranks && what->ranks[i] == what->ranks[i - 1] + 1;)
        i++;
    return i;
}

dt_result_t dt_key_bytes(struct dt_mesh *mesh, const struct dt_collective *what,
                         struct dt_frame **frame)
{
    uint64_t incarnations = 0;
    uint32_t runs = 0;
    if (!valid(mesh, what))
        return DT_ERR_INVALID_ARG;
    for (size_t i = 0; i < what->nranks; i++) {
        const struct dt_mesh_rank *r = &mesh->members.rank[what->ranks[i]];
        if (r->ended)
            return DT_ERR_PROC_FAILED;
        incarnations += r->incarnation;
    }
    for (size_t i = 0; i < what->nranks; i = run_end(what, i))
        runs++;
    struct dt_frame *f = dt_frame_begin(DT_WIRE_COLLECT);
    dt_frame_uint(f, 4, what->what);
    dt_frame_uint(f, 8, incarnations);
    dt_frame_blob(f, what->name, strlen(what->name));
    dt_frame_uint(f, 4, runs);
    for (size_t i = 0, end; i < what->nranks; i = end) {
        end = run_end(what, i);
        dt_frame_uint(f, 4, what->ranks[i]);
        dt_frame_uint(f, 4, what->ranks[end - 1]);
    }
    dt_result_t rc = dt_frame_end(&f, NULL);
    if (rc == DT_SUCCESS)
        *frame = f;
    return rc;
}

/* ---- read ---- */

static struct parts split(const void *bytes, size_t len)
{
    struct parts parts;
    const void *name;
    size_t name_len;
    parts.ranges = dt_cursor(bytes, len);
    dt_cursor_uint(&parts.ranges, 4);
    parts.incarnations = dt_cursor_uint(&parts.ranges, 8);
    dt_cursor_blob(&parts.ranges, &name, &name_len);
    parts.n = dt_cursor_uint(&parts.ranges, 4);
    return parts;
}

static bool well_formed(const struct dt_mesh *mesh, const struct parts *parts)
{
    struct dt_cursor c = parts->ranges;
    size_t beyond = 0; /* the lowest rank that may come next */
    if (c.failed || parts->n == 0 || (size_t)(c.end - c.at) != parts->n * 8)
        return false;
    for (size_t i = 0; i < parts->n; i++) {
        struct range range = next_range(&c);
        if (range.first < beyond || range.first > range.last ||
            range.last >= mesh->map->ranks)
            return false;
        beyond = range.last + 2; /* adjacent ranges would be one */
    }
    return true;
}

/* Mark the nodes of its ranks, and sum up their state. */
static void survey(struct dt_mesh *mesh, const struct parts *parts,
                   struct dt_key *key)
{
    struct dt_cursor c = parts->ranges;
    for (size_t i = 0; i < parts->n; i++) {
        struct range range = next_range(&c);
        for (size_t r = range.first; r <= range.last; r++) {
            size_t node = mesh->map->node_of[r];
            mesh->marks[node / 64] |= (uint64_t)1 << node % 64;
            key->now += mesh->members.rank[r].incarnation;
            key->ended += mesh->members.rank[r].ended;
        }
    }
}

/* The marked node at this position among the marked ones, from where the last
 * call ended; DT_NO_NODE if there are fewer. */
struct walk {
    const struct dt_mesh *mesh;
    size_t word, before;
};

static size_t walk_to(struct walk *walk, size_t position)
{
    for (; walk->word <= walk->mesh->map->nodes / 64; walk->word++) {
        uint64_t bits = walk->mesh->marks[walk->word];
        size_t n = (size_t)__builtin_popcountll(bits);
        if (position - walk->before < n) {
            for (size_t i = walk->before; i < position; i++)
                bits &= bits - 1;
            return walk->word * 64 + (size_t)__builtin_ctzll(bits);
        }
        walk->before += n;
    }
    return DT_NO_NODE;
}

/* How many marked nodes have a lower number? */
static size_t marked_below(const struct dt_mesh *mesh, size_t node)
{
    size_t n = 0;
    for (size_t i = 0; i < node / 64; i++)
        n += (size_t)__builtin_popcountll(mesh->marks[i]);
    return n + (size_t)__builtin_popcountll(mesh->marks[node / 64] &
                                            (((uint64_t)1 << node % 64) - 1));
}

/* False: this node is not marked. */
static bool grow_tree(struct dt_mesh *mesh, struct dt_key *key)
{
    struct walk walk = {.mesh = mesh};
    bool member = mesh->marks[mesh->self / 64] >> mesh->self % 64 & 1;
    key->position = marked_below(mesh, mesh->self);
    key->nodes = marked_below(mesh, mesh->map->nodes);
    key->parent = DT_NO_NODE;
    if (key->position > 0)
        key->parent = walk_to(&walk, dt_tree_parent(key->position));
    for (size_t k = 0; k < DT_MESH_WIDTH; k++) {
        size_t position = dt_tree_child(key->position, k);
        if (position < key->nodes)
            key->child[key->nchild++] = walk_to(&walk, position);
    }
    memset(mesh->marks, 0, (mesh->map->nodes / 64 + 1) * sizeof(uint64_t));
    return member;
}

static dt_result_t new_key(struct dt_mesh *mesh, const void *bytes, size_t len,
                           struct dt_key **key, struct dt_error *err)
{
    struct parts parts = split(bytes, len);
    if (!well_formed(mesh, &parts))
        return dt_error_set(err, DT_ERR_CORRUPT,
                            "a collective's key of %zu bytes is malformed",
                            len);
    struct dt_key *k = NULL;
    if (mesh->keys.count < DT_MESH_PENDING)
        k = calloc(1, sizeof(*k) + len);
    if (!k)
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "no room for one more collective, there are %zu",
                            mesh->keys.count);
    k->incarnations = parts.incarnations;
    k->len = len;
    memcpy(k->bytes, bytes, len);
    survey(mesh, &parts, k);
    dt_result_t rc = DT_SUCCESS;
    if (!grow_tree(mesh, k))
        rc = dt_error_set(err, DT_ERR_CORRUPT,
                          "a collective without ranks of node %zu came there",
                          mesh->self);
    else if (dt_key_stale(k))
        rc = DT_ERR_NOT_FOUND;
    if (rc != DT_SUCCESS)
        free(k);
    else
        *key = k;
    return rc;
}

dt_result_t dt_key_find(struct dt_mesh *mesh, const void *bytes, size_t len,
                        struct dt_key **key, struct dt_error *err)
{
    uint64_t hash = dt_table_hash(bytes, len);
    struct dt_table_item *item = NULL;
    struct dt_key *k = NULL;
    while ((item = dt_table_find(&mesh->keys, hash, item))) {
        k = (struct dt_key *)item;
        if (k->len == len && memcmp(k->bytes, bytes, len) == 0) {
            *key = k;
            return DT_SUCCESS;
        }
    }
    dt_result_t rc = new_key(mesh, bytes, len, &k, err);
    if (rc != DT_SUCCESS)
        return rc;
    k->item.hash = hash;
    if (dt_table_add(&mesh->keys, &k->item) != DT_SUCCESS) {
        free(k);
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "no memory for one more collective");
    }
    *key = k;
    return DT_SUCCESS;
}

bool dt_key_has(const struct dt_key *key, size_t rank)
{
    struct parts parts = split(key->bytes, key->len);
    size_t low = 0, high = parts.n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        struct dt_cursor c = parts.ranges;
        dt_cursor_bytes(&c, middle * 8);
        struct range range = next_range(&c);
        if (rank < range.first)
            high = middle;
        else if (rank > range.last)
            low = middle + 1;
        else
            return true;
    }
    return false;
}

bool dt_key_stale(const struct dt_key *key)
{
    return key->incarnations < key->now ||
           (key->incarnations == key->now && key->ended > 0);
}

void dt_key_free(struct dt_mesh *mesh, struct dt_key *key)
{
    dt_table_remove(&mesh->keys, &key->item);
    free(key);
}

size_t dt_key_below(const struct dt_key *key, size_t i)
{
    size_t first = dt_tree_child(key->position, i), last = first, n = 0;
    while (first < key->nodes) {
        n += (last < key->nodes ? last + 1 : key->nodes) - first;
        first = dt_tree_child(first, 0);
        last = dt_tree_child(last, DT_MESH_WIDTH - 1);
    }
    return n;
}
