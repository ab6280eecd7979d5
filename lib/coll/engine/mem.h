/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* mem.h - the memory that dt_mem_alloc gives and dt_mem_register pins. */
#ifndef DT_COLL_ENGINE_MEM_H
#define DT_COLL_ENGINE_MEM_H

#include "coll/engine/world.h"

/* dt_mem_alloc, dt_mem_free, dt_mem_register and dt_mem_deregister of dt.h.
 * They take the lock. */
dt_result_t dt_memory_alloc(struct dt_world *world, size_t size, void **ptr,
                            struct dt_error *err);
dt_result_t dt_memory_free(struct dt_world *world, void *ptr,
                           struct dt_error *err);
dt_result_t dt_memory_register(struct dt_world *world, void *ptr, size_t size,
                               struct dt_error *err);
dt_result_t dt_memory_deregister(struct dt_world *world, void *ptr,
                                 struct dt_error *err);

/* Give back all that is left over, before the world is closed. */
void dt_memory_fini(struct dt_world *world);

/* Instead of it, where another world follows: all stays where it is, with its
 * contents, but what was shared with the ranks of the node is this process's
 * own from now on. *kept is to be given to the next world, also after an error
 * (NO_MEMORY), which leaves the rest with this one. */
dt_result_t dt_memory_keep(struct dt_world *world, struct dt_memory **kept,
                           struct dt_error *err);

/* Take over what was kept, and pin again what the program has registered; what
 * cannot be pinned any more is not. */
void dt_memory_take(struct dt_world *world, struct dt_memory *kept);

#endif
