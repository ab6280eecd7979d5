/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* watchdog.c - does PMIx's thread still run? */
#include "server/watchdog.h"

#include <stdlib.h>

#include "mesh/clock.h"
#include "server/library.h"

#define CHECK_MS 1000
#define LIMIT_MS 30000

struct answer_call {
    struct dt_pmix_call call;
    struct dt_pmix_watchdog *watchdog;
};

static void run_answer(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct answer_call *self = (struct answer_call *)call;
    (void)pmix;
    self->watchdog->asked = false;
    self->watchdog->silent = 0;
    free(self);
}

static void answer(pmix_status_t status, void *arg)
{
    (void)status;
    dt_pmix_post(arg);
}

static void ask(struct dt_pmix_watchdog *watchdog)
{
    struct answer_call *self = malloc(sizeof(*self));
    if (!self)
        return;
    *self = (struct answer_call){{NULL, run_answer}, watchdog};
    watchdog->asked = true;
    watchdog->silent = 0;
    dt_pmix_in_library(answer, self);
}

dt_result_t dt_pmix_watchdog_check(struct dt_pmix_watchdog *watchdog,
                                   struct dt_error *err)
{
    int64_t now = dt_pmix_now(), since = now - watchdog->checked_at;
    if (since < CHECK_MS)
        return DT_SUCCESS;
    watchdog->checked_at = now;
    if (!watchdog->asked) {
        ask(watchdog);
        return DT_SUCCESS;
    }
    watchdog->silent += since < 2 * CHECK_MS ? since : CHECK_MS;
    if (watchdog->silent < LIMIT_MS)
        return DT_SUCCESS;
    return dt_error_set(err, DT_ERR_TIMED_OUT,
                        "the PMIx library has not answered for %d s: it is in "
                        "a deadlock, see BUGS in dt-run(1)",
                        LIMIT_MS / 1000);
}

int64_t dt_pmix_watchdog_due(const struct dt_pmix_watchdog *watchdog)
{
    return watchdog->checked_at + CHECK_MS;
}
