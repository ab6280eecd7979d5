/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* own.h - what the ranks of this node write in the save under way, laid end to
 * end: what parity is made of. */
#ifndef DT_CKPT_OWN_H
#define DT_CKPT_OWN_H

#include "ckpt/far.h"
#include "ckpt/span.h"

/* Begins as {0}. */
struct dt_own {
    struct dt_source disk;
    void **map; /* [nfiles]: it is in memory, there; or NULL */
    struct dt_span span;
    struct dt_reader reader;
};

/* List the files in the directory dirfd, as the manifest will name them. All
 * have been created. Those that are also in the directory memoryfd of the
 * node's memory (-1: none), where every rank's part is one file, are read
 * there: they may be still on their way to the disk. Both descriptors stay the
 * caller's. Errors: IO, NO_MEMORY; own is to be closed in any case. */
dt_result_t dt_own_open(struct dt_own *own, int dirfd, int memoryfd,
                        struct dt_error *err);

/* The bytes from .. from + len - 1, with zeros behind the last file. Errors as
 * dt_fetch. */
dt_result_t dt_own_read(struct dt_own *own, unsigned char *to, size_t from,
                        size_t len, struct dt_error *err);

/* The same where they lie, until own is closed; NULL: they have to be read. */
const void *dt_own_look(const struct dt_own *own, size_t from, size_t len);

void dt_own_close(struct dt_own *own);

#endif
