/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* names.h - collectives, element types and reductions in words. */
#ifndef DT_COLL_ENGINE_NAMES_H
#define DT_COLL_ENGINE_NAMES_H

#include "coll/engine/shape.h"

/* "allgather", "f32", "sum" and so on; NULL if there is none of that value. */
const char *dt_name_coll(enum dt_coll coll);
const char *dt_name_dtype(dt_dtype_t dtype);
const char *dt_name_op(dt_op_t op);

#endif
