/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* collective.h - a collective operation of ranks (fence, connect, disconnect,
 * group) of which PMIx has completed the part of this node. Here the parts of
 * all nodes are combined. */
#ifndef DT_PMIX_COLLECTIVE_H
#define DT_PMIX_COLLECTIVE_H

#include <stddef.h>

#include "server/library.h"

/* "what" of dt_mesh_collect. */
enum dt_pmix_collect {
    DT_COLLECT_FENCE = 1,
    DT_COLLECT_CONNECT,
    DT_COLLECT_DISCONNECT,
    DT_COLLECT_CONSTRUCT, /* a group, of that name */
    DT_COLLECT_DESTRUCT,
};

struct dt_pmix_collective {
    struct dt_pmix_delayed delayed; /* must be the first */
    enum dt_pmix_collect what;
    /* PMIx's, valid until done has answered it */
    const char *name; /* NULL: none */
    const pmix_proc_t *procs;
    size_t nprocs;
    const pmix_info_t *info;
    size_t ninfo;
    char *data; /* from malloc: what this node contributes; may be NULL */
    size_t len;
    /* In the server's thread, may be NULL: write data now. */
    pmix_status_t (*prepare)(struct dt_pmix *pmix,
                             struct dt_pmix_collective *collective);
    /* In the server's thread: answer PMIx and free the collective, but not its
     * data. On success data is what all nodes contributed, one after the other,
     * to be freed; else NULL. */
    void (*done)(struct dt_pmix *pmix, struct dt_pmix_collective *collective,
                 pmix_status_t status);
    /* of collective.c */
    struct dt_pmix *pmix;
    struct dt_pmix_collective *next, **link;
};

/* In PMIx's thread; collective is one malloc'd block or NULL. Frees it and its
 * data unless it returns PMIX_SUCCESS. */
pmix_status_t dt_pmix_collective_start(struct dt_pmix_collective *collective);

/* Free those that wait for other nodes, when nothing can answer any more. */
void dt_pmix_collectives_free(struct dt_pmix *pmix);

#endif
