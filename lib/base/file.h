/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* file.h - file input and output that finishes what it starts. The functions
 * return 0, or -1 with errno, as the calls they wrap. */
#ifndef DT_BASE_FILE_H
#define DT_BASE_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/* Write all of buf. */
int dt_file_write(int fd, const void *buf, size_t len);

/* Read up to len bytes at offset; fewer only at the end of the file. Returns
 * how many, or -1. */
ssize_t dt_file_read(int fd, void *buf, size_t len, off_t offset);

/* fsync. A directory whose file system cannot (EINVAL) counts as synced. */
int dt_file_sync(int fd);

/* Open for reading what must be a regular file, no link, and set *size. Never
 * blocks, whatever is there: EINVAL if it is not a regular file. */
int dt_file_open(int dirfd, const char *name, size_t *size);

/* The same, but links are followed: for what a user has named. */
int dt_file_open_any(int dirfd, const char *name, size_t *size);

/* Open a regular file of the effective user that has no other name, and is no
 * link. With O_CREAT it is made, mode 0600. Never blocks: EPERM if it is
 * another user's or another kind. */
int dt_file_open_own(int dirfd, const char *name, int flags);

/* Create the directory path and its missing parents, each on disk. That path
 * exists already as something else is left to the caller to find. */
int dt_file_make_dirs(const char *path);

/* The result that stands for an errno: NO_SPACE, NO_MEMORY or IO. */
dt_result_t dt_file_result(int errnum);

#endif
