/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* disk-model.c - what a disk could hold after a power cut.
 *
 * A node is a file or directory that was ever there. Events are recorded with
 * the whole contents of the file; a state is made by doing them again in
 * memory, up to a moment, twice: what is on disk for certain, and what is
 * pending. */
#include "disk-model.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NODES   512
#define EVENTS  4096
#define ENTRIES 1024
#define PENDING 256
#define ROOTS   5
#define NAME    112

struct blob {
    char *data;
    size_t len;
};

/* One name in one directory: node is now there, or -1 for none. */
struct change {
    int dir, node;
    char name[NAME];
};

enum kind { ENTRY, DATA, SYNC };

struct event {
    enum kind kind;
    int node; /* of DATA and SYNC */
    struct blob blob;
    int nchanges; /* of an ENTRY: they happen together */
    struct change change[2];
};

struct node {
    dev_t dev;
    ino_t ino;
    bool directory;
    mode_t mode;
};

/* The disk at a moment. */
struct disk {
    int nentries, npending;
    struct change entry[ENTRIES];
    const struct event *pending[PENDING];
    struct blob safe[NODES], now[NODES];
};

static struct {
    pthread_mutex_t lock;
    bool on;
    int nroots, root[ROOTS];
    char *path[ROOTS];
    int nnodes, nevents, ninitial;
    struct node node[NODES];
    struct event event[EVENTS]; /* the first ninitial: what was there */
    struct disk live, made;     /* now; for a state */
    char words[160];
} model = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- a disk ---- */

static int find_entry(const struct disk *disk, int dir, const char *name)
{
    for (int i = 0; i < disk->nentries; i++)
        if (disk->entry[i].dir == dir && strcmp(disk->entry[i].name, name) == 0)
            return i;
    return -1;
}

static void change_entry(struct disk *disk, const struct change *change)
{
    int i = find_entry(disk, change->dir, change->name);
    if (i >= 0)
        disk->entry[i] = disk->entry[--disk->nentries];
    if (change->node < 0)
        return;
    if (disk->nentries == ENTRIES)
        abort();
    disk->entry[disk->nentries++] = *change;
}

static void change_all(struct disk *disk, const struct event *event)
{
    for (int i = 0; i < event->nchanges; i++)
        change_entry(disk, &event->change[i]);
}

static void sync_node(struct disk *disk, int node)
{
    disk->safe[node] = disk->now[node];
    int left = 0;
    for (int i = 0; i < disk->npending; i++)
        if (disk->pending[i]->change[0].dir == node)
            change_all(disk, disk->pending[i]);
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

/* ---- recording ---- */

static int find_node(const struct stat *st)
{
    for (int i = model.nnodes - 1; i >= 0; i--) /* numbers are used again */
        if (model.node[i].ino == st->st_ino && model.node[i].dev == st->st_dev)
            return i;
    return -1;
}

static int new_node(const struct stat *st)
{
    if (model.nnodes == NODES)
        abort();
    model.node[model.nnodes] = (struct node){
        st->st_dev, st->st_ino, S_ISDIR(st->st_mode), st->st_mode & 07777};
    return model.nnodes++;
}

static struct event *new_event(enum kind kind, int node)
{
    if (model.nevents == EVENTS)
        abort();
    struct event *event = &model.event[model.nevents++];
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
    int i = dir < 0 ? -1 : find_entry(&model.live, dir, name);
    return i < 0 ? -1 : model.live.entry[i].node;
}

static void record_entry(const struct event *event)
{
    change_all(&model.live, event);
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
}

void disk_made(int dirfd, const char *name)
{
    const char *base;
    struct stat st;
    if (!model.on)
        return;
    pthread_mutex_lock(&model.lock);
    int dir = directory_of(dirfd, name, &base);
    if (dir >= 0 && node_at(dir, base) < 0 &&
        fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        /* another name for what is there, or a new file */
        int node = S_ISREG(st.st_mode) && st.st_nlink > 1 ? find_node(&st) : -1;
        struct event *event = new_event(ENTRY, -1);
        add_change(event, dir, base, node >= 0 ? node : new_node(&st));
        record_entry(event);
    }
    pthread_mutex_unlock(&model.lock);
}

void disk_removed(int dirfd, const char *name)
{
    const char *base;
    if (!model.on)
        return;
    pthread_mutex_lock(&model.lock);
    int dir = directory_of(dirfd, name, &base);
    if (node_at(dir, base) >= 0) {
        struct event *event = new_event(ENTRY, -1);
        add_change(event, dir, base, -1);
        record_entry(event);
    }
    pthread_mutex_unlock(&model.lock);
}

void disk_renamed(int from, const char *a, int to, const char *b,
                  bool exchanged)
{
    const char *x, *y;
    if (!model.on)
        return;
    pthread_mutex_lock(&model.lock);
    int p = directory_of(from, a, &x), q = directory_of(to, b, &y);
    int moved = node_at(p, x), other = node_at(q, y);
    if (moved >= 0 && q >= 0) {
        struct event *event = new_event(ENTRY, -1);
        add_change(event, p, x, exchanged ? other : -1);
        add_change(event, q, y, moved);
        record_entry(event);
    }
    pthread_mutex_unlock(&model.lock);
}

void disk_written(int fd)
{
    struct stat st;
    if (!model.on || fstat(fd, &st))
        return;
    pthread_mutex_lock(&model.lock);
    int node = find_node(&st);
    if (node >= 0)
        record_data(node, fd);
    pthread_mutex_unlock(&model.lock);
}

void disk_synced(int fd)
{
    struct stat st;
    if (!model.on || fstat(fd, &st))
        return;
    pthread_mutex_lock(&model.lock);
    int node = find_node(&st);
    if (node >= 0)
        new_event(SYNC, node);
    pthread_mutex_unlock(&model.lock);
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
    for (int i = 0; i < model.nevents; i++)
        free(model.event[i].blob.data);
    for (int i = 0; i < model.nroots; i++)
        free(model.path[i]);
    model.nevents = model.nnodes = model.nroots = 0;
    memset(&model.live, 0, sizeof(model.live));
}

void disk_begin(const char *const *root, int n)
{
    forget();
    for (int i = 0; i < n; i++) {
        struct stat st;
        int fd = open(root[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st))
            abort();
        model.path[i] = strdup(root[i]);
        model.root[model.nroots++] = new_node(&st);
        take_in(model.root[i], fd);
    }
    for (int i = 0; i < model.nnodes; i++)
        new_event(SYNC, i);
    model.ninitial = model.nevents;
    model.on = true;
}

int disk_now(void)
{
    pthread_mutex_lock(&model.lock);
    int now = model.nevents - model.ninitial;
    pthread_mutex_unlock(&model.lock);
    return now;
}

int disk_end(void)
{
    model.on = false;
    return model.nevents - model.ninitial;
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
    struct disk *disk = &model.made;
    memset(disk, 0, sizeof(*disk));
    for (int i = 0; i < model.ninitial + at; i++)
        apply(disk, &model.event[i]);
}

static int entry_ways(void)
{
    return model.made.npending ? 2 * model.made.npending : 1;
}

static bool any_dirty(void)
{
    for (int i = 0; i < model.nnodes; i++)
        if (is_dirty(&model.made, i))
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
    int n = model.made.npending, way = state;
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
    snprintf(model.words, sizeof(model.words),
             "before event %d, of %d entries those from %d to %d are there, "
             "data %s",
             at, model.made.npending, first, last, way[data]);
    return model.words;
}

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *ftw)
{
    (void)st, (void)type;
    return ftw->level > 0 ? remove(path) : 0;
}

static void put_file(int dirfd, const char *name, int node, int way)
{
    const struct blob *safe = &model.made.safe[node];
    const struct blob *now = &model.made.now[node];
    const struct blob *from = way == GONE ? safe : now;
    bool dirty = is_dirty(&model.made, node);
    size_t keep = !dirty || way == THERE || way == GONE ? from->len
                  : way == HALF                         ? from->len / 2
                                                        : 0;
    int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                    model.node[node].mode);
    if (fd < 0 || (keep > 0 && write(fd, from->data, keep) != (ssize_t)keep) ||
        ftruncate(fd, (off_t)from->len))
        abort();
    close(fd);
}

static void put_directory(int dirfd, int node, int way)
{
    const struct disk *disk = &model.made;
    for (int i = 0; i < disk->nentries; i++) {
        const struct change *entry = &disk->entry[i];
        if (entry->dir != node)
            continue;
        if (!model.node[entry->node].directory) {
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

bool disk_syncs(int at)
{
    int i = model.ninitial + at;
    return i == model.nevents || model.event[i].kind == SYNC;
}

void disk_restore(int at, int state)
{
    int first, last, way;
    replay(at);
    choose(state, &first, &last, &way);
    for (int i = first; i < last; i++)
        change_all(&model.made, model.made.pending[i]);
    for (int i = 0; i < model.nroots; i++) {
        nftw(model.path[i], remove_one, 16, FTW_DEPTH | FTW_PHYS);
        int fd = open(model.path[i], O_RDONLY | O_DIRECTORY);
        if (fd < 0)
            abort();
        put_directory(fd, model.root[i], way);
        close(fd);
    }
}
