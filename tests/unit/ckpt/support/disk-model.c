/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* disk-model.c - what happens to some directories, recorded. */
#include "disk-model.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/format/format.h"
#include "disk-events.h"

struct model disk_model = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- a disk ---- */

int disk_find(const struct disk *disk, int dir, const char *name)
{
    for (int i = 0; i < disk->nentries; i++)
        if (disk->entry[i].dir == dir && strcmp(disk->entry[i].name, name) == 0)
            return i;
    return -1;
}

static void change_entry(struct disk *disk, const struct change *change)
{
    int i = disk_find(disk, change->dir, change->name);
    if (i >= 0)
        disk->entry[i] = disk->entry[--disk->nentries];
    if (change->node < 0)
        return;
    if (disk->nentries == ENTRIES)
        abort();
    disk->entry[disk->nentries++] = *change;
}

void disk_change(struct disk *disk, const struct event *event)
{
    for (int i = 0; i < event->nchanges; i++)
        change_entry(disk, &event->change[i]);
}

/* ---- recording ---- */

static int find_node(const struct stat *st)
{
    for (int i = disk_model.nnodes - 1; i >= 0;
         i--) /* numbers are used again */
        if (disk_model.node[i].ino == st->st_ino &&
            disk_model.node[i].dev == st->st_dev)
            return i;
    return -1;
}

static int new_node(const struct stat *st)
{
    if (disk_model.nnodes == NODES)
        abort();
    disk_model.node[disk_model.nnodes] = (struct node){
        st->st_dev, st->st_ino, S_ISDIR(st->st_mode), st->st_mode & 07777};
    return disk_model.nnodes++;
}

static struct event *new_event(enum kind kind, int node)
{
    if (disk_model.nevents == EVENTS)
        abort();
    struct event *event = &disk_model.event[disk_model.nevents++];
    memset(event, 0, sizeof(*event));
    event->kind = kind;
    event->node = node;
    return event;
}

static void add_change(struct event *event, int dir, const char *name, int node)
{
    struct change *change = &event->change[event->nchanges++];
    change->dir = dir;
    change->node = node;
    if (strlen(name) >= NAME)
        abort();
    strcpy(change->name, name);
}

/* The directory that name is in, or -1 if it is none of ours; *base is the
 * last part of the name. */
static int directory_of(int dirfd, const char *name, const char **base)
{
    struct stat st;
    char path[512];
    const char *slash = strrchr(name, '/');
    *base = slash ? slash + 1 : name;
    if (!slash)
        snprintf(path, sizeof(path), ".");
    else
        snprintf(path, sizeof(path), "%.*s", (int)(slash - name + 1), name);
    return fstatat(dirfd, path, &st, 0) == 0 ? find_node(&st) : -1;
}

static int node_at(int dir, const char *name)
{
    int i = dir < 0 ? -1 : disk_find(&disk_model.live, dir, name);
    return i < 0 ? -1 : disk_model.live.entry[i].node;
}

static void record_entry(const struct event *event)
{
    disk_change(&disk_model.live, event);
}

static void record_data(int node, int fd)
{
    struct stat st;
    struct event *event = new_event(DATA, node);
    if (fstat(fd, &st))
        abort();
    event->blob.len = (size_t)st.st_size;
    event->blob.data = malloc(event->blob.len + 1);
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int in = open(path, O_RDONLY | O_CLOEXEC); /* not O_DIRECT, not O_WRONLY */
    for (size_t done = 0; done < event->blob.len;) {
        ssize_t n =
            in < 0 ? -1
                   : read(in, event->blob.data + done, event->blob.len - done);
        if (n <= 0)
            abort();
        done += (size_t)n;
    }
    close(in);
    event->blob.sum = dt_checksum(event->blob.data, event->blob.len);
}

void disk_made(int dirfd, const char *name)
{
    const char *base;
    struct stat st;
    if (!disk_model.on)
        return;
    pthread_mutex_lock(&disk_model.lock);
    int dir = directory_of(dirfd, name, &base);
    if (dir >= 0 && node_at(dir, base) < 0 &&
        fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        /* another name for what is there, or a new file */
        int node = S_ISREG(st.st_mode) && st.st_nlink > 1 ? find_node(&st) : -1;
        struct event *event = new_event(ENTRY, -1);
        add_change(event, dir, base, node >= 0 ? node : new_node(&st));
        record_entry(event);
    }
    pthread_mutex_unlock(&disk_model.lock);
}

void disk_removed(int dirfd, const char *name)
{
    const char *base;
    if (!disk_model.on)
        return;
    pthread_mutex_lock(&disk_model.lock);
    int dir = directory_of(dirfd, name, &base);
    if (node_at(dir, base) >= 0) {
        struct event *event = new_event(ENTRY, -1);
        add_change(event, dir, base, -1);
        record_entry(event);
    }
    pthread_mutex_unlock(&disk_model.lock);
}

void disk_renamed(int from, const char *a, int to, const char *b,
                  bool exchanged)
{
    const char *x, *y;
    if (!disk_model.on)
        return;
    pthread_mutex_lock(&disk_model.lock);
    int p = directory_of(from, a, &x), q = directory_of(to, b, &y);
    int moved = node_at(p, x), other = node_at(q, y);
    if (moved >= 0 && q >= 0) {
        struct event *event = new_event(ENTRY, -1);
        add_change(event, p, x, exchanged ? other : -1);
        add_change(event, q, y, moved);
        record_entry(event);
    }
    pthread_mutex_unlock(&disk_model.lock);
}

void disk_written(int fd)
{
    struct stat st;
    if (!disk_model.on || fstat(fd, &st))
        return;
    pthread_mutex_lock(&disk_model.lock);
    int node = find_node(&st);
    if (node >= 0)
        record_data(node, fd);
    pthread_mutex_unlock(&disk_model.lock);
}

void disk_synced(int fd)
{
    struct stat st;
    if (!disk_model.on || fstat(fd, &st))
        return;
    pthread_mutex_lock(&disk_model.lock);
    int node = find_node(&st);
    if (node >= 0)
        new_event(SYNC, node);
    pthread_mutex_unlock(&disk_model.lock);
}

/* All that is in the directory node, which fd is. */
static void take_in(int node, int fd)
{
    DIR *stream = fdopendir(fd);
    struct dirent *dirent;
    while (stream && (dirent = readdir(stream))) {
        struct stat st;
        const char *name = dirent->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        int child = openat(fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (child < 0 || fstat(child, &st))
            abort();
        int known = find_node(&st);
        int number = known >= 0 ? known : new_node(&st);
        struct event *event = new_event(ENTRY, -1);
        add_change(event, node, name, number);
        record_entry(event);
        if (S_ISDIR(st.st_mode)) {
            take_in(number, child);
            continue;
        }
        if (known < 0)
            record_data(number, child);
        close(child);
    }
    closedir(stream);
    new_event(SYNC, node);
}

static void forget(void)
{
    for (int i = 0; i < disk_model.nevents; i++)
        free(disk_model.event[i].blob.data);
    for (int i = 0; i < disk_model.nroots; i++)
        free(disk_model.path[i]);
    disk_model.nevents = disk_model.nnodes = disk_model.nroots = 0;
    memset(&disk_model.live, 0, sizeof(disk_model.live));
}

void disk_begin(const char *const *root, int n)
{
    forget();
    for (int i = 0; i < n; i++) {
        struct stat st;
        int fd = open(root[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st))
            abort();
        disk_model.path[i] = strdup(root[i]);
        disk_model.root[disk_model.nroots++] = new_node(&st);
        take_in(disk_model.root[i], fd);
    }
    for (int i = 0; i < disk_model.nnodes; i++)
        new_event(SYNC, i);
    disk_model.ninitial = disk_model.nevents;
    disk_model.on = true;
}

int disk_now(void)
{
    pthread_mutex_lock(&disk_model.lock);
    int now = disk_model.nevents - disk_model.ninitial;
    pthread_mutex_unlock(&disk_model.lock);
    return now;
}

int disk_end(void)
{
    disk_model.on = false;
    return disk_model.nevents - disk_model.ninitial;
}
