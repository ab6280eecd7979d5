/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* step.h - reads what the plugin sends about the step and its ranks, which
 * base/step.h describes. Pure. */
#ifndef DT_PMIX_STEP_H
#define DT_PMIX_STEP_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct dt_step {
    uint32_t job, step, node, nodes, ranks;
    uint32_t *local; /* [nlocal], in rising order */
    size_t nlocal;
    uint32_t heartbeat, limit; /* seconds */
    uint16_t port;             /* of the rendezvous; 0: of job and step */
    /* ports to hold: for each rank (0, 1); at the node of rank 0 */
    uint32_t hold_own, hold_shared;
    uint32_t listen;   /* seconds until programs listen at these; 0: for ever */
    uint32_t together; /* 1: a rank that fails ends all others */
    uint32_t elastic;  /* ranks that must be left; 0: the step is not elastic */
    /* parts of text; NULL if not given */
    const char *name, *hosts, *srun, *directory, *auth, *munge, *command;
    const char *ports; /* from which held ports are taken: "12000-12003" */
    char *text;
};

/* Read the first packet, which needs no NUL after its size bytes. Each key may
 * be there once; no value has control characters. With more than one node there
 * are hosts. INVALID_ARG: what is wrong with it; VERSION:
 * it is for another dt-pmixd. */
dt_result_t dt_step_read(const char *text, size_t size, struct dt_step *step,
                         struct dt_error *err);
void dt_step_free(struct dt_step *step);

/* A later packet. */
struct dt_step_event {
    bool ended;    /* else started */
    uint32_t rank; /* of step->local: its index */
    int number;    /* process id, or exit code */
};
dt_result_t dt_step_read_event(const struct dt_step *step, const char *text,
                               size_t size, struct dt_step_event *event,
                               struct dt_error *err);

#endif
