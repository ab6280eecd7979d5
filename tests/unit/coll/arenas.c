/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* arenas.c - the buffers of coll-ranks: in all kinds of host memory. */
#include <stdlib.h>

#include "each.h"

size_t each_shift = 1;
dt_stream_t each_stream;

dt_result_t each_done(dt_result_t rc)
{
    return rc;
}

void open_arenas(void)
{
    want_buf = malloc(ROOM);
    copy_buf = malloc(ROOM);
    for (int i = 0; i < 2; i++) {
        void *shared = NULL;
        arena[PRIVATE][i] = malloc(ROOM);
        arena[REGISTERED][i] = malloc(ROOM);
        expect(dt_mem_register(arena[REGISTERED][i], ROOM) == DT_SUCCESS,
               "register");
        expect(dt_mem_alloc(ROOM, &shared) == DT_SUCCESS, "alloc");
        arena[SHARED][i] = shared;
    }
}

void close_arenas(void)
{
    for (int i = 0; i < 2; i++) {
        free(arena[PRIVATE][i]);
        expect(dt_mem_deregister(arena[REGISTERED][i]) == DT_SUCCESS,
               "deregister");
        free(arena[REGISTERED][i]);
        expect(dt_mem_free(arena[SHARED][i]) == DT_SUCCESS, "free");
    }
    free(want_buf);
    free(copy_buf);
}
