/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* disk-events.h - what disk-model.c records and disk-states.c makes states of.
 *
 * A node is a file or directory that was ever there. Events are recorded with
 * the whole contents of the file. */
#ifndef DISK_EVENTS_H
#define DISK_EVENTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define NODES   512
#define EVENTS  4096
#define ENTRIES 1024
#define PENDING 256
#define ROOTS   5
#define NAME    112

struct blob {
    char *data;
    size_t len;
    uint64_t sum; /* of data */
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

struct model {
    pthread_mutex_t lock;
    bool on;
    int nroots, root[ROOTS];
    char *path[ROOTS];
    int nnodes, nevents, ninitial;
    struct node node[NODES];
    struct event event[EVENTS]; /* the first ninitial: what was there */
    struct disk live;           /* now, only what has which name */
};

extern struct model disk_model;

/* The place in entry of that name in that directory, or -1. */
int disk_find(const struct disk *disk, int dir, const char *name);

/* Make the changes of an event of names. */
void disk_change(struct disk *disk, const struct event *event);

#endif
