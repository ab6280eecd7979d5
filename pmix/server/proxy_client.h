/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* proxy_client.h - a process that connects to PMIx as a rank that has ended,
 * and ends.
 *
 * An operation that waits for a rank in PMIx fails when PMIx sees the rank's
 * connection break, and by nothing else. A rank that ended before PMIx_Init had
 * no connection, and a child of a rank may keep the rank's connection open. */
#ifndef DT_PMIX_PROXY_CLIENT_H
#define DT_PMIX_PROXY_CLIENT_H

#include <sys/types.h>

#include "server/job.h"

/* Start one, argv as in dt_pmix_config, for a rank of this node that PMIx still
 * expects. Returns its process, a child; 0: there can be none. */
pid_t dt_pmix_proxy_client_start(const struct dt_pmix_job *job,
                                 char *const *argv, size_t rank);

/* Kill it and wait for its end. pid may be 0. */
void dt_pmix_proxy_client_end(pid_t pid);

/* What the process does. */
_Noreturn void dt_pmix_proxy_client_run(void);

#endif
