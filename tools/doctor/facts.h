/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* facts.h - what rules look at: files below a root, and commands with a limit.
 *
 * Rules read nothing else, but for the environment, so that a tree of files and
 * commands in PATH can stand for any machine. What is returned lasts as long as
 * the doctor. */
#ifndef DT_DOCTOR_FACTS_H
#define DT_DOCTOR_FACTS_H

#include "doctor.h"
#include "requeue/slurm.h"

enum { COMMAND_SECONDS = 10 };

/* The contents of a file, at most 4 MiB; *size may be NULL. NULL with errno. */
const char *fact_file(struct doctor *doctor, const char *path, size_t *size);

/* Its first line, formatted name; "" if it cannot be read. */
const char *fact_line(struct doctor *doctor, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

bool fact_exists(struct doctor *doctor, const char *path);

/* What a symbolic link has; "" if it is none. */
const char *fact_link(struct doctor *doctor, const char *path);

/* The paths that match a pattern of the shell, sorted, NULL at the end. */
const char *const *fact_glob(struct doctor *doctor, const char *pattern);

/* Run a command for at most COMMAND_SECONDS, unless an earlier rule has.
 * Returns its status, or -1 if it cannot be run (*late is false) or did not end
 * in time (*late is true). *out is what it printed, or why it gave no status.
 */
int fact_run(struct doctor *doctor, const char *const argv[], bool both,
             const char **out, bool *late);

/* The last line of what a command printed, without Slurm's "error: ". */
const char *fact_last_line(struct doctor *doctor, const char *out);

/* A setting of "scontrol show config"; NULL if there is none, or no Slurm. */
const char *fact_setting(struct doctor *doctor, const char *key);

/* "Key=value" in a record of scontrol's; "" if it is not there. */
const char *fact_value(struct doctor *doctor, const char *record,
                       const char *key);

/* A variable; NULL if it is unset or empty. */
const char *fact_variable(const char *name);

#endif
