/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* errors.c - errors that many files report. */
#include "text/errors.h"

#include <errno.h>
#include <string.h>

#include "base/file.h"

dt_result_t no_memory(struct dt_error *err)
{
    return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
}

dt_result_t failed(struct dt_error *err, const char *path)
{
    int why = errno;
    return dt_error_set(err, dt_file_result(why), "%s: %s", path,
                        strerror(why));
}

dt_result_t inside(struct dt_error *err, const char *path, dt_result_t rc)
{
    struct dt_error text = *err;
    return dt_error_set(err, rc, "%s: %s", path, text.text);
}
