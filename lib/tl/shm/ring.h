/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ring.h - a stream of bytes from one process to another, through memory that
 * both have mapped.
 *
 * The writer owns tail, the reader owns head; both only grow, and
 * tail - head bytes are in the ring. Each end keeps copies of both indices in
 * private memory, and reads the other's index only when it has run out. The
 * index is checked: an impossible one sets corrupt, and then the ring is full
 * for its writer and empty for its reader. */
#ifndef DT_TL_SHM_RING_H
#define DT_TL_SHM_RING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Two cache lines, as the prefetcher fetches pairs. */
#define DT_RING_LINE 128

/* The shared part. All zeros is an empty ring. */
struct dt_ring_index {
    alignas(DT_RING_LINE) _Atomic uint64_t tail;
    alignas(DT_RING_LINE) _Atomic uint64_t head;
};

/* One end's view of a ring. */
struct dt_ring {
    struct dt_ring_index *shared;
    char *data;
    size_t capacity; /* a power of two */
    uint64_t head, tail;
    bool corrupt;
};

static inline size_t dt_ring_used(struct dt_ring *ring)
{
    uint64_t used = ring->tail - ring->head;
    if (used > ring->capacity)
        ring->corrupt = true;
    return (size_t)used;
}

/* Writer: how many bytes can be put. Reads the index of the reader if these are
 * fewer than wanted. */
static inline size_t dt_ring_room(struct dt_ring *ring, size_t wanted)
{
    size_t used = dt_ring_used(ring);
    if (ring->capacity - used < wanted) {
        ring->head =
            atomic_load_explicit(&ring->shared->head, memory_order_acquire);
        used = dt_ring_used(ring);
    }
    return ring->corrupt ? 0 : ring->capacity - used;
}

/* Reader: how many bytes can be got. Reads the index of the writer if these are
 * fewer than wanted. */
static inline size_t dt_ring_avail(struct dt_ring *ring, size_t wanted)
{
    size_t used = dt_ring_used(ring);
    if (used < wanted) {
        ring->tail =
            atomic_load_explicit(&ring->shared->tail, memory_order_acquire);
        used = dt_ring_used(ring);
    }
    return ring->corrupt ? 0 : used;
}

/* How many of len bytes at position lie before the end of the buffer. */
static inline size_t dt_ring_unbroken(const struct dt_ring *ring,
                                      uint64_t position, size_t len)
{
    size_t left = ring->capacity - (position & (ring->capacity - 1));
    return len < left ? len : left;
}

/* Writer: append len bytes, for which there must be room. The reader sees them
 * after the next publish. */
static inline void dt_ring_put(struct dt_ring *ring, const void *buf,
                               size_t len)
{
    size_t first = dt_ring_unbroken(ring, ring->tail, len);
    memcpy(ring->data + (ring->tail & (ring->capacity - 1)), buf, first);
    memcpy(ring->data, (const char *)buf + first, len - first);
    ring->tail += len;
}

static inline void dt_ring_publish(struct dt_ring *ring)
{
    atomic_store_explicit(&ring->shared->tail, ring->tail,
                          memory_order_release);
}

/* Reader: take len bytes, which must be available. The writer may reuse their
 * place after the next release. */
static inline void dt_ring_get(struct dt_ring *ring, void *buf, size_t len)
{
    size_t first = dt_ring_unbroken(ring, ring->head, len);
    memcpy(buf, ring->data + (ring->head & (ring->capacity - 1)), first);
    memcpy((char *)buf + first, ring->data, len - first);
    ring->head += len;
}

static inline void dt_ring_release(struct dt_ring *ring)
{
    atomic_store_explicit(&ring->shared->head, ring->head,
                          memory_order_release);
}

#endif
