/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* state.c - what every part of the engine asks. */
#include "grad/state.h"

#include <time.h>
#include <unistd.h>

dt_result_t dt_grad_failed(dt_result_t rc, struct dt_error *err)
{
    return dt_error_set(err, rc, "%s", dt_last_error());
}

double dt_grad_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* FNV-1a. */
unsigned dt_grad_hash(uint32_t plan, const char *name)
{
    uint32_t hash = 2166136261U ^ plan;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619U;
    return (hash ^ hash >> 16) % DT_NAMES;
}

dt_result_t dt_grad_not_forked(struct dt_grad *grad, struct dt_error *err)
{
    if (grad->pid == getpid())
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_INVALID_ARG,
                        "the gradient engine cannot be used in a process that "
                        "was forked after dt_grad_open");
}

dt_result_t dt_grad_usable(struct dt_grad *grad, struct dt_error *err)
{
    if (!grad)
        return dt_error_set(err, DT_ERR_INVALID_ARG,
                            "there is no gradient engine: dt_grad_open comes "
                            "first");
    dt_result_t rc = dt_grad_not_forked(grad, err);
    if (rc != DT_SUCCESS)
        return rc;
    rc = atomic_load(&grad->failure);
    if (rc != DT_SUCCESS)
        return dt_error_set(err, rc, "%s", grad->failure_text.text);
    return DT_SUCCESS;
}
