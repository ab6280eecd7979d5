/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* manifest.h - what a checkpoint holds and in which files, as JSON.
 * doc/checkpoint.md draws it. */
#ifndef DT_CKPT_MANIFEST_H
#define DT_CKPT_MANIFEST_H

#include "ckpt/tensor.h"

#define DT_MANIFEST_NAME     "manifest.json"
#define DT_MANIFEST_TMP      "manifest.json.tmp"
#define DT_MANIFEST_MAX      100000000 /* bytes */
#define DT_MANIFEST_VERSION  1
#define DT_MANIFEST_PER_RANK (-1)

struct dt_manifest_file {
    char name[64]; /* letters, digits, "-_." and no leading dot */
    size_t size;
    uint64_t checksum; /* XXH3-64 of all its bytes */
};

struct dt_manifest_tensor {
    struct dt_tensor tensor;
    int file; /* index of the one that holds it, or PER_RANK: all do */
};

struct dt_manifest {
    int64_t step, restart_count;
    char run_id[128]; /* printable ASCII */
    char created[32]; /* "2026-01-31T23:59:59Z" */
    int world_size;
    struct dt_manifest_file *file; /* world_size of them, file[r] by rank r */
    size_t count;
    struct dt_manifest_tensor *tensor;
};

/* The manifest as text of *len bytes, to be freed by the caller. Only
 * NO_MEMORY. */
dt_result_t dt_manifest_print(const struct dt_manifest *manifest, char **text,
                              size_t *len, struct dt_error *err);

/* The other way; all fields are checked. Errors, whose text is a reason:
 * CORRUPT, VERSION when a newer slurm-dt wrote it, NO_MEMORY. */
dt_result_t dt_manifest_parse(struct dt_manifest *manifest, const char *text,
                              size_t len, struct dt_error *err);

/* Give back what parse allocated. */
void dt_manifest_clear(struct dt_manifest *manifest);

#endif
