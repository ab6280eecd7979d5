/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* mem.c - memory that the ranks of a node share, and memory pinned for the
 * network. */
#include "coll/engine/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tl/board.h"

/* Where a piece comes from. */
enum source {
    SHARED,  /* the node's transport */
    PRIVATE, /* mmap, where no other rank is near */
    USER,    /* the caller's own, registered */
};

struct dt_memory {
    struct dt_memory *next;
    enum source source;
    char *ptr;
    size_t size;
    void *handles[DT_CARD_TLS]; /* USER */
};

static void add(struct dt_world *world, struct dt_memory *piece)
{
    piece->next = world->memory;
    world->memory = piece;
}

/* The piece that begins at ptr, and where it hangs. */
static struct dt_memory **find(struct dt_world *world, const void *ptr,
                               bool user)
{
    struct dt_memory **at = &world->memory;
    while (*at && ((*at)->ptr != ptr || ((*at)->source == USER) != user))
        at = &(*at)->next;
    return at;
}

static void drop(struct dt_memory **at)
{
    struct dt_memory *piece = *at;
    *at = piece->next;
    free(piece);
}

/* ---- alloc ---- */

static dt_result_t map_private(struct dt_memory *piece, struct dt_error *err)
{
    void *ptr = mmap(NULL, piece->size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ptr == MAP_FAILED)
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "dt_mem_alloc: %zu bytes: %s", piece->size,
                            strerror(errno));
    piece->source = PRIVATE;
    piece->ptr = ptr;
    return DT_SUCCESS;
}

static dt_result_t fill(struct dt_world *world, struct dt_memory *piece,
                        struct dt_error *err)
{
    struct dt_tl *tl = dt_world_node_tl(world);
    void *ptr;
    if (!tl || !tl->boards->mem_alloc)
        return map_private(piece, err);
    dt_result_t rc = tl->boards->mem_alloc(tl, piece->size, &ptr, err);
    if (rc != DT_SUCCESS)
        return rc;
    piece->source = SHARED;
    piece->ptr = ptr;
    return DT_SUCCESS;
}

dt_result_t dt_memory_alloc(struct dt_world *world, size_t size, void **ptr,
                            struct dt_error *err)
{
    if (!size || !ptr)
        return dt_error_set(err, DT_ERR_INVALID_ARG, "dt_mem_alloc: %s",
                            size ? "ptr is NULL"
                                 : "0 bytes: expected at least 1");
    struct dt_memory *piece =
        size <= PTRDIFF_MAX ? calloc(1, sizeof(*piece)) : NULL;
    if (!piece)
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "dt_mem_alloc: no memory for %zu bytes", size);
    piece->size = size;
    dt_world_lock(world);
    dt_result_t rc = fill(world, piece, err);
    if (rc == DT_SUCCESS) {
        add(world, piece);
        *ptr = piece->ptr;
    } else {
        free(piece);
    }
    dt_world_unlock(world);
    return rc;
}

static dt_result_t give_back(struct dt_world *world,
                             const struct dt_memory *piece,
                             struct dt_error *err)
{
    struct dt_tl *tl = dt_world_node_tl(world);
    if (piece->source == SHARED)
        return tl->boards->mem_free(tl, piece->ptr, err);
    munmap(piece->ptr, piece->size);
    return DT_SUCCESS;
}

dt_result_t dt_memory_free(struct dt_world *world, void *ptr,
                           struct dt_error *err)
{
    dt_result_t rc;
    dt_world_lock(world);
    struct dt_memory **at = find(world, ptr, false);
    if (!*at) {
        rc = dt_error_set(err, DT_ERR_INVALID_ARG,
                          "dt_mem_free: %p did not come from dt_mem_alloc, or "
                          "was freed already",
                          ptr);
    } else {
        rc = give_back(world, *at, err);
        drop(at);
    }
    dt_world_unlock(world);
    return rc;
}

/* ---- register ---- */

static void unpin(struct dt_world *world, const struct dt_memory *piece)
{
    for (size_t i = 0; i < DT_CARD_TLS; i++)
        if (world->tl[i] && piece->handles[i])
            world->tl[i]->ops->mem_deregister(world->tl[i], piece->handles[i]);
}

static dt_result_t pin(struct dt_world *world, struct dt_memory *piece,
                       struct dt_error *err)
{
    for (size_t i = 0; i < DT_CARD_TLS; i++) {
        struct dt_tl *tl = world->tl[i];
        dt_result_t rc = DT_SUCCESS;
        if (tl && tl->ops->mem_register)
            rc = tl->ops->mem_register(tl, piece->ptr, piece->size,
                                       &piece->handles[i], err);
        if (rc != DT_SUCCESS) {
            unpin(world, piece);
            return rc;
        }
    }
    return DT_SUCCESS;
}

static dt_result_t check_range(struct dt_world *world, const char *ptr,
                               size_t size, struct dt_error *err)
{
    uintptr_t start = (uintptr_t)ptr, end;
    if (!ptr || !size || size > PTRDIFF_MAX ||
        __builtin_add_overflow(start, size, &end))
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "dt_mem_register: %zu bytes at %p: expected memory "
                            "of at least 1 byte",
                            size, (const void *)ptr);
    for (const struct dt_memory *m = world->memory; m; m = m->next)
        if (m->source == USER && start < (uintptr_t)m->ptr + m->size &&
            (uintptr_t)m->ptr < end)
            return dt_error_set(err, DT_ERR_INVALID_ARG,
                                "dt_mem_register: %zu bytes at %p overlap the "
                                "%zu at %p, which are registered already",
                                size, (const void *)ptr, m->size,
                                (void *)m->ptr);
    return DT_SUCCESS;
}

static dt_result_t hold(struct dt_world *world, struct dt_memory *piece,
                        struct dt_error *err)
{
    dt_result_t rc = check_range(world, piece->ptr, piece->size, err);
    if (rc == DT_SUCCESS)
        rc = pin(world, piece, err);
    if (rc == DT_SUCCESS)
        add(world, piece);
    return rc;
}

dt_result_t dt_memory_register(struct dt_world *world, void *ptr, size_t size,
                               struct dt_error *err)
{
    struct dt_memory *piece = calloc(1, sizeof(*piece));
    if (!piece)
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "dt_mem_register: no memory to remember it");
    *piece = (struct dt_memory){.source = USER, .ptr = ptr, .size = size};
    dt_world_lock(world);
    dt_result_t rc = hold(world, piece, err);
    dt_world_unlock(world);
    if (rc != DT_SUCCESS)
        free(piece);
    return rc;
}

dt_result_t dt_memory_deregister(struct dt_world *world, void *ptr,
                                 struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    dt_world_lock(world);
    struct dt_memory **at = find(world, ptr, true);
    if (!*at) {
        rc = dt_error_set(err, DT_ERR_INVALID_ARG,
                          "dt_mem_deregister: %p is not the start of "
                          "registered memory",
                          ptr);
    } else {
        unpin(world, *at);
        drop(at);
    }
    dt_world_unlock(world);
    return rc;
}

void dt_memory_fini(struct dt_world *world)
{
    dt_world_lock(world);
    while (world->memory) {
        if (world->memory->source == USER)
            unpin(world, world->memory);
        else
            give_back(world, world->memory, NULL);
        drop(&world->memory);
    }
    dt_world_unlock(world);
}

/* ---- from one world to the next ---- */

static dt_result_t keep(struct dt_world *world, struct dt_memory *piece,
                        struct dt_error *err)
{
    struct dt_tl *tl = dt_world_node_tl(world);
    if (piece->source == USER)
        unpin(world, piece);
    memset(piece->handles, 0, sizeof(piece->handles));
    if (piece->source != SHARED)
        return DT_SUCCESS;
    dt_result_t rc = tl->boards->mem_keep(tl, piece->ptr, &piece->size, err);
    if (rc == DT_SUCCESS)
        piece->source = PRIVATE;
    return rc;
}

dt_result_t dt_memory_keep(struct dt_world *world, struct dt_memory **kept,
                           struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    *kept = NULL;
    dt_world_lock(world);
    while (world->memory &&
           (rc = keep(world, world->memory, err)) == DT_SUCCESS) {
        struct dt_memory *piece = world->memory;
        world->memory = piece->next;
        piece->next = *kept;
        *kept = piece;
    }
    dt_world_unlock(world);
    return rc;
}

void dt_memory_take(struct dt_world *world, struct dt_memory *kept)
{
    dt_world_lock(world);
    while (kept) {
        struct dt_memory *piece = kept;
        kept = piece->next;
        if (piece->source == USER && pin(world, piece, NULL) != DT_SUCCESS)
            memset(piece->handles, 0, sizeof(piece->handles));
        add(world, piece);
    }
    dt_world_unlock(world);
}
