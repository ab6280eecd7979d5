/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* file.h - complete reads and writes, and files opened with checks. The
 * functions return 0, or -1 with errno, as the calls that they wrap. */
#ifndef DT_BASE_FILE_H
#define DT_BASE_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/* Write all of buf. */
int dt_file_write(int fd, const void *buf, size_t len);

/* Read len bytes at offset, fewer only at the end of the file. Returns how
 * many, or -1. */
ssize_t dt_file_read(int fd, void *buf, size_t len, off_t offset);

/* fsync(). A directory on a file system without it (EINVAL) counts as synced.
 */
int dt_file_sync(int fd);

/* Open a regular file for reading and set *size. EINVAL: it is not a regular
 * file; ELOOP: it is a link. Never blocks, be it a FIFO. */
int dt_file_open(int dirfd, const char *name, size_t *size);

/* The same for names that a user gave: links are followed. */
int dt_file_open_any(int dirfd, const char *name, size_t *size);

/* Open a regular file of the effective user with one name only; links are not
 * followed. O_CREAT makes it with mode 0600. EPERM: it is another user's, or of
 * another kind. Never blocks. */
int dt_file_open_own(int dirfd, const char *name, int flags);

/* Create the directory path and its missing parents, and sync each. No error if
 * path exists, even as another kind of file. */
int dt_file_make_dirs(const char *path);

/* The result for an errno: NO_SPACE, NO_MEMORY or IO. */
dt_result_t dt_file_result(int errnum);

#endif
