/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* jobfile.h - the files by which the plugin, dt-requeue and the tasks of a job
 * communicate on a node:
 *
 *   dt-notice.<job>.<node>.<cluster>.<step>.<random>
 *   dt-requeue.<job>.<node>.<cluster>.<random>
 *
 * in /run/slurm-dt/<uid>; in /dev/shm where the plugin could not make that.
 * They belong to the job's user and have mode 0600. Nobody can guess a name,
 * and a file of another user is not found, so that a name that is taken has no
 * effect.
 *
 * The notice file of a step is what DT_NOTICE names. Its first byte is not 0
 * once the tasks are to leave; the reason follows, up to a 0 byte. dt-requeue
 * writes it, called by a user or as the process that the plugin starts with the
 * step; that process removes it when the tasks have ended, even where
 * slurmstepd was killed.
 *
 * The requeue record of a job is on the node of the batch script and has lines:
 *   option 9,9,9,9,0  the --dt-requeue of a step, as decide_parse_caps() reads
 *                     it
 *   begin             a step begins
 *   75, 93            a task of that step ended with this exit code
 *   terminated        SIGTERM ended a task of that step
 *   hand 1 reason     dt-requeue requested the job to leave; 1: hold it
 * Two processes that begin one at the same time leave two, with the same sense.
 */
#ifndef DT_BASE_JOBFILE_H
#define DT_BASE_JOBFILE_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

enum { DT_JOBFILE_NAME = 512, DT_JOBFILE_PATH = 576, DT_JOBFILE_SIZE = 4096 };
#define DT_JOBFILE_NOTICE "dt-notice"
#define DT_JOBFILE_RECORD "dt-requeue"

/* The beginning of the names of a job's files of that kind, up to the dot
 * behind the cluster. What is no letter, digit, '-' or '_' becomes '_'. */
void dt_jobfile_prefix(char prefix[DT_JOBFILE_NAME], const char *kind,
                       const char *job, const char *node, const char *cluster);

/* Open the folder of uid's files; path, if not NULL, gets its path. NULL with
 * errno. */
DIR *dt_jobfile_folder(uid_t uid, char path[DT_JOBFILE_PATH]);

/* Open the next file of the effective user that begins with prefix. -1 at the
 * end. *name is valid until the next call. */
int dt_jobfile_next(DIR *folder, const char *prefix, int flags,
                    const char **name);

/* Has uid a file that begins with prefix? */
bool dt_jobfile_exists(uid_t uid, const char *prefix);

/* Make a notice file of the effective user, DT_JOBFILE_SIZE bytes of 0. */
dt_result_t dt_jobfile_make_notice(const char *prefix, unsigned step,
                                   char path[DT_JOBFILE_PATH],
                                   struct dt_error *err);

/* Open the effective user's requeue record to append, and create it if make.
 * -1 with errno. */
int dt_jobfile_open_record(const char *prefix, bool make);

#endif
