/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* source.h - a checkpoint that is open for reading, and its files on this
 * node. */
#ifndef DT_CKPT_SOURCE_H
#define DT_CKPT_SOURCE_H

#include "ckpt/format/format.h"

struct dt_source {
    int fd;                      /* of its directory on this node, or -1 */
    struct dt_manifest manifest; /* the same on all ranks */
    uint64_t identity;           /* the checksum of the manifest's text */
    bool shared;                 /* all files are in fd; else: */
    int *
        holder; /* [nfiles] a rank that has the file: this one if it is in fd */
    bool memory; /* it is in the memory of the nodes */
    bool made;   /* fd was created for files that are rebuilt */
    char *text;  /* the text of the manifest, len bytes */
    size_t len;
};

/* Close and free all of it. */
void dt_source_close(struct dt_source *source);

/* Reads files in source->fd, and keeps the last one open. Begins as
 * {.source = source, .fd = -1}. */
struct dt_reader {
    const struct dt_source *source;
    int file, fd;
};

/* Read len bytes of the manifest's file number `file`. With len 0 the file is
 * only opened. CORRUPT, whose text has the file's name, if the file is missing,
 * has another size or cannot be read, or if the range is not in it; IO. */
dt_result_t dt_reader_read(struct dt_reader *reader, int file, size_t offset,
                           size_t len, void *to, struct dt_error *err);
void dt_reader_close(struct dt_reader *reader);

#endif
