/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* watchdog.c - is PMIx's thread alive? */
#include "watchdog.h"

#include <stdlib.h>

#include "core.h"

#define LOOK_MS  1000
#define LIMIT_MS 30000

static void run_answer(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    pmix->watchdog.asked = false;
    pmix->watchdog.unheard = 0;
    free(call);
}

static void answer(pmix_status_t status, void *arg)
{
    (void)status;
    dt_pmix_post(arg);
}

static void ask(struct dt_pmix_watchdog *self)
{
    struct dt_pmix_call *call = malloc(sizeof(*call));
    if (!call)
        return;
    *call = (struct dt_pmix_call){NULL, run_answer};
    self->asked = true;
    self->unheard = 0;
    dt_pmix_in_library(answer, call);
}

dt_result_t dt_pmix_watch(struct dt_pmix *pmix, struct dt_error *err)
{
    struct dt_pmix_watchdog *self = &pmix->watchdog;
    int64_t now = dt_pmix_now(), since = now - self->seen_at;
    if (since < LOOK_MS)
        return DT_SUCCESS;
    self->seen_at = now;
    if (!self->asked) {
        ask(self);
        return DT_SUCCESS;
    }
    self->unheard += since < 2 * LOOK_MS ? since : LOOK_MS;
    if (self->unheard < LIMIT_MS)
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_TIMED_OUT,
                        "the PMIx library has not moved for %d s: it has "
                        "locked itself up, see BUGS in dt-run(1)",
                        LIMIT_MS / 1000);
}

int64_t dt_pmix_watch_due(const struct dt_pmix_watchdog *watchdog)
{
    return watchdog->seen_at + LOOK_MS;
}
