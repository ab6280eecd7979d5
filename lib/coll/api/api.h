/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* api.h - the header through which other rooms enter coll/api. */
#ifndef DT_COLL_API_API_H
#define DT_COLL_API_API_H

#include "coll/api/call.h"
#include "coll/api/check.h"
#include "coll/api/group.h"

#endif
