/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* standin.h - a process that connects in the place of a rank that has ended,
 * and dies.
 *
 * What waits for a rank in PMIx goes on when PMIx sees the rank's connection
 * break, and by nothing else. It sees none of a rank that never came to
 * PMIx_Init, and none while a child of the rank keeps the connection open. */
#ifndef DT_PMIX_STANDIN_H
#define DT_PMIX_STANDIN_H

#include <stdbool.h>
#include <stddef.h>

struct dt_pmix;

/* Start one for a rank of this node that PMIx still expects. Sets stand_in of
 * its struct dt_pmix_client. False if there can be none. */
bool dt_pmix_standin_start(struct dt_pmix *pmix, size_t rank);

/* End it, if there is one. */
void dt_pmix_standin_end(struct dt_pmix *pmix, size_t rank);

/* What it does: see stand_in of struct dt_pmix_config. Does not return. */
_Noreturn void dt_pmix_stand_in(void);

#endif
