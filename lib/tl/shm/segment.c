/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* segment.c - memory of one rank that the ranks of its node can map. */
#include "tl/shm/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif
#define HUGE_PAGE    ((size_t)2 << 20)
#define WINDOW       ((size_t)1 << DT_WINDOW_SHIFT)
#define FIRST_REGION WINDOW
#define FILE_MAX     ((uint64_t)DT_WINDOWS << DT_WINDOW_SHIFT)

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* Map a range of a file, which may lie beyond its end, at an address that
 * allows huge pages. It is left out of core files, which would contain all of
 * it. */
static char *map(int fd, uint64_t offset, size_t len)
{
    char *place = mmap(NULL, len + HUGE_PAGE, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED)
        return NULL;
    size_t skip = -(uintptr_t)place & (HUGE_PAGE - 1);
    char *base = place + skip;
    if (mmap(base, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
             (off_t)offset) == MAP_FAILED) {
        int error = errno;
        munmap(place, len + HUGE_PAGE);
        errno = error;
        return NULL;
    }
    if (skip)
        munmap(place, skip);
    if (skip < HUGE_PAGE)
        munmap(base + len, HUGE_PAGE - skip);
    madvise(base, len, MADV_DONTDUMP);
    return base;
}

/* ---- the owner's side ---- */

void dt_segments_init(struct dt_segments *segments, int fd, uint64_t begin)
{
    *segments = (struct dt_segments){.fd = fd, .size = begin};
}

/* Unmap a region but for what is kept of it. */
static void unmap_region(const struct dt_segments *segments,
                         const struct dt_region *region)
{
    uint64_t from = region->offset, end = region->offset + region->len;
    for (size_t i = 0; i < segments->nused; i++) {
        const struct dt_segment *s = &segments->used[i];
        if (!s->kept || s->offset < from || s->offset >= end)
            continue;
        if (s->offset > from)
            munmap(region->base + (from - region->offset), s->offset - from);
        from = s->offset + s->len;
    }
    if (from < end)
        munmap(region->base + (from - region->offset), end - from);
}

void dt_segments_fini(struct dt_segments *segments)
{
    for (size_t i = 0; i < segments->nregions; i++)
        unmap_region(segments, &segments->region[i]);
    free(segments->used);
    *segments = (struct dt_segments){.fd = -1};
}

/* The first gap of a region that holds len bytes; *at is the number of
 * segments before it. */
static uint64_t find_gap(const struct dt_segments *segments,
                         const struct dt_region *region, size_t len,
                         size_t align, size_t *at)
{
    uint64_t offset = region->offset, end = region->offset + region->len;
    for (size_t i = 0; i <= segments->nused; i++) {
        const struct dt_segment *next =
            i < segments->nused ? &segments->used[i] : NULL;
        if (next && next->offset + next->len <= offset)
            continue;
        uint64_t until = next && next->offset < end ? next->offset : end;
        if (offset <= until && len <= until - offset) {
            *at = i;
            return offset;
        }
        if (until == end)
            break;
        offset = round_up(next->offset + next->len, align);
    }
    return 0;
}

/* Map more of the file: each region is twice as large as the one before, if
 * there is enough address space. */
static dt_result_t add_region(struct dt_segments *segments, size_t len,
                              struct dt_error *err)
{
    size_t n = segments->nregions, wanted = FIRST_REGION;
    uint64_t offset = round_up(segments->size, HUGE_PAGE);
    if (n) {
        const struct dt_region *last = &segments->region[n - 1];
        offset = last->offset + last->len;
        wanted = last->len;
    }
    len = round_up(len, HUGE_PAGE);
    while (wanted < len)
        wanted *= 2;
    if (n == DT_REGIONS || offset + wanted > FILE_MAX)
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "a rank shares at most %zu GiB of memory",
                            (size_t)(FILE_MAX >> 30));
    char *base = map(segments->fd, offset, wanted);
    if (!base) {
        wanted = len;
        base = map(segments->fd, offset, wanted);
    }
    if (!base)
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "cannot map %zu bytes of shared memory: %s", len,
                            strerror(errno));
    segments->region[n] = (struct dt_region){base, offset, wanted};
    atomic_store_explicit(&segments->nregions, n + 1, memory_order_release);
    return DT_SUCCESS;
}

static bool room_for_one(struct dt_segments *segments)
{
    if (segments->nused < segments->used_room)
        return true;
    size_t room = segments->used_room ? 2 * segments->used_room : 16;
    struct dt_segment *used = realloc(segments->used, room * sizeof(*used));
    if (!used)
        return false;
    segments->used = used;
    segments->used_room = room;
    return true;
}

static bool beyond_machine(size_t len)
{
    struct sysinfo info;
    return !sysinfo(&info) && len / info.mem_unit >= info.totalram;
}

dt_result_t dt_segment_alloc(struct dt_segments *segments, size_t len,
                             void **ptr, uint64_t *offset, struct dt_error *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), at = 0, r;
    size_t align = len < HUGE_PAGE ? page : HUGE_PAGE;
    if (len > SIZE_MAX / 4 || beyond_machine(len))
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "this machine has no %zu bytes of memory", len);
    if (!room_for_one(segments))
        return dt_no_memory(err);
    len = round_up(len, page);
    uint64_t found = 0;
    for (r = 0; !found; r++) {
        if (r == segments->nregions) {
            dt_result_t result = add_region(segments, len, err);
            if (result != DT_SUCCESS)
                return result;
        }
        found = find_gap(segments, &segments->region[r], len, align, &at);
    }
    const struct dt_region *region = &segments->region[r - 1];
    if (found + len > segments->size) {
        if (ftruncate(segments->fd, (off_t)(found + len)))
            return dt_error_set(err, DT_ERR_SYSTEM,
                                "cannot grow shared memory by %zu bytes: %s",
                                len, strerror(errno));
        segments->size = found + len;
    }
    char *base = region->base + (found - region->offset);
    madvise(base, len, MADV_DODUMP);
    if (len >= HUGE_PAGE)
        madvise(base, len, MADV_HUGEPAGE);
    memmove(&segments->used[at + 1], &segments->used[at],
            (segments->nused++ - at) * sizeof(*segments->used));
    segments->used[at] = (struct dt_segment){.offset = found, .len = len};
    *ptr = base;
    *offset = found;
    return DT_SUCCESS;
}

void dt_segment_enlarge(void *ptr, size_t len)
{
    char *page = ptr;
    /* the kernel only collapses pages of which at least one is present; one
     * that does not support it fails at the first */
    for (; len >= HUGE_PAGE; page += HUGE_PAGE, len -= HUGE_PAGE) {
        *(volatile char *)page = 0;
        if (madvise(page, HUGE_PAGE, MADV_COLLAPSE))
            break;
    }
}

void dt_segment_populate(void *ptr, size_t len, bool write)
{
    madvise(ptr, len, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
}

bool dt_segment_free(struct dt_segments *segments, void *ptr)
{
    uint64_t offset = ptr ? dt_segment_find(segments, ptr, 1) : 0;
    size_t i = 0;
    while (i < segments->nused && segments->used[i].offset != offset)
        i++;
    if (!offset || i == segments->nused)
        return false;
    size_t len = segments->used[i].len;
    fallocate(segments->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              (off_t)offset, (off_t)len);
    if (len >= HUGE_PAGE)
        madvise(ptr, len, MADV_NOHUGEPAGE);
    madvise(ptr, len, MADV_DONTDUMP);
    memmove(&segments->used[i], &segments->used[i + 1],
            (--segments->nused - i) * sizeof(*segments->used));
    return true;
}

dt_result_t dt_segment_keep(struct dt_segments *segments, void *ptr,
                            size_t *len, struct dt_error *err)
{
    uint64_t offset = dt_segment_find(segments, ptr, 1);
    size_t i = 0;
    while (i < segments->nused && segments->used[i].offset != offset)
        i++;
    if (!offset || i == segments->nused)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "%p is not shared memory of this process", ptr);
    struct dt_segment *segment = &segments->used[i];
    void *copy = malloc(segment->len);
    if (!copy)
        return dt_no_memory(err);
    memcpy(copy, ptr, segment->len);
    /* not mremap, of whose arguments UCX 1.13's hook forgets the last one */
    void *own = mmap(ptr, segment->len, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (own == MAP_FAILED) {
        free(copy);
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "cannot map %zu bytes of memory: %s", segment->len,
                            strerror(errno));
    }
    memcpy(ptr, copy, segment->len);
    free(copy);
    segment->kept = true;
    fallocate(segments->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              (off_t)offset, (off_t)segment->len);
    *len = segment->len;
    return DT_SUCCESS;
}

/* ---- the peers' side ---- */

dt_result_t dt_segment_view_open(int fd, struct dt_segment_view **view,
                                 struct dt_error *err)
{
    struct dt_segment_view *made = calloc(1, sizeof(*made));
    if (!made)
        return dt_no_memory(err);
    made->fd = fd;
    *view = made;
    return DT_SUCCESS;
}

void dt_segment_view_close(struct dt_segment_view *view)
{
    if (!view)
        return;
    for (size_t i = 0; i < DT_WINDOWS; i++)
        if (view->window[i])
            munmap(view->window[i], WINDOW + DT_WINDOW_OVERLAP);
    close(view->fd);
    free(view);
}

/* Is it inside the file? The file cannot be shrunk, so the answer stays true.
 */
static bool within(struct dt_segment_view *view, uint64_t offset, size_t len)
{
    struct stat st;
    if (offset >= FILE_MAX || len > DT_WINDOW_OVERLAP || fstat(view->fd, &st))
        return false;
    uint64_t size = (uint64_t)st.st_size;
    if (size > FILE_MAX)
        size = FILE_MAX;
    atomic_store_explicit(&view->size, size, memory_order_relaxed);
    return offset <= size && len <= size - offset;
}

char *dt_segment_view_map(struct dt_segment_view *view, uint64_t offset,
                          size_t len)
{
    if (!within(view, offset, len)) {
        errno = EFAULT;
        return NULL;
    }
    char *_Atomic *window = &view->window[offset >> DT_WINDOW_SHIFT];
    char *base = atomic_load_explicit(window, memory_order_acquire);
    if (!base) {
        base = map(view->fd, offset & ~(uint64_t)(WINDOW - 1),
                   WINDOW + DT_WINDOW_OVERLAP);
        if (!base)
            return NULL;
        char *first = NULL;
        if (!atomic_compare_exchange_strong(window, &first, base)) {
            munmap(base, WINDOW + DT_WINDOW_OVERLAP);
            base = first;
        }
    }
    return base + (offset & (WINDOW - 1));
}
