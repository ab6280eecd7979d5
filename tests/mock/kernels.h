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

/* Who plays the switch between devices for them: where the memories are that
 * are bound at this address, and how many. */
void dt_mock_switch(size_t (*copies)(const char *at, char **to));

/* NULL: none of this name. */
const struct dt_mock_kernel *dt_mock_kernel(const char *name);

#endif
