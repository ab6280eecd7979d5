/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* services.h - dt-pmixd --services: what a framework runs beside the ranks of a
 * node, as Dask's scheduler and workers. The first task of the node starts it,
 * so that it is where the task is, with its variables; it ends with the step.
 *
 * A framework is a script for the Python of the task's program, started as
 *
 *     PYTHON DIRECTORY/NAME PART ADDRESS NODES RANKS LOCAL
 *
 * where PART is "head", on the first node only; "node", on each; and "ready",
 * on each, which ends with 0 when the program may start. ADDRESS is a held port
 * of the first node; the numbers are those of the step's nodes and ranks and of
 * the ranks on this node. TMPDIR is a directory that is removed at the end. A
 * part that ends with 0 was not needed, or the user has stopped it; any other
 * end is a failure.
 *
 * Standard input is a socket (AF_UNIX, SOCK_SEQPACKET) to this node's dt-pmixd:
 *
 *     services -> daemon   failed TEXT    a service has ended: one line for the
 *                                         user
 *     end of file          the other side has ended; then so does this one
 *
 * The tasks wait for a file in the daemon's directory, DT_STEP_SERVICES: it is
 * "ready" or "failed". */
#ifndef DT_PMIX_SERVICES_H
#define DT_PMIX_SERVICES_H

/* argv: what follows --services. The exit code. */
int dt_services_run(int argc, char **argv);

#endif
