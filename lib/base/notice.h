/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* notice.h - the notice, the request to leave: SIGTERM, the file that DT_NOTICE
 * names (its first byte is not 0), or the end of the job's time. */
#ifndef DT_BASE_NOTICE_H
#define DT_BASE_NOTICE_H

#include <stdbool.h>

/* Watch for the notice from now on; for SIGTERM only if the program has no
 * handler of its own. Idempotent, any thread. */
void dt_notice_arm(void);

/* Stop watching: SIGTERM has its default effect. Idempotent. */
void dt_notice_disarm(void);

/* Has the notice arrived? Once true, always true. The file and the clock are
 * read ten times a second at most, however often it is called; a file that is
 * absent, empty or unreadable is no notice. Async-signal-safe, any thread. */
bool dt_notice_seen(void);

#endif
