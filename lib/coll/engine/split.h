/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* split.h - new communicators of the ranks of another one. All functions
 * are collective over comm and block. */
#ifndef DT_COLL_ENGINE_SPLIT_H
#define DT_COLL_ENGINE_SPLIT_H

#include "base/error.h"

struct dt_comm;

/* As dt_comm_split, with valid arguments; *newcomm is NULL for DT_COLOR_NONE.
 * Errors: NO_MEMORY, SYSTEM, those of dt_comm_run. */
dt_result_t dt_split(struct dt_comm *comm, int color, int key,
                     struct dt_comm **newcomm, struct dt_error *err);

/* A communicator of all ranks of plain (dt_comm_open_plain), ordered by key.
 * Errors as above. */
dt_result_t dt_create(struct dt_comm *plain, int key, struct dt_comm **newcomm,
                      struct dt_error *err);

/* A communicator of libdt's own, of the same ranks in the same order. */
dt_result_t dt_comm_twin(struct dt_comm *comm, struct dt_comm **twin,
                         struct dt_error *err);

#endif
