/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* bytes.h - writing numbers for other nodes: little-endian, as base/cursor.h
 * reads them. */
#ifndef DT_PMIX_BYTES_H
#define DT_PMIX_BYTES_H

#include <stddef.h>
#include <stdint.h>

static inline void dt_bytes_put(unsigned char *to, size_t width, uint64_t value)
{
    for (size_t i = 0; i < width; i++)
        to[i] = (unsigned char)(value >> 8 * i);
}

#endif
