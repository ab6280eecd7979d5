/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* watchdog.h - does PMIx's thread still run? PMIx 4.2 can deadlock in several
 * ways; in one of them any client can cause it: one that is rejected and
 * connects once more. */
#ifndef DT_PMIX_WATCHDOG_H
#define DT_PMIX_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Begin with all zero and the time in checked_at. */
struct dt_pmix_watchdog {
    bool asked;         /* an answer is outstanding */
    int64_t checked_at; /* ms */
    int64_t silent;     /* ms without an answer, at the checks */
};

/* Check, and ask PMIx's thread for the next answer, when that is due. TIMED_OUT
 * if there was no answer for too long; time in which this process itself was
 * stopped, or the whole machine suspended, does not count. */
dt_result_t dt_pmix_watchdog_check(struct dt_pmix_watchdog *watchdog,
                                   struct dt_error *err);

/* When the next check is due, of the clock of dt_pmix_now. */
int64_t dt_pmix_watchdog_due(const struct dt_pmix_watchdog *watchdog);

#endif
