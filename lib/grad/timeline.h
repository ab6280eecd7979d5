/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* timeline.h - what happened when, in the JSON of Chrome's tracing. Without a
 * timeline (NULL) these return at once. The drive lock is held. */
#ifndef DT_GRAD_TIMELINE_H
#define DT_GRAD_TIMELINE_H

#include "grad/state.h"

/* A row for each name; on it, from start to end, seconds of dt_grad_now(). */
void dt_timeline_add(struct dt_timeline *timeline, const char *name,
                     const char *what, double start, double end);

/* The same for a bucket of a plan and each of its gradients, until now. */
void dt_timeline_bucket(struct dt_grad_plan *plan,
                        const struct dt_bucket *bucket, const char *what,
                        double start);

/* Complete the file. NULL is fine. */
dt_result_t dt_timeline_close(struct dt_timeline *timeline,
                              struct dt_error *err);

#endif
