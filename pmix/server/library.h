/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* library.h - PMIx's own thread: functions run in it, and calls delayed until
 * it has reported the losses that it has seen. */
#ifndef DT_PMIX_LIBRARY_H
#define DT_PMIX_LIBRARY_H

#include <pmix_common.h>
#include <sys/types.h>

#include "server/queue.h"

/* The loss of a rank may have completed an operation, or changed a count,
 * before PMIx reports it: PMIx does so by a timer, when it is back in its event
 * loop. After so many calls by dt_pmix_in_library, one after the other, it was.
 */
#define DT_LIBRARY_ROUNDS 10

/* Have fn(PMIX_SUCCESS, arg) run in PMIx's thread. The replies to a lookup and
 * a query have to be made there: PMIx 4.2 does not lock what they touch. */
void dt_pmix_in_library(pmix_op_cbfunc_t fn, void *arg);

/* A call that dt_pmix_after_losses delays; the first member of its block. */
struct dt_pmix_delayed {
    struct dt_pmix_call call;
    void (*run)(struct dt_pmix *pmix, struct dt_pmix_call *call);
    pid_t thread; /* PMIx's */
    unsigned rounds;
};

/* In PMIx's thread: post delayed->call when all losses that PMIx has seen until
 * now have been reported, and the calls that they posted are before it. */
void dt_pmix_after_losses(struct dt_pmix_delayed *delayed);

#endif
