/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* client_auth.h - how ranks authenticate to the PMIx server. Before that, the
 * kernel tells which user has connected (peer_check.h). */
#ifndef DT_PMIX_CLIENT_AUTH_H
#define DT_PMIX_CLIENT_AUTH_H

#include <stdbool.h>

#include "base/error.h"

/* Has this PMIx library a component for munge? */
bool dt_client_auth_has_munge(void);

/* *psec, a static string: the value of PMIX_MCA_psec. auth: as in
 * dt_pmix_config. With a library that has no component for munge it is native,
 * if the kernel tells the user of a connection. BOOTSTRAP: it does not, or
 * munge is wanted and does not answer. INVALID_ARG: auth is another word. */
dt_result_t dt_client_auth_choose(const char *auth, const char **psec,
                                  struct dt_error *err);

#endif
