/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* failure.c - errors that many files report. */
#include "ckpt/format/failure.h"

#include <errno.h>
#include <string.h>

#include "base/file.h"

dt_result_t dt_failed(struct dt_error *err, const char *what)
{
    int why = errno;
    return dt_error_set(err, dt_file_result(why), "%s: %s", what,
                        strerror(why));
}

dt_result_t dt_failed_in(struct dt_error *err, const char *where,
                         dt_result_t rc)
{
    struct dt_error inner = *err;
    return dt_error_set(err, rc, "%s: %s", where, inner.text);
}
