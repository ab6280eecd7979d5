/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* boot.h - how the ranks of a job meet: who am I, and one allgather. */
#ifndef DT_BOOT_BOOT_H
#define DT_BOOT_BOOT_H

#include "base/error.h"

struct dt_blob {
    const void *data;
    size_t len;
};

struct dt_boot {
    const struct dt_boot_ops *ops;
    size_t rank, size;
    size_t nnodes; /* 0: not known before the allgather */
    char node[64]; /* of this rank: equal names are the same node */
};

struct dt_boot_ops {
    size_t size; /* of this struct, as the implementer knew it */
    const char *name;

    /* Is this process a rank of a job of this kind? */
    bool (*detect)(void);

    /* Join; fills rank, size, node, and nnodes if it can. Errors: BOOTSTRAP,
     * NO_MEMORY. */
    dt_result_t (*open)(struct dt_boot **boot, struct dt_error *err);

    /* Once per boot: give mine (copied), get all[size]; the data belong to
     * the boot until close. Blocks, at most timeout seconds. Errors:
     * BOOTSTRAP, TIMED_OUT, NO_MEMORY. */
    dt_result_t (*allgather)(struct dt_boot *boot, const void *mine, size_t len,
                             struct dt_blob *all, long timeout,
                             struct dt_error *err);

    /* Leave. NULL is fine. */
    void (*close)(struct dt_boot *boot);
};

extern const struct dt_boot_ops dt_boot_fork; /* processes of a test */
extern const struct dt_boot_ops dt_boot_pmix; /* a step of Slurm, or PRRTE */
extern const struct dt_boot_ops dt_boot_solo; /* no launcher: one rank */

/* What Slurm, or else the kernel, calls this node. */
void dt_boot_node_name(char *name, size_t size);

/* Join by the first kind that detects itself. */
dt_result_t dt_boot_open(struct dt_boot **boot, struct dt_error *err);

#endif
