/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* peer_check.h - whose is a connection? */
#ifndef DT_PMIX_PEER_CHECK_H
#define DT_PMIX_PEER_CHECK_H

#include <stdbool.h>

/* Does the kernel tell which user owns a socket? Then accept() of this process
 * returns connections of its own user only. */
bool dt_peer_check_works(void);

#endif
