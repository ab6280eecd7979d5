/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* checkpoint.h - a checkpoint on disk, and its bytes, verified. */
#ifndef DT_TOOLS_CKPT_FILES_CHECKPOINT_H
#define DT_TOOLS_CKPT_FILES_CHECKPOINT_H

#include "ckpt/format/format.h"

struct checkpoint {
    char *path;               /* as in messages */
    char name[DT_STORE_NAME]; /* "step-000000000150" */
    int fd;                   /* of its directory */
    struct dt_manifest manifest;
    uint64_t identity;
    size_t bytes;         /* of all its files */
    int open_file, in;    /* the file that is open as in, or -1 */
    bool *whole;          /* [nfiles] version 1: its checksum is right */
    unsigned char *block; /* DT_MANIFEST_BLOCK of memory */
};

/* Open a checkpoint. path names it ("DIR/step-000000000150" or "DIR/step-150"),
 * or a directory of which the newest complete one is opened. The text of an
 * error begins with the path. Errors: NOT_FOUND, IO, NO_MEMORY, and those of
 * dt_manifest_read. */
dt_result_t checkpoint_open(struct checkpoint *c, const char *path,
                            struct dt_error *err);

/* Open the checkpoint name in the directory dirfd, whose path is dir. */
dt_result_t checkpoint_open_at(struct checkpoint *c, int dirfd, const char *dir,
                               const char *name, struct dt_error *err);

void checkpoint_close(struct checkpoint *c);

/* Check that every file is there with its size. CORRUPT names one that is not;
 * NOT_FOUND if only files of nodes of which no file is here are missing. */
dt_result_t checkpoint_files(const struct checkpoint *c, struct dt_error *err);

/* Open file number i as c->in, until the next call, and check its size. */
dt_result_t checkpoint_file(struct checkpoint *c, int i, struct dt_error *err);

/* Read the bytes begin .. end - 1 of a slice's data. Each block of which some
 * are needed is read as a whole and verified. Errors: CORRUPT, IO. */
dt_result_t checkpoint_read(struct checkpoint *c,
                            const struct dt_manifest_slice *slice, size_t begin,
                            size_t end, void *to, struct dt_error *err);

#endif
