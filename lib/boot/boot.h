/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* boot.h - how the ranks of a job meet: who am I, one allgather, and what the
 * launcher tells of the others. */
#ifndef DT_BOOT_BOOT_H
#define DT_BOOT_BOOT_H

#include "base/error.h"

struct dt_blob {
    const void *data;
    size_t len;
};

/* A broken connection is noticed before the launcher can say who died of what:
 * how long to wait for that, in ms. */
#define DT_BOOT_PATIENCE 1000

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

    /* Has the launcher told that a rank is lost, or is it lost itself? SUCCESS,
     * or PROC_FAILED with who and why in err, which is then the answer for
     * ever. With patience 0 this costs one load while all is well; else it
     * waits so many ms for bad news, if this kind of job ever has any. */
    dt_result_t (*news)(struct dt_boot *boot, int patience,
                        struct dt_error *err);

    /* All went well: wait until all ranks have said so, lest the end of one
     * be bad news to another. At most timeout seconds, and not after bad
     * news. */
    void (*farewell)(struct dt_boot *boot, long timeout);

    /* Leave. NULL is fine. */
    void (*close)(struct dt_boot *boot);
};

extern const struct dt_boot_ops dt_boot_pmix; /* a step of Slurm, or PRRTE */
extern const struct dt_boot_ops dt_boot_solo; /* no launcher: one rank */

/* What Slurm, or else the kernel, calls this node. */
void dt_boot_node_name(char *name, size_t size);

/* news and farewell where there is no launcher to tell anything. */
dt_result_t dt_boot_no_news(struct dt_boot *boot, int patience,
                            struct dt_error *err);
void dt_boot_no_farewell(struct dt_boot *boot, long timeout);

/* Join by the first kind that detects itself. */
dt_result_t dt_boot_open(struct dt_boot **boot, struct dt_error *err);

#endif
