/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* jobfile.h - the notice files and the requeue record of a job, in the node's
 * /dev/shm; tools/requeue/jobfile.h describes them. A process that makes or
 * opens one must have the effective id of the job's user. */
#ifndef DT_SPANK_JOBFILE_H
#define DT_SPANK_JOBFILE_H

#include <stdbool.h>

#include "base/error.h"

enum { DT_JOBFILE_PATH = 512 };

/* job is "<cluster>.<number>": a machine may serve several clusters. false: too
 * long. */
enum { DT_JOBFILE_JOB = 128 };
bool dt_jobfile_job(const char *cluster, const char *number,
                    char job[DT_JOBFILE_JOB]);

/* Make the notice file of a step, with a name that cannot be guessed. */
dt_result_t dt_jobfile_make_notice(const char *job, unsigned step,
                                   const char *node, char path[DT_JOBFILE_PATH],
                                   struct dt_error *err);

/* The path of the job's requeue record, on the node of its script. false: it is
 * too long. */
bool dt_jobfile_record_path(const char *job, const char *node,
                            char path[DT_JOBFILE_PATH]);

/* Open the record to append, and create it if make. -1: it is absent, or
 * another user's. */
int dt_jobfile_record_open(const char *path, bool make);

/* Append a line, given without its newline. */
void dt_jobfile_record_add(int fd, const char *line);

#endif
