/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* group.h - the group of the calling thread, between dt_group_start and
 * dt_group_end. */
#ifndef DT_COLL_API_GROUP_H
#define DT_COLL_API_GROUP_H

#include "base/error.h"

struct dt_request;

/* Is this thread in a group? */
bool dt_group_is_open(void);

/* Add a request, which the end of the group completes. */
void dt_group_add(struct dt_request *request);

/* INVALID_ARG in a group, for a call that cannot be in one. */
dt_result_t dt_group_refuse(const char *call, struct dt_error *err);

#endif
