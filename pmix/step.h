/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* step.h - what the plugin says of the step and its ranks, base/step.h, read.
 * Pure. */
#ifndef DT_PMIX_STEP_H
#define DT_PMIX_STEP_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct dt_step {
    uint32_t job, step, node, nodes, ranks;
    uint32_t *local; /* [nlocal], rising */
    size_t nlocal;
    uint32_t heartbeat, limit; /* seconds */
    uint16_t port;             /* where to meet; 0: of job and step */
    /* parts of text; NULL if not given */
    const char *name, *hosts, *srun, *directory, *auth, *munge, *command;
    char *text;
};

/* Read the first packet, a NUL after its size bytes not needed. Nodes that
 * differ from 1 have hosts. INVALID_ARG: what is wrong with it; VERSION: it is
 * for another dt-pmixd. */
dt_result_t dt_step_read(const char *text, size_t size, struct dt_step *step,
                         struct dt_error *err);
void dt_step_free(struct dt_step *step);

/* A later packet. */
struct dt_step_news {
    bool ended;    /* else started */
    uint32_t rank; /* of step->local: its index */
    int number;    /* process id, or exit code */
};
dt_result_t dt_step_read_news(const struct dt_step *step, const char *text,
                              size_t size, struct dt_step_news *news,
                              struct dt_error *err);

#endif
