/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fetch.h - reading the files of a checkpoint, wherever they are: here, or on
 * the disk of another node. */
#ifndef DT_CKPT_FETCH_H
#define DT_CKPT_FETCH_H

#include "ckpt/manifest.h"

struct dt_read {
    int file; /* index in the manifest */
    size_t offset, len;
    void *to;
};

/* An opened checkpoint. */
struct dt_source {
    int fd;                      /* of its directory here, or -1 */
    struct dt_manifest manifest; /* the same on all ranks */
    uint64_t identity;
    bool shared; /* all files are in fd */
    int *holder; /* [nfiles] else: a rank that has it, which
                  * is this one if it is in fd */
    bool made;   /* else: fd is new, for what is brought back */
    char *text;  /* else: of the manifest, len bytes */
    size_t len;
};

/* Read all of them. Where the source is shared not collective and without
 * communication; else collective over the world, also for those who read
 * nothing, and with one result for all. Bounded memory: at most 64 MiB beyond
 * what is read into. Errors, whose text is a reason with the file's name:
 * CORRUPT where a file is missing, short, longer or unreadable; IO, NO_MEMORY,
 * those of the collectives. */
dt_result_t dt_fetch(const struct dt_source *source, const struct dt_read *read,
                     size_t n, struct dt_error *err);

/* Give back all of it. */
void dt_source_close(struct dt_source *source);

#endif
