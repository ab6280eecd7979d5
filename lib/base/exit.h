/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* exit.h - exit codes that have a meaning beyond the program that ends. */
#ifndef DT_BASE_EXIT_H
#define DT_BASE_EXIT_H

#include "dt.h" /* DT_EXIT_REQUEUE: the job is to be requeued */

/* The command line of one of our programs is wrong (sysexits.h: EX_USAGE). */
#define DT_EXIT_USAGE 64

/* A task or a batch script ended with this: the job must not be requeued. */
#define DT_EXIT_NO_RESTART 93

#endif
