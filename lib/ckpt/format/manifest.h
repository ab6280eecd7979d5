/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* manifest.h - the data model of a checkpoint: its tensors, the slices in which
 * they were written, and the files with the slices. doc/checkpoint.md describes
 * the format. */
#ifndef DT_CKPT_FORMAT_MANIFEST_H
#define DT_CKPT_FORMAT_MANIFEST_H

#include "ckpt/format/tensor.h"

#define DT_MANIFEST_NAME  "manifest.json"
#define DT_MANIFEST_BLOCK 4194304 /* bytes that one checksum covers */

struct dt_manifest_file {
    char name[64]; /* letters, digits, "-_." and no leading dot */
    size_t size;
    size_t header;     /* bytes before the first tensor's data */
    uint64_t checksum; /* XXH3-64 of the header; version 1: of all bytes */
    int rank, node;    /* the rank that wrote it, and its node (version 1: 0) */
};

/* The part of a tensor that one rank wrote. */
struct dt_manifest_slice {
    int file, rank;       /* index of its file, and the rank that wrote it */
    size_t offset, bytes; /* of its data, from the start of the file */
    /* its first element in the tensor and its size, in elements, [ndim] */
    const int64_t *at, *extent;
    /* XXH3-64 of each DT_MANIFEST_BLOCK of its data, the last one shorter,
     * [ceil(bytes / DT_MANIFEST_BLOCK)]; NULL in version 1 */
    const uint64_t *sum;
};

enum dt_manifest_kind {
    DT_MANIFEST_GLOBAL, /* the slices cover tensor.shape without overlap; a
                         * replicated tensor is one slice */
    DT_MANIFEST_OWN,    /* each rank has a tensor of that shape: slice[rank] */
    DT_MANIFEST_BLOB,   /* each rank has its own number of bytes: U8 [bytes] */
};

struct dt_manifest_tensor {
    struct dt_tensor tensor; /* type and shape of the whole tensor; a blob is
                              * U8 [the most bytes that a rank has] */
    enum dt_manifest_kind kind;
    bool replicated; /* one slice, which all ranks share */
    size_t nslices;
    struct dt_manifest_slice *slice;
};

struct dt_manifest {
    int version;
    int64_t step, restart_count;
    uint64_t tag; /* identifies the save; part of hidden directories' names */
    char run_id[128];    /* printable ASCII */
    char created[32];    /* "2026-01-31T23:59:59Z" */
    char redundancy[32]; /* "none", "partner", "xor:4", "rs:4+2" */
    int world_size, num_nodes;
    double copy_s;  /* seconds for which the slowest rank was stopped */
    double write_s; /* seconds from then until the commit */
    size_t nfiles, count;
    struct dt_manifest_file *file;
    struct dt_manifest_tensor *tensor; /* by name, sorted */
    /* what the slices point to; dt_manifest_clear frees all five */
    struct dt_manifest_slice *slices;
    int64_t *coords;
    uint64_t *sums;
};

/* The tensor of that name or NULL. */
const struct dt_manifest_tensor *
dt_manifest_find(const struct dt_manifest *manifest, const char *name);

/* Free everything in manifest, and zero it. */
void dt_manifest_clear(struct dt_manifest *manifest);

/* The number of checksums that so many bytes of data have. */
static inline size_t dt_manifest_blocks(size_t bytes)
{
    return bytes / DT_MANIFEST_BLOCK + (bytes % DT_MANIFEST_BLOCK > 0);
}

#endif
