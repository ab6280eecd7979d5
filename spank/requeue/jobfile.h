/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* note.h - files of the job's user in the node's /dev/shm, by which the plugin,
 * dt-requeue and the tasks tell each other; tools/requeue/note.h says what is
 * in them. The process must have the user's effective id where it makes or
 * opens one. */
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

/* A new file, whose name nobody could guess, by which the tasks of a step are
 * told to leave. */
dt_result_t dt_jobfile_make_notice(const char *job, unsigned step,
                                   const char *node, char path[DT_JOBFILE_PATH],
                                   struct dt_error *err);

/* Where the job's note about its requeue is, on the node of its script. false:
 * the name is too long. */
bool dt_jobfile_record_path(const char *job, const char *node,
                            char path[DT_JOBFILE_PATH]);

/* Open it to append, and make it if wanted. -1: it is not there, or it is
 * somebody else's. */
int dt_jobfile_record_open(const char *path, bool make);

/* One line, which has no newline yet. */
void dt_jobfile_record_add(int fd, const char *line);

#endif
