/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* output.c - output files, which are written after the last measurement. */
#include "report/output.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static dt_result_t complain(const struct output *output, struct dt_error *err)
{
    return dt_error_set(err, DT_ERR_IO, "%s: %s", output->path,
                        strerror(errno));
}

dt_result_t output_open(struct output *output, const char *path,
                        const struct job *job, struct dt_error *err)
{
    dt_result_t rc = DT_SUCCESS;
    *output = (struct output){.path = path};
    if (path && job->rank == 0) {
        output->file = strcmp(path, "-") ? fopen(path, "ae") : stdout;
        if (!output->file)
            rc = complain(output, err);
    }
    return job_agree(job, rc, err);
}

dt_result_t output_begin(const struct output *output, struct dt_error *err)
{
    struct stat st;
    if (!output->file || output->file == stdout)
        return DT_SUCCESS;
    int fd = fileno(output->file);
    if (fstat(fd, &st) || (S_ISREG(st.st_mode) && ftruncate(fd, 0)))
        return complain(output, err);
    return DT_SUCCESS;
}

dt_result_t output_close(struct output *output, dt_result_t rc,
                         struct dt_error *err)
{
    if (!output->file)
        return rc;
    bool bad = fflush(output->file) || ferror(output->file);
    if (output->file != stdout)
        bad |= fclose(output->file) != 0;
    output->file = NULL;
    return rc == DT_SUCCESS && bad ? complain(output, err) : rc;
}
