/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* api.c - the text of each thread's last error. */
#include "base/api.h"

#include "base/printable.h"

/* per thread, as errno, so that threads do not see each other's errors */
static _Thread_local struct dt_error last;

dt_result_t dt_api_return(dt_result_t code, const struct dt_error *err)
{
    if (code < 0)
        dt_printable(last.text, sizeof(last.text),
                     err && err->text[0] ? err->text : dt_strerror(code));
    return code;
}

const char *dt_last_error(void)
{
    return last.text;
}
