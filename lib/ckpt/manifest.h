/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* manifest.h - what a checkpoint holds and in which files, as JSON.
 * doc/checkpoint.md draws it. */
#ifndef DT_CKPT_MANIFEST_H
#define DT_CKPT_MANIFEST_H

#include "ckpt/tensor.h"

#define DT_MANIFEST_NAME    "manifest.json"
#define DT_MANIFEST_TMP     "manifest.json.tmp"
#define DT_MANIFEST_MAX     1000000000 /* bytes */
#define DT_MANIFEST_VERSION 2          /* what is written; 1 is read, too */
#define DT_MANIFEST_BLOCK   4194304    /* bytes that one checksum covers */

struct dt_manifest_file {
    char name[64]; /* letters, digits, "-_." and no leading dot */
    size_t size;
    size_t header;     /* bytes before the first tensor's data */
    uint64_t checksum; /* XXH3-64 of the header; version 1: of all bytes */
    int rank, node;    /* who wrote it, and on which node (0 in version 1) */
};

/* A part of a tensor: what one rank wrote of it. */
struct dt_manifest_slice {
    int file, rank;       /* index of the file it is in; who wrote that */
    size_t offset, bytes; /* of its data, from the start of the file */
    /* where it begins in the tensor and how far it goes, in elements, [ndim] */
    const int64_t *at, *extent;
    /* XXH3-64 of each DT_MANIFEST_BLOCK of its data, the last one shorter,
     * [ceil(bytes / DT_MANIFEST_BLOCK)]; NULL in version 1 */
    const uint64_t *sum;
};

enum dt_manifest_kind {
    DT_MANIFEST_GLOBAL, /* slices, each written once, cover tensor.shape: a
                         * replicated tensor is one slice */
    DT_MANIFEST_OWN,    /* each rank's own of that shape: slice[rank] */
    DT_MANIFEST_BLOB,   /* bytes, as many as each rank had: U8 [bytes] */
};

struct dt_manifest_tensor {
    struct dt_tensor tensor; /* type and shape as a whole; of a blob U8 [the
                              * longest] */
    enum dt_manifest_kind kind;
    bool replicated; /* one slice that is everybody's */
    size_t nslices;
    struct dt_manifest_slice *slice;
};

struct dt_manifest {
    int version;
    int64_t step, restart_count;
    uint64_t tag;     /* of the save, in the names of its hidden directories */
    char run_id[128]; /* printable ASCII */
    char created[32]; /* "2026-01-31T23:59:59Z" */
    char redundancy[32]; /* "none", "partner", "xor:4", "rs:4+2" */
    int world_size, num_nodes;
    double copy_s, write_s; /* what it cost, seconds: the slowest rank's stall,
                             * and from then until the commit */
    size_t nfiles, count;
    struct dt_manifest_file *file;
    struct dt_manifest_tensor *tensor; /* by name, sorted */
    void *pool;                        /* owns what the above point to */
};

/* The manifest as text of *len bytes, to be freed by the caller, always of
 * version 2. Only NO_MEMORY. */
dt_result_t dt_manifest_print(const struct dt_manifest *manifest, char **text,
                              size_t *len, struct dt_error *err);

/* The other way; all fields are checked: slices lie inside their files and
 * tensors, GLOBAL ones cover theirs without overlap. Errors, whose text is a
 * reason: CORRUPT, VERSION when a newer slurm-dt wrote it, NO_MEMORY. */
dt_result_t dt_manifest_parse(struct dt_manifest *manifest, const char *text,
                              size_t len, struct dt_error *err);

/* Of version 1 only the headers of the files in the directory dirfd say where
 * a tensor lies: read them. Errors: CORRUPT, IO, NO_MEMORY. */
dt_result_t dt_manifest_locate(struct dt_manifest *manifest, int dirfd,
                               struct dt_error *err);

/* The text of the manifest in the directory dirfd, to be freed by the caller,
 * with room for 8 bytes more. Errors: CORRUPT, IO, NO_MEMORY. */
dt_result_t dt_manifest_text(int dirfd, char **text, size_t *len,
                             struct dt_error *err);

/* What errno of opening name, which a checkpoint should have, means: CORRUPT if
 * the checkpoint is to blame. */
dt_result_t dt_manifest_unopened(const char *name, struct dt_error *err);

/* All three: the manifest in the directory dirfd. identity: a checksum of its
 * text. */
dt_result_t dt_manifest_read(struct dt_manifest *manifest, int dirfd,
                             uint64_t *identity, struct dt_error *err);

/* Write it into the directory dirfd: manifest.json.tmp, synced, renamed, the
 * directory synced: text is on disk under its name or not there at all.
 * Errors: IO, NO_SPACE. */
dt_result_t dt_manifest_put(int dirfd, const char *text, size_t len,
                            struct dt_error *err);

/* The tensor of that name or NULL. */
const struct dt_manifest_tensor *
dt_manifest_find(const struct dt_manifest *manifest, const char *name);

/* Give back what parse, read or join allocated. */
void dt_manifest_clear(struct dt_manifest *manifest);

/* ---- building one ----
 *
 * Every rank says what it wrote, as JSON text (dt_part_*); rank 0 puts all
 * parts together, in order of rank (dt_manifest_join). */

struct dt_part; /* what this rank wrote */

struct dt_part *dt_part_create(int rank, int node); /* NULL: no memory */
void dt_part_destroy(struct dt_part *part);

/* A file of it; *index is for add_slice. */
dt_result_t dt_part_add_file(struct dt_part *part,
                             const struct dt_manifest_file *file, int *index,
                             struct dt_error *err);

/* A slice in it; slice->file is such an index, at NULL is all of it (of a blob
 * the bytes it has). sum has as many as bytes ask for. Errors: INVALID_ARG,
 * NO_MEMORY. */
dt_result_t dt_part_add_slice(struct dt_part *part,
                              const struct dt_tensor *tensor,
                              enum dt_manifest_kind kind, bool replicated,
                              const struct dt_manifest_slice *slice,
                              struct dt_error *err);

/* As text, to be freed by the caller. */
dt_result_t dt_part_print(const struct dt_part *part, char **text, size_t *len,
                          struct dt_error *err);

/* Fill file, tensor and pool of manifest, whose other fields the caller sets,
 * from the ranks' parts: text[r] of len[r] bytes. INVALID_ARG names the tensor
 * and the ranks if parts contradict or GLOBAL slices leave a gap or overlap
 * ("tensor w: rank 3's part overlaps rank 1's"). */
dt_result_t dt_manifest_join(struct dt_manifest *manifest, int nparts,
                             const char *const *text, const size_t *len,
                             struct dt_error *err);

#endif
