/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* attach.h - attaches the GPUs of this process to a world. */
#ifndef DT_GPU_ATTACH_H
#define DT_GPU_ATTACH_H

#include "coll/engine/engine.h"

/* Set world->device where this process has GPUs, else world->no_device with the
 * reason. A GPU that cannot be used is not an error until a call needs it.
 * Loads the module libdt_cuda.so only where there is a sign of a GPU. Local. */
void dt_gpu_attach(struct dt_world *world);

#endif
