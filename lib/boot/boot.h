/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* boot.h - the bootstrap: the number of this rank, an allgather, and what the
 * launcher reports about the other ranks.
 *
 * In an elastic job the allgather is a meeting of the ranks that live: rank and
 * size are new each time. Else all ranks of the job take part. */
#ifndef DT_BOOT_BOOT_H
#define DT_BOOT_BOOT_H

#include "base/error.h"

struct dt_blob {
    const void *data;
    size_t len;
};

/* A broken connection is noticed before the launcher reports which rank was
 * lost, and why: how many milliseconds to wait for that report. */
#define DT_BOOT_EVENT_WAIT 1000

struct dt_boot {
    const struct dt_boot_ops *ops;
    size_t rank, size; /* from the allgather on; before it, rank is the
                        * launcher's number */
    size_t most;       /* ranks that the launcher has started */
    size_t nnodes;     /* 0: not known before the allgather */
    bool elastic;
    uint64_t epoch; /* of an elastic job: that of the last meeting, from 1 */
    char node[64];  /* of this rank; ranks with equal names are on one node */
};

struct dt_boot_ops {
    /* Join the job; fills most, node and elastic, and nnodes if it is known.
     * Errors: BOOTSTRAP, INVALID_ARG, NO_MEMORY. */
    dt_result_t (*open)(struct dt_boot **boot, struct dt_error *err);

    /* Send mine (copied) to all, receive all[size], for which there is room
     * for most; fills rank and size. The data belong to the boot until the next
     * one or close. Blocks, at most timeout seconds. Errors: BOOTSTRAP,
     * TIMED_OUT, NO_MEMORY; PROC_FAILED: fewer ranks live than the job needs.
     */
    dt_result_t (*allgather)(struct dt_boot *boot, const void *mine, size_t len,
                             struct dt_blob *all, long timeout,
                             struct dt_error *err);

    /* Has the launcher reported that a rank, or its server, was lost? SUCCESS,
     * or PROC_FAILED, from then on until the next allgather, with the rank and
     * the cause in err. With wait_ms 0 this costs one load; else it waits at
     * most that long for an event, if the launcher sends any. NULL: there is no
     * launcher. */
    dt_result_t (*check)(struct dt_boot *boot, int wait_ms,
                         struct dt_error *err);

    /* Has it reported that of this rank? NULL: never. */
    bool (*ended)(struct dt_boot *boot, size_t rank);

    /* The job has ended well: wait until all ranks have called this, so that
     * the exit of one is not reported as a loss to another. At most timeout
     * seconds, and not after a loss. NULL: there is no launcher. */
    void (*finish)(struct dt_boot *boot, long timeout);

    /* Leave the job. NULL is fine. */
    void (*close)(struct dt_boot *boot);
};

extern const struct dt_boot_ops dt_boot_pmix; /* there is a PMIx server */
extern const struct dt_boot_ops dt_boot_solo; /* no launcher: one rank */

/* The name of this node in Slurm, or else its host name. */
void dt_boot_node_name(char *name, size_t size);

/* Join the job by the launcher that has started this process. */
dt_result_t dt_boot_open(struct dt_boot **boot, struct dt_error *err);

#endif
