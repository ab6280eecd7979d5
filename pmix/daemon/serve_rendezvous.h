/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* serve_rendezvous.h - dt-pmixd --meet: the rendezvous of the servers of a
 * step. */
#ifndef DT_PMIX_SERVE_RENDEZVOUS_H
#define DT_PMIX_SERVE_RENDEZVOUS_H

/* argv is JOB STEP NODES RANKS LIMIT [MUNGE], standard input the listening
 * socket, and standard output a pipe that ends with srun. Goes into the
 * background if munge works here. Returns the exit code. */
int dt_serve_rendezvous(int argc, char **argv);

#endif
