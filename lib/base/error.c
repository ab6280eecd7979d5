/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* error.c - error texts. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/printable.h"

dt_result_t dt_error_set(struct dt_error *err, dt_result_t code,
                         const char *fmt, ...)
{
    if (err) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(err->text, sizeof(err->text), fmt, ap);
        va_end(ap);
    }
    return code;
}

dt_result_t dt_no_memory(struct dt_error *err)
{
    return dt_error_set(err, DT_ERR_NO_MEMORY, "out of memory");
}

void dt_report(const char *fmt, ...)
{
    char text[2 * sizeof(struct dt_error)], shown[4 * sizeof(text)];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    dt_printable(shown, sizeof(shown), text);
    fprintf(stderr, "dt: %s\n", shown);
}

const char *dt_strerror(dt_result_t result)
{
    switch (result) {
    case DT_SUCCESS:
        return "success";
    case DT_IN_PROGRESS:
        return "in progress";
    case DT_ERR_INVALID_ARG:
        return "invalid argument";
    case DT_ERR_UNSUPPORTED:
        return "not supported";
    case DT_ERR_NOT_INITIALIZED:
        return "not initialized";
    case DT_ERR_NO_MEMORY:
        return "out of memory";
    case DT_ERR_NOT_FOUND:
        return "not found";
    case DT_ERR_IO:
        return "input/output error";
    case DT_ERR_NO_SPACE:
        return "no space left";
    case DT_ERR_CORRUPT:
        return "corrupt";
    case DT_ERR_MISMATCH:
        return "does not match this program";
    case DT_ERR_BUSY:
        return "in use by another job";
    case DT_ERR_PROC_FAILED:
        return "process failed";
    case DT_ERR_TIMED_OUT:
        return "timed out";
    case DT_ERR_BOOTSTRAP:
        return "the ranks could not connect at start";
    case DT_ERR_VERSION:
        return "versions differ";
    case DT_ERR_SYSTEM:
        return "system error";
    }
    return "unknown result";
}
