/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ckpt.c - the public functions, except those of tensors.c. */
#include "ckpt/handle.h"

#include "base/api.h"
#include "ckpt/load/load.h"
#include "ckpt/open.h"
#include "ckpt/save/save.h"

dt_result_t dt_ckpt_open(const char *dir, int keep, dt_ckpt_t *ckpt)
{
    struct dt_error err = {0};
    dt_result_t rc;
    if ((dir && !*dir) || keep < -1 || !ckpt)
        rc = dt_error_set(&err, DT_ERR_INVALID_ARG,
                          "dt_ckpt_open: expected a directory, a number of "
                          "checkpoints to keep from 0, and where to put the "
                          "handle");
    else if (!dt_comm_world())
        rc = DT_ERR_NOT_INITIALIZED;
    else
        rc = dt_open_ckpt(dir, keep, ckpt, &err);
    return dt_api_return(rc, &err);
}

/* The checks that all calls have in common. */
static dt_result_t check(const struct dt_ckpt *ckpt, const char *call,
                         bool good, const char *what, struct dt_error *err)
{
    if (!ckpt || !good)
        return dt_error_set(err, DT_ERR_INVALID_ARG, "%s: expected a handle%s",
                            call, what);
    return dt_comm_world() ? DT_SUCCESS : DT_ERR_NOT_INITIALIZED;
}

static dt_result_t check_save(const struct dt_ckpt *ckpt, const char *call,
                              int64_t step, struct dt_error *err)
{
    dt_result_t rc = check(ckpt, call, step >= 0, " and a step from 0", err);
    if (rc == DT_SUCCESS && ckpt->read_only)
        return dt_error_set(err, DT_ERR_IO,
                            "%s: Read-only file system: the checkpoint "
                            "directory is mounted so, open another one to save "
                            "into",
                            call);
    return rc;
}

dt_result_t dt_ckpt_save(dt_ckpt_t ckpt, int64_t step)
{
    struct dt_error err = {0};
    dt_result_t rc = check_save(ckpt, "dt_ckpt_save", step, &err);
    if (rc == DT_SUCCESS)
        rc = dt_save(ckpt, step, &err);
    return dt_api_return(rc, &err);
}

dt_result_t dt_ckpt_save_async(dt_ckpt_t ckpt, int64_t step)
{
    struct dt_error err = {0};
    dt_result_t rc = check_save(ckpt, "dt_ckpt_save_async", step, &err);
    if (rc == DT_SUCCESS)
        rc = dt_save_start(ckpt, step, &err);
    return dt_api_return(rc, &err);
}

dt_result_t dt_ckpt_wait(dt_ckpt_t ckpt)
{
    struct dt_error err = {0};
    dt_result_t rc = check(ckpt, "dt_ckpt_wait", true, "", &err);
    if (rc == DT_SUCCESS)
        rc = dt_save_wait(ckpt, &err);
    return dt_api_return(rc, &err);
}

bool dt_ckpt_need(dt_ckpt_t ckpt, int64_t step)
{
    return ckpt && dt_comm_world() && dt_need_ask(&ckpt->need, step);
}

dt_result_t dt_ckpt_latest(dt_ckpt_t ckpt, int64_t *step)
{
    struct dt_error err = {0};
    dt_result_t rc =
        check(ckpt, "dt_ckpt_latest", step, " and where to put the step", &err);
    if (rc == DT_SUCCESS) {
        dt_saver_idle(ckpt);
        rc = dt_load_latest(ckpt, step, &err);
    }
    return dt_api_return(rc, &err);
}

dt_result_t dt_ckpt_load(dt_ckpt_t ckpt, int64_t *step)
{
    struct dt_error err = {0};
    dt_result_t rc =
        check(ckpt, "dt_ckpt_load", step, " and where to put the step", &err);
    if (rc == DT_SUCCESS) {
        struct dt_source loaded;
        dt_saver_idle(ckpt);
        rc = dt_load(ckpt, step, &loaded, &err);
        if (rc == DT_SUCCESS)
            dt_save_loaded(ckpt, &loaded);
    }
    return dt_api_return(rc, &err);
}

void dt_ckpt_close(dt_ckpt_t ckpt)
{
    if (ckpt)
        dt_close_ckpt(ckpt);
}
