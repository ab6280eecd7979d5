/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* disk-states.c - what a disk could hold after a power cut. A state is made by
 * doing what was recorded again in memory, up to a moment, twice: what is on
 * disk for certain, and what is pending. */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/format/format.h"
#include "disk-events.h"
#include "disk-model.h"

static struct disk made; /* for a state */
static char words[160];

static void sync_node(struct disk *disk, int node)
{
    disk->safe[node] = disk->now[node];
    int left = 0;
    for (int i = 0; i < disk->npending; i++)
        if (disk->pending[i]->change[0].dir == node)
            disk_change(disk, disk->pending[i]);
        else
            disk->pending[left++] = disk->pending[i];
    disk->npending = left;
}

static void apply(struct disk *disk, const struct event *event)
{
    if (event->kind == DATA) {
        disk->now[event->node] = event->blob;
    } else if (event->kind == SYNC) {
        sync_node(disk, event->node);
    } else {
        if (disk->npending == PENDING)
            abort();
        disk->pending[disk->npending++] = event;
    }
}

/* ---- states ----
 *
 * With n pending entries there are 2 n ways for them (n = 0: one): none; the
 * first 1 .. n - 1; the last 1 .. n - 1; all. If data is unsynced, each with
 * that gone or there, and before them all entries with zeros or half of it. */

enum { GONE, THERE, ZEROS, HALF };

static bool is_dirty(const struct disk *disk, int node)
{
    const struct blob *a = &disk->safe[node], *b = &disk->now[node];
    return a->len != b->len ||
           (a->len > 0 && memcmp(a->data, b->data, a->len) != 0);
}

static void replay(int at)
{
    struct disk *disk = &made;
    memset(disk, 0, sizeof(*disk));
    for (int i = 0; i < disk_model.ninitial + at; i++)
        apply(disk, &disk_model.event[i]);
}

static int entry_ways(void)
{
    return made.npending ? 2 * made.npending : 1;
}

static bool any_dirty(void)
{
    for (int i = 0; i < disk_model.nnodes; i++)
        if (is_dirty(&made, i))
            return true;
    return false;
}

int disk_states(int at)
{
    replay(at);
    return any_dirty() ? 2 + 2 * entry_ways() : entry_ways();
}

/* Of the pending entries those from *first up to *last happened. */
static void choose(int state, int *first, int *last, int *data)
{
    int n = made.npending, way = state;
    *data = THERE;
    if (any_dirty()) {
        way = state < 2 ? entry_ways() - 1 : (state - 2) / 2;
        *data = state < 2 ? ZEROS + state : state % 2;
    }
    *first = way < n || way >= 2 * n - 1 ? 0 : 2 * n - 1 - way;
    *last = way < n ? way : n;
}

const char *disk_describe(int at, int state)
{
    static const char *const way[] = {"gone", "there", "zeros", "half"};
    int first, last, data;
    replay(at);
    choose(state, &first, &last, &data);
    snprintf(words, sizeof(words),
             "before event %d, of %d entries those from %d to %d are there, "
             "data %s",
             at, made.npending, first, last, way[data]);
    return words;
}

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *ftw)
{
    (void)st, (void)type;
    return ftw->level > 0 ? remove(path) : 0;
}

/* What a file holds: so much of the result, then zeros. */
static const struct blob *contents(int node, int way, size_t *keep)
{
    const struct blob *from = way == GONE ? &made.safe[node] : &made.now[node];
    *keep = from->len;
    if (way > THERE && is_dirty(&made, node))
        *keep = way == HALF ? from->len / 2 : 0;
    return from;
}

static void put_file(int dirfd, const char *name, int node, int way)
{
    size_t keep;
    const struct blob *from = contents(node, way, &keep);
    int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                    disk_model.node[node].mode);
    if (fd < 0 || (keep > 0 && write(fd, from->data, keep) != (ssize_t)keep) ||
        ftruncate(fd, (off_t)from->len))
        abort();
    close(fd);
}

static void put_directory(int dirfd, int node, int way)
{
    const struct disk *disk = &made;
    for (int i = 0; i < disk->nentries; i++) {
        const struct change *entry = &disk->entry[i];
        if (entry->dir != node)
            continue;
        if (!disk_model.node[entry->node].directory) {
            put_file(dirfd, entry->name, entry->node, way);
            continue;
        }
        int fd = -1;
        if (mkdirat(dirfd, entry->name, 0777) ||
            (fd = openat(dirfd, entry->name, O_RDONLY | O_DIRECTORY)) < 0)
            abort();
        put_directory(fd, entry->node, way);
        close(fd);
    }
}

/* Make that state in memory. */
static int choose_all(int at, int state)
{
    int first, last, way;
    replay(at);
    choose(state, &first, &last, &way);
    for (int i = first; i < last; i++)
        disk_change(&made, made.pending[i]);
    return way;
}

void disk_restore(int at, int state, unsigned lost)
{
    int way = choose_all(at, state);
    for (int i = 0; i < disk_model.nroots; i++) {
        nftw(disk_model.path[i], remove_one, 16, FTW_DEPTH | FTW_PHYS);
        if (lost >> i & 1)
            continue;
        int fd = open(disk_model.path[i], O_RDONLY | O_DIRECTORY);
        if (fd < 0)
            abort();
        put_directory(fd, disk_model.root[i], way);
        close(fd);
    }
}

/* The same for all directories with the same in them, in whatever order. */
static uint64_t sum_directory(int node, int way)
{
    uint64_t sum = 0;
    for (int i = 0; i < made.nentries; i++) {
        const struct change *entry = &made.entry[i];
        if (entry->dir != node)
            continue;
        bool directory = disk_model.node[entry->node].directory;
        uint64_t of[5] = {dt_checksum(entry->name, strlen(entry->name)),
                          directory, disk_model.node[entry->node].mode};
        if (directory) {
            of[3] = sum_directory(entry->node, way);
        } else {
            size_t keep;
            const struct blob *from = contents(entry->node, way, &keep);
            of[3] = from->len > 0 ? from->sum : 0;
            of[4] = keep;
        }
        sum += dt_checksum(of, sizeof(of));
    }
    return sum;
}

uint64_t disk_sum(int at, int state, unsigned lost)
{
    uint64_t sum[ROOTS + 1] = {lost};
    int way = choose_all(at, state);
    for (int i = 0; i < disk_model.nroots; i++)
        if (!(lost >> i & 1))
            sum[i + 1] = sum_directory(disk_model.root[i], way);
    return dt_checksum(sum, sizeof(sum));
}
