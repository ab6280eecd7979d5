/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* meeting.h - dt-pmixd --meet: the place where the servers of a step meet. */
#ifndef DT_PMIX_MEETING_H
#define DT_PMIX_MEETING_H

#define DT_EXIT_USAGE 64

/* argv is JOB STEP NODES RANKS LIMIT [MUNGE], standard input the socket, and
 * standard output a pipe that ends with srun. Goes to the background if munge
 * works here. Returns the exit code. */
int dt_meeting_run(int argc, char **argv);

#endif
