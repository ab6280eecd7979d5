/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* notice.h - this process has been told to leave. */
#ifndef DT_BASE_NOTICE_H
#define DT_BASE_NOTICE_H

#include <stdbool.h>

/* Listen for SIGTERM from now on, unless the program handles it itself.
 * Idempotent. */
void dt_notice_arm(void);

/* Listen no more: SIGTERM does again what it did. Idempotent. */
void dt_notice_disarm(void);

/* Has it come? Async-signal-safe, any thread. */
bool dt_notice_seen(void);

#endif
