/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* snapshot.c - the memory to which this rank's tensors are copied. */
#include "ckpt/save/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "ckpt/format/format.h"

#define SLOTS 2

/* Memory that is mapped here. */
struct room {
    char *at;
    size_t len;
    size_t pinned; /* bytes, from the start, ... */
    struct dt_copy *pinner;
};

struct slot {
    char name[64];
    int fd; /* -1: not opened */
    struct room room;
    size_t size; /* of the file */
};

struct dt_snapshot {
    int dirfd; /* of the memory tier, or -1 */
    struct slot slot[SLOTS];
    struct slot *taken; /* NULL: private */
    struct room private;
};

dt_result_t dt_snapshot_open(int dirfd, int rank, struct dt_snapshot **snapshot,
                             struct dt_error *err)
{
    struct dt_snapshot *new = calloc(1, sizeof(*new));
    if (!new)
        return dt_no_memory(err);
    new->dirfd = dirfd;
    for (int i = 0; i < SLOTS; i++) {
        snprintf(new->slot[i].name, sizeof(new->slot[i].name),
                 DT_SNAPSHOT_SLOTS "/rank-%05d.%d", rank, i);
        new->slot[i].fd = -1;
    }
    *snapshot = new;
    return DT_SUCCESS;
}

static void unpin(struct room *room)
{
    if (room->pinned > 0)
        dt_copy_unpin(room->pinner, room->at);
    room->pinned = 0;
}

static void unmap(struct room *room)
{
    unpin(room);
    if (room->at)
        munmap(room->at, room->len);
    *room = (struct room){0};
}

static void close_slot(struct slot *slot)
{
    unmap(&slot->room);
    if (slot->fd >= 0)
        close(slot->fd);
    slot->size = 0;
    slot->fd = -1;
}

/* ---- files ---- */

static int open_file(struct dt_snapshot *s, const struct slot *slot)
{
    return openat(s->dirfd, slot->name,
                  O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* A process that was killed may have left both files in checkpoints, one of
 * them unfinished. They stay there, and new files get their names. */
static int open_slot(struct dt_snapshot *s, struct slot *slot)
{
    struct stat st;
    if (mkdirat(s->dirfd, DT_SNAPSHOT_SLOTS, 0700) && errno != EEXIST)
        return -1;
    slot->fd = open_file(s, slot);
    if (slot->fd < 0 || fstat(slot->fd, &st) || st.st_nlink == 1)
        return slot->fd < 0 ? -1 : 0;
    close(slot->fd);
    slot->fd = -1;
    if (unlinkat(s->dirfd, slot->name, 0) == 0)
        slot->fd = open_file(s, slot);
    return slot->fd < 0 ? -1 : 0;
}

/* Is it in no directory but slots/? */
static bool is_free(const struct slot *slot)
{
    struct stat st;
    return fstat(slot->fd, &st) == 0 && st.st_nlink == 1;
}

static size_t whole_pages(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (size + page - 1) / page * page;
}

static dt_result_t grow_slot(struct slot *slot, size_t size,
                             struct dt_error *err)
{
    unmap(&slot->room);
    slot->size = 0;
    int why = posix_fallocate(slot->fd, 0, (off_t)size);
    if (why) {
        if (ftruncate(slot->fd, 0)) /* free what it got */
            why = errno;
        errno = why;
        return dt_failed(err, slot->name);
    }
    void *map = mmap(NULL, size, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_POPULATE, slot->fd, 0);
    if (map == MAP_FAILED)
        return dt_failed(err, slot->name);
    slot->room = (struct room){.at = map, .len = whole_pages(size)};
    slot->size = size;
    return DT_SUCCESS;
}

/* Give the file size bytes, all allocated. Pages that it loses must be unpinned
 * first, or copies from the GPU would still write to them when the file has
 * others in their place. */
static dt_result_t fit_slot(struct slot *slot, size_t size,
                            struct dt_error *err)
{
    if (whole_pages(size) != slot->room.pinned)
        unpin(&slot->room);
    if (size > slot->room.len) {
        dt_result_t rc = grow_slot(slot, size, err);
        if (rc != DT_SUCCESS)
            return rc;
    }
    if (size > slot->size) {
        errno = posix_fallocate(slot->fd, 0, (off_t)size);
        if (errno)
            return dt_failed(err, slot->name);
    }
    if (ftruncate(slot->fd, (off_t)size)) /* it may have been longer */
        return dt_failed(err, slot->name);
    slot->size = size;
    return DT_SUCCESS;
}

/* Both files are in use after a crash, and are removed with the directories
 * that have them. Begin a new file. */
static int renew_slot(struct dt_snapshot *s, struct slot *slot)
{
    close_slot(slot);
    return unlinkat(s->dirfd, slot->name, 0) || open_slot(s, slot) ? -1 : 0;
}

static dt_result_t take_slot(struct dt_snapshot *s, size_t size, char **image,
                             struct dt_error *err)
{
    struct slot *found = NULL;
    for (int i = 0; i < SLOTS && !found; i++) {
        struct slot *slot = &s->slot[i];
        if (slot->fd < 0 && open_slot(s, slot))
            return dt_failed(err, slot->name);
        if (is_free(slot))
            found = slot;
    }
    if (!found) {
        found = &s->slot[0];
        if (renew_slot(s, found))
            return dt_failed(err, found->name);
    }
    dt_result_t rc = fit_slot(found, size, err);
    if (rc == DT_SUCCESS) {
        s->taken = found;
        *image = found->room.at;
    }
    return rc;
}

/* ---- private memory ---- */

static dt_result_t take_private(struct dt_snapshot *s, size_t size,
                                char **image, struct dt_error *err)
{
    s->taken = NULL;
    if (size > s->private.len) {
        unmap(&s->private);
        void *map = mmap(NULL, size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (map == MAP_FAILED)
            return dt_error_set(err, DT_ERR_NO_MEMORY,
                                "no memory for a copy of %zu bytes", size);
        s->private = (struct room){.at = map, .len = size};
    }
    *image = s->private.at;
    return DT_SUCCESS;
}

/* ---- both ---- */

dt_result_t dt_snapshot_take(struct dt_snapshot *s, size_t size, char **image,
                             struct dt_error *err)
{
    return s->dirfd < 0 ? take_private(s, size, image, err)
                        : take_slot(s, size, image, err);
}

dt_result_t dt_snapshot_pin(struct dt_snapshot *s, struct dt_copy *copy,
                            struct dt_error *err)
{
    struct room *room = s->taken ? &s->taken->room : &s->private;
    size_t len = whole_pages(s->taken ? s->taken->size : room->len);
    if (room->pinned == len)
        return DT_SUCCESS;
    dt_result_t rc = dt_copy_pin(copy, room->at, len, err);
    if (rc == DT_SUCCESS) {
        room->pinned = len;
        room->pinner = copy;
    }
    return rc;
}

dt_result_t dt_snapshot_link(struct dt_snapshot *s, int dirfd, const char *name,
                             struct dt_error *err)
{
    if (!s->taken)
        return dt_error_set(err, DT_ERR_UNSUPPORTED,
                            "not in the memory of the node");
    if (linkat(s->dirfd, s->taken->name, dirfd, name, 0))
        return dt_failed(err, name);
    return DT_SUCCESS;
}

void dt_snapshot_privatize(struct dt_snapshot *s)
{
    if (s->dirfd < 0)
        return;
    for (int i = 0; i < SLOTS; i++) {
        if (s->slot[i].fd >= 0)
            unlinkat(s->dirfd, s->slot[i].name, 0);
        close_slot(&s->slot[i]);
    }
    close(s->dirfd);
    s->dirfd = -1;
    s->taken = NULL;
}

bool dt_snapshot_outlives(const struct dt_snapshot *s)
{
    return s->dirfd >= 0;
}

void dt_snapshot_close(struct dt_snapshot *s)
{
    if (!s)
        return;
    for (int i = 0; i < SLOTS; i++)
        close_slot(&s->slot[i]);
    unmap(&s->private);
    if (s->dirfd >= 0)
        close(s->dirfd);
    free(s);
}
