/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* watchdog.h - is PMIx's thread alive? PMIx 4.2 has ways to lock itself up,
 * one of them open to any client: to be rejected and come again. */
#ifndef DT_PMIX_WATCHDOG_H
#define DT_PMIX_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct dt_pmix;

struct dt_pmix_watchdog {
    bool asked;      /* an answer is outstanding */
    int64_t seen_at; /* when we last looked */
    int64_t unheard; /* ms without an answer while we looked */
};

/* Look, and ask again when it is time. TIMED_OUT if there was no answer for
 * too long; time during which this process itself stood still, or the whole
 * machine slept, does not count. */
dt_result_t dt_pmix_watch(struct dt_pmix *pmix, struct dt_error *err);

/* When to look again, of the clock of dt_pmix_now. */
int64_t dt_pmix_watch_due(const struct dt_pmix_watchdog *watchdog);

#endif
