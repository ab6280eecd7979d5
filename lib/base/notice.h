/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* notice.h - this process has been told to leave: by SIGTERM, by the file that
 * DT_NOTICE names, or by the clock. The file's first byte is the word: unless
 * it is 0, leave; what follows up to a 0 says why, for people. */
#ifndef DT_BASE_NOTICE_H
#define DT_BASE_NOTICE_H

#include <stdbool.h>

/* Listen from now on; for SIGTERM only if the program does not handle it
 * itself. Idempotent, any thread. */
void dt_notice_arm(void);

/* Listen no more: SIGTERM does again what it did. Idempotent. */
void dt_notice_disarm(void);

/* Has it come? Looks at the file and the clock ten times a second, however
 * often it is called; a file that is absent, empty or unreadable says nothing.
 * What has come once has come. Async-signal-safe, any thread. */
bool dt_notice_seen(void);

#endif
