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
};

/* Read a list as "torch,jax" or "tensorflow,chief,ps:2"; the roles follow
 * tensorflow. false: it is none, or has a name twice. */
bool dt_frameworks_parse(const char *text, struct dt_frameworks *chosen);

/* Ports that all ranks share, which rank 0's node holds: one for each kind of
 * program that would listen at the same time. */
enum dt_framework_port {
    DT_PORT_TORCH, /* MASTER_PORT */
    DT_PORT_TORCHRUN,
    DT_PORT_JAX,
    DT_NPORTS,
};
bool dt_frameworks_use(const struct dt_frameworks *chosen,
                       enum dt_framework_port port);
uint32_t dt_frameworks_shared(const struct dt_frameworks *chosen);

/* Does each rank need a port of its own? */
static inline bool dt_frameworks_own(const struct dt_frameworks *chosen)
{
    return chosen->chosen[DT_FRAMEWORK_TENSORFLOW];
}

#endif
