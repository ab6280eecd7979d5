/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* portable.c - kernels for any processor. */
#define WIDTH   16
#define BLOCK   4
#define TARGET  /* what the compiler targets anyway */
#define KERNELS dt_exec_portable
#define NAME    "portable"

#include "exec/vector.h"
#include "exec/floats.h"
#include "exec/f8.h"
#include "exec/loops.h"
