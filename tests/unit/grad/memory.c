/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* memory.c - tensors in the memory of the host. */
#include "memory.h"

#include <stdlib.h>

void *memory_get(size_t len)
{
    void *memory = calloc(1, len ? len : 1);
    if (!memory)
        abort();
    return memory;
}

void memory_put(void *memory)
{
    free(memory);
}

dt_stream_t memory_stream(void)
{
    return DT_STREAM_NONE;
}
