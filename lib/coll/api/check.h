/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* check.h - DT_CHECK=1: before a collective begins, its ranks compare what
 * they call, so that the error names the rank that differs. */
#ifndef DT_COLL_API_CHECK_H
#define DT_COLL_API_CHECK_H

#include "coll/api/call.h"

/* Blocks until all ranks of call->comm have come to a collective on it; a send
 * or receive is not compared. The call has been checked. Errors: MISMATCH, on
 * all ranks, which names the first rank that differs, after which the
 * communicator works on; NO_MEMORY; those of dt_comm_run. */
dt_result_t dt_check(const struct dt_call *call, struct dt_error *err);

#endif
