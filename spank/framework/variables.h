/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* variables.h - the variables by which the processes of a framework find each
 * other, for one task. Pure. */
#ifndef DT_SPANK_FRAMEWORK_VARIABLES_H
#define DT_SPANK_FRAMEWORK_VARIABLES_H

#include <stddef.h>

#include "base/error.h"
#include "framework/names.h"

struct dt_framework_task {
    uint32_t job, step;
    uint32_t rank, ranks, local_rank, local_ranks, node, nodes;
    size_t gpus;           /* of the step on this node; 0: none are known */
    const char *host;      /* Slurm's name of this node */
    const char *hosts;     /* of all nodes, with commas */
    const char *directory; /* where the task starts */
    const char *token;     /* of Ray, the same for all ranks; NULL: none */
    const char *interface; /* by which this node reaches the others */
    /* held ports, "10.0.0.1:4711,[::1]:4712": of all ranks in order, and the
     * shared ones in order of enum dt_framework_port; NULL: none */
    const char *own, *shared;
};

/* Its shared port, "10.0.0.1:4711", in at's size bytes. false: there is none.
 */
bool dt_framework_address(const struct dt_frameworks *chosen,
                          const struct dt_framework_task *task,
                          enum dt_framework_port port, char *at, size_t size);

/* Called for each variable. false: stop, there is no memory. */
typedef bool dt_framework_put_t(void *arg, const char *name, const char *value);

/* INVALID_ARG: the step's shape does not fit the framework, with the option to
 * use; MISMATCH: ports are missing; NO_MEMORY. */
dt_result_t dt_framework_variables(const struct dt_frameworks *chosen,
                                   const struct dt_framework_task *task,
                                   dt_framework_put_t *put, void *arg,
                                   struct dt_error *err);

#endif
