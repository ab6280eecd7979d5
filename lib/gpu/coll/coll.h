/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* coll.h - collectives on GPU memory: the functions of struct dt_device_ops by
 * file. Their contracts are in coll/engine/device.h.
 *
 * This code has run on one NVIDIA H200, which several ranks shared, and under
 * the test driver (tests/mock); never between GPUs, and direct.c never on
 * hardware. */
#ifndef DT_GPU_COLL_COLL_H
#define DT_GPU_COLL_COLL_H

#include "coll/engine/engine.h"
#include "coll/api/api.h"

/* Each X(name): dt_gpu_<name> is the function of that name there. */
#define DT_GPU_CALL(X)  X(place) X(begin) X(follow) X(end)
#define DT_GPU_WAIT(X)  X(forget) X(wait) X(test) X(leave)
#define DT_GPU_DRIVE(X) X(busy) X(hidden) X(idle) X(step)
#define DT_GPU_OTHER(X) X(close_comm) X(enter) X(exit_context)
#define DT_GPU_DEVICE_OPS(X)                                                   \
    DT_GPU_CALL(X) DT_GPU_WAIT(X) DT_GPU_DRIVE(X) DT_GPU_OTHER(X)
#define DT_GPU_DECLARE(name)                                                   \
    __typeof__(*((struct dt_device_ops *)NULL)->name) dt_gpu_##name;
DT_GPU_DEVICE_OPS(DT_GPU_DECLARE)
#undef DT_GPU_DECLARE

#endif
