/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* names.h - the frameworks that --dt-rendezvous knows. Pure. */
#ifndef DT_SPANK_FRAMEWORK_NAMES_H
#define DT_SPANK_FRAMEWORK_NAMES_H

#include <stdbool.h>
#include <stdint.h>

enum dt_framework {
    DT_FRAMEWORK_TORCH,
    DT_FRAMEWORK_LIGHTNING,
    DT_FRAMEWORK_ACCELERATE,
    DT_FRAMEWORK_DEEPSPEED,
    DT_FRAMEWORK_SAGEMAKER,
    DT_FRAMEWORK_TORCHRUN,
    DT_FRAMEWORK_JAX,
    DT_FRAMEWORK_TENSORFLOW,
    DT_FRAMEWORK_HOROVOD,
    DT_FRAMEWORK_RAY,
    DT_FRAMEWORK_DASK,
    DT_FRAMEWORK_MPI4PY,
    DT_FRAMEWORK_C,
    DT_NFRAMEWORKS,
};

struct dt_frameworks {
    bool chosen[DT_NFRAMEWORKS];
    /* TensorFlow's roles: rank 0 is the chief; the last ps ranks are parameter
     * servers */
    bool chief;
    uint32_t ps;
    bool elastic; /* torchrun's */
};

/* Read a list as "torch,jax" or "tensorflow,chief,ps:2"; the roles follow
 * tensorflow, and elastic follows torchrun. false: it is none, or has a name
 * twice. */
bool dt_frameworks_parse(const char *text, struct dt_frameworks *chosen);

/* Ports that all ranks share, which rank 0's node holds: one for each kind of
 * program that would listen at the same time. */
enum dt_framework_port {
    DT_PORT_TORCH, /* MASTER_PORT */
    DT_PORT_TORCHRUN,
    DT_PORT_JAX,
    DT_PORT_HOROVOD,
    DT_PORT_RAY,
    DT_PORT_DASK,
    DT_NPORTS,
};
bool dt_frameworks_use(const struct dt_frameworks *chosen,
                       enum dt_framework_port port);
uint32_t dt_frameworks_shared(const struct dt_frameworks *chosen);

/* Ports of those that have services beside the step; they are consecutive. */
enum { DT_PORT_SERVICES = DT_PORT_HOROVOD };
/* The name of such a framework, which is its script's, too; and the variable
 * that has the address of its service on the first node. */
const char *dt_frameworks_service(enum dt_framework_port port,
                                  const char **variable);

/* Does each rank need a port of its own? */
static inline bool dt_frameworks_own(const struct dt_frameworks *chosen)
{
    return chosen->chosen[DT_FRAMEWORK_TENSORFLOW];
}

#endif
