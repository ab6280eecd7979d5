/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* segment.h - memory of one rank that the ranks of its node can map: its
 * boards, and memory of mem_alloc.
 *
 * All of it lies in the file of the rank's inbox, behind the inbox, so an
 * offset identifies a byte for all ranks. The file only grows; what is freed
 * becomes a hole of zeros. So a mapping stays valid for ever, and no rank needs
 * to be notified that something was freed: a rank that still reads it sees
 * zeros, or what is there now. */
#ifndef DT_TL_SHM_SEGMENT_H
#define DT_TL_SHM_SEGMENT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"

/* ---- the owner's side: one thread at a time, except for find and at ---- */

struct dt_segment {
    uint64_t offset;
    size_t len;
    bool kept; /* no longer mapped from the file */
};

/* Where a range of the file is mapped. */
struct dt_region {
    char *base;
    uint64_t offset;
    size_t len;
};

#define DT_REGIONS 32

struct dt_segments {
    int fd;
    uint64_t size;           /* of the file */
    struct dt_segment *used; /* in rising order */
    size_t nused, used_room;
    struct dt_region region[DT_REGIONS];
    _Atomic size_t nregions;
};

/* Allocate from this file (borrowed), from offset begin on. */
void dt_segments_init(struct dt_segments *segments, int fd, uint64_t begin);

/* len > 0 bytes of zeros, aligned to a page, or, if there are more of them, to
 * 2 MiB. Errors: NO_MEMORY, SYSTEM. */
dt_result_t dt_segment_alloc(struct dt_segments *segments, size_t len,
                             void **ptr, uint64_t *offset,
                             struct dt_error *err);

/* Use huge pages for such memory, where the kernel can; takes as long as
 * filling it with zeros. Many systems give none to shared memory unless asked
 * like this.
 */
void dt_segment_enlarge(void *ptr, size_t len);

/* Map all pages of such memory, this rank's or a peer's, in one call, where the
 * kernel can; write: for writing. Does not change the contents. */
void dt_segment_populate(void *ptr, size_t len, bool write);

/* Free it; false: ptr is not the start of such memory. */
bool dt_segment_free(struct dt_segments *segments, void *ptr);

/* Make such memory, of len bytes in all, private to this process, at the same
 * address and with the same contents: the caller unmaps it. INVALID_ARG: it is
 * not the start of such memory; NO_MEMORY. */
dt_result_t dt_segment_keep(struct dt_segments *segments, void *ptr,
                            size_t *len, struct dt_error *err);

void dt_segments_fini(struct dt_segments *segments);

/* The offset of len bytes at ptr if all of them are in such memory, else 0. */
static inline uint64_t dt_segment_find(const struct dt_segments *segments,
                                       const void *ptr, size_t len)
{
    size_t n = atomic_load_explicit(&segments->nregions, memory_order_acquire);
    for (size_t i = 0; i < n; i++) {
        const struct dt_region *region = &segments->region[i];
        size_t at = (size_t)((uintptr_t)ptr - (uintptr_t)region->base);
        if (at < region->len)
            return len <= region->len - at ? region->offset + at : 0;
    }
    return 0;
}

/* The address of an offset; NULL: it is not mapped. */
static inline char *dt_segment_at(const struct dt_segments *segments,
                                  uint64_t offset)
{
    size_t n = atomic_load_explicit(&segments->nregions, memory_order_acquire);
    for (size_t i = 0; i < n; i++) {
        const struct dt_region *region = &segments->region[i];
        if (offset - region->offset < region->len)
            return region->base + (offset - region->offset);
    }
    return NULL;
}

/* ---- the peers' side: any thread ---- */

#define DT_WINDOW_SHIFT 30
#define DT_WINDOWS      1024
/* A window reaches this far into the next one. */
#define DT_WINDOW_OVERLAP ((size_t)2 << 20)

struct dt_segment_view {
    int fd; /* owned; -1: none */
    _Atomic uint64_t size;
    char *_Atomic window[DT_WINDOWS];
};

/* Open the memory of a peer; on success the view owns the file. Error
 * NO_MEMORY. */
dt_result_t dt_segment_view_open(int fd, struct dt_segment_view **view,
                                 struct dt_error *err);

/* NULL is fine. */
void dt_segment_view_close(struct dt_segment_view *view);

/* The slow path of dt_segment_view_at. */
char *dt_segment_view_map(struct dt_segment_view *view, uint64_t offset,
                          size_t len);

/* len bytes, at most DT_WINDOW_OVERLAP, at offset; NULL, with errno, if they
 * are not there (EFAULT) or cannot be mapped. */
static inline char *dt_segment_view_at(struct dt_segment_view *view,
                                       uint64_t offset, size_t len)
{
    uint64_t size = atomic_load_explicit(&view->size, memory_order_relaxed);
    if (len > DT_WINDOW_OVERLAP || offset >= size || len > size - offset)
        return dt_segment_view_map(view, offset, len);
    char *base = atomic_load_explicit(&view->window[offset >> DT_WINDOW_SHIFT],
                                      memory_order_acquire);
    if (!base)
        return dt_segment_view_map(view, offset, len);
    return base + (offset & (((uint64_t)1 << DT_WINDOW_SHIFT) - 1));
}

#endif
