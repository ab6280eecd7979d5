/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* run.c - a training that goes on after losses. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/api.h"
#include "base/error.h"
#include "elastic/state.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A loss, from when this rank learned of it. */
struct loss {
    struct dt_error why;
    double begun;
    int before; /* ranks */
};

/* One line, of a rank whose state the others took. */
static void report(const struct loss *loss, dt_state_t state)
{
    if (dt_rank() == state->source)
        fprintf(stderr,
                "dt: %.300s: going on with %d ranks of %d after %.3f s\n",
                loss->why.text, dt_size(), loss->before, now() - loss->begun);
}

/* Make a world of those that live. */
static dt_result_t recover(struct loss *loss)
{
    *loss = (struct loss){.begun = now(), .before = dt_size()};
    snprintf(loss->why.text, sizeof(loss->why.text), "%s", dt_last_error());
    dt_result_t rc = dt_reinit();
    if (rc == DT_ERR_UNSUPPORTED) /* the job is not elastic */
        return dt_api_return(DT_ERR_PROC_FAILED, &loss->why);
    return rc;
}

dt_result_t dt_elastic_run(dt_result_t (*fn)(dt_state_t state, void *arg),
                           dt_state_t state, void *arg)
{
    struct dt_error err;
    if (!fn || !state)
        return dt_api_return(dt_error_set(&err, DT_ERR_INVALID_ARG,
                                          "dt_elastic_run: %s is NULL",
                                          fn ? "state" : "fn"),
                             &err);
    struct loss loss = {.before = 0};
    for (;;) {
        dt_result_t rc = dt_state_sync(state);
        if (rc == DT_SUCCESS && loss.before)
            report(&loss, state);
        if (rc == DT_SUCCESS)
            rc = fn(state, arg);
        if (rc != DT_ERR_PROC_FAILED)
            return rc;
        rc = recover(&loss);
        if (rc != DT_SUCCESS)
            return rc;
    }
}
