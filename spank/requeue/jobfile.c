/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* jobfile.c - the notice files and the requeue record of a job. */
#include "requeue/jobfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/file.h"

enum { NOTICE_SIZE = 4096 };

dt_result_t dt_jobfile_make_notice(const char *job, unsigned step,
                                   const char *node, char path[DT_JOBFILE_PATH],
                                   struct dt_error *err)
{
    unsigned long long chance;
    if (getrandom(&chance, sizeof(chance), GRND_NONBLOCK) != sizeof(chance))
        return dt_error_set(err, DT_ERR_SYSTEM, "getrandom: %s",
                            strerror(errno));
    int length =
        snprintf(path, DT_JOBFILE_PATH, "/dev/shm/dt-notice.%s.%u.%s.%016llx",
                 job, step, node, chance);
    int fd = length < DT_JOBFILE_PATH
                 ? open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)
                 : -1;
    if (fd < 0)
        return dt_error_set(err, DT_ERR_SYSTEM, "%.256s: %s", path,
                            strerror(errno));
    dt_result_t rc = DT_SUCCESS;
    if (ftruncate(fd, NOTICE_SIZE) != 0) {
        rc = dt_error_set(err, DT_ERR_SYSTEM, "%.256s: %s", path,
                          strerror(errno));
        unlink(path);
    }
    close(fd);
    return rc;
}

bool dt_jobfile_job(const char *cluster, const char *number,
                    char job[DT_JOBFILE_JOB])
{
    return snprintf(job, DT_JOBFILE_JOB, "%s.%s", cluster ? cluster : "",
                    number) < DT_JOBFILE_JOB;
}

bool dt_jobfile_record_path(const char *job, const char *node,
                            char path[DT_JOBFILE_PATH])
{
    return snprintf(path, DT_JOBFILE_PATH, "/dev/shm/dt-requeue.%s.%s", job,
                    node) < DT_JOBFILE_PATH;
}

int dt_jobfile_record_open(const char *path, bool make)
{
    return dt_file_open_own(AT_FDCWD, path,
                            O_WRONLY | O_APPEND | (make ? O_CREAT : 0));
}

void dt_jobfile_record_add(int fd, const char *line)
{
    char text[256];
    int length = snprintf(text, sizeof(text), "%s\n", line);
    if (length > 0 && (size_t)length < sizeof(text) &&
        write(fd, text, (size_t)length) < 0)
        return; /* /dev/shm is full: the line is lost */
}
