/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* held_ports.h - ports of this node that the programs of the ranks will listen
 * at. Until the step ends each is bound here, with SO_REUSEADDR, and nobody
 * listens: the kernel then gives it to no one who asks for any port, and a
 * program that sets SO_REUSEADDR can listen at it. */
#ifndef DT_PMIX_HELD_PORTS_H
#define DT_PMIX_HELD_PORTS_H

#include <stdint.h>
#include <stdio.h>

#include "mesh/map.h"
#include "daemon/step.h"

struct dt_held_ports {
    int *fd;
    uint16_t *port; /* first the ranks' own, then the shared ones */
    size_t n, nshared;
    uint32_t used; /* a bit for each shared port at which one has listened */
};

/* Hold what the step wants of this node; of step->ports, where it names any.
 * SYSTEM: there are not so many, or the kernel refuses. */
dt_result_t dt_held_ports_open(struct dt_held_ports *held,
                               const struct dt_step *step,
                               struct dt_error *err);
/* held may be all 0 */
void dt_held_ports_close(struct dt_held_ports *held);

/* Look at which shared ports programs listen now: a port at which none has yet,
 * or 0. */
uint16_t dt_held_ports_unused(struct dt_held_ports *held);

/* Print those of all nodes, as base/step.h has them. MISMATCH: a node holds
 * another number than the step wants. */
dt_result_t dt_held_ports_print(const struct dt_step *step,
                                const struct dt_map *map, FILE *out,
                                struct dt_error *err);

#endif
