/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* topo.h - what all of dt-topo uses: requests, differences. Functions that
 * print write to out and leave its errors to main(), which looks at the end. */
#ifndef DT_TOOLS_TOPO_H
#define DT_TOOLS_TOPO_H

#include "base/error.h"
#include "common/streams.h"
#include "dt_topo.h"

/* room for any list of CPUs */
#define CPU_LIST 24576

/* ---- request.c: what --tasks and the options beside it ask for ---- */

struct request_text {
    const char *tasks, *policy, *gpus, *cpus, *nics; /* NULL: not given */
};

struct plan {
    dt_place_request_t request;
    dt_place_task_t *task; /* [request.ntasks] */
};

/* Compute the placement. plan is to be freed by plan_clear(). INVALID_ARG. */
dt_result_t plan_make(struct plan *plan, const dt_topo_t *topo,
                      const struct request_text *text, struct dt_error *err);
void plan_clear(struct plan *plan);

/* ---- diff.c ---- */

/* Print a line for all that `got` lacks, has in addition or has otherwise, each
 * after prefix. Bus ids, localities, links, paths, states and speeds count;
 * names, UUIDs, device files and memory sizes do not. out may be NULL. Returns
 * how many. */
size_t print_diff(FILE *out, const char *prefix, const dt_topo_t *expected,
                  const dt_topo_t *got);

#endif
