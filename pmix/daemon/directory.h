/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* directory.h - the private directory of a step's PMIx server. */
#ifndef DT_PMIX_DIRECTORY_H
#define DT_PMIX_DIRECTORY_H

#include "base/error.h"

/* Make path, whose parent exists. SYSTEM: with the reason, also where it is
 * too long for sockets; NO_SPACE: nothing can be written there. */
dt_result_t dt_directory_make(const char *path, struct dt_error *err);

/* Remove it and what is in it, but follow no link. Only a directory of this
 * user's with a name as the plugin gives it: INVALID_ARG. One that is not there
 * is removed already. */
dt_result_t dt_directory_remove(const char *path, struct dt_error *err);

#endif
