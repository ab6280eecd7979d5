/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* environ.h - the environment of the ranks. */
#ifndef DT_PMIX_ENVIRON_H
#define DT_PMIX_ENVIRON_H

#include "base/error.h"

/* A copy of this process's environment for a rank: without the variables of a
 * launcher around this one, and with what MPI libraries need to look for a PMIx
 * server. A NULL-terminated array and strings from malloc. */
dt_result_t dt_environ_copy(char ***env, struct dt_error *err);

/* env may be NULL. */
void dt_environ_free(char **env);

#endif
