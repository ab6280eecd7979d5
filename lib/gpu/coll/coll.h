/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* coll.h - collectives on GPU memory: the functions of struct dt_device_ops
 * (coll/engine/device.h, which says what they do), by file.
 *
 * Nothing here has run on hardware yet: all of it has run under the tests'
 * driver only, tests/mock. */
#ifndef DT_GPU_COLL_COLL_H
#define DT_GPU_COLL_COLL_H

#include "coll/engine/engine.h"
#include "coll/api/api.h"

/* call.c */
dt_result_t dt_gpu_place(struct dt_call *call, struct dt_error *err);
dt_result_t dt_gpu_begin(const struct dt_call *call,
                         struct dt_request **request, struct dt_error *err);
dt_result_t dt_gpu_follow(struct dt_request *request, struct dt_error *err);
dt_result_t dt_gpu_end(struct dt_request *request, struct dt_error *err);

/* drive.c */
void dt_gpu_forget(struct dt_request *request);
dt_result_t dt_gpu_wait(struct dt_request *request, struct dt_error *err);
dt_result_t dt_gpu_test(struct dt_request *request, struct dt_error *err);
dt_result_t dt_gpu_leave(struct dt_comm *comm, struct dt_error *err);
bool dt_gpu_busy(const struct dt_world *world);
bool dt_gpu_hidden(const struct dt_world *world);
void dt_gpu_idle(struct dt_backoff *backoff, struct dt_world *world,
                 bool others);
void dt_gpu_step(struct dt_world *world);

/* join.c */
void dt_gpu_close(struct dt_comm *comm);

/* direct.c */
bool dt_gpu_enter(struct dt_world *world, int *scope);
void dt_gpu_exit(struct dt_world *world, int scope);

#endif
