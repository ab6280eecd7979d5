/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* kernels.h - the device's kernels as functions of the host. */
#ifndef MOCK_KERNELS_H
#define MOCK_KERNELS_H

#include <stddef.h>

struct dt_mock_kernel {
    const char *name;
    size_t size; /* of its arguments, bytes */
    /* Run one block of the grid, all threads of it. */
    void (*run)(const void *args, unsigned block, unsigned grid,
                unsigned threads);
};

/* NULL: none of this name. */
const struct dt_mock_kernel *dt_mock_kernel(const char *name);

#endif
