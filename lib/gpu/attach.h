/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* attach.h - a world gets its device: the GPUs of this process. */
#ifndef DT_GPU_ATTACH_H
#define DT_GPU_ATTACH_H

#include "coll/engine/engine.h"

/* Sets world->device where this process has GPUs, else world->no_device. A GPU
 * that cannot be used is no error before a call wants it. Loads the module
 * libdt_cuda.so only where there is a sign of a GPU; local. */
void dt_gpu_attach(struct dt_world *world);

#endif
