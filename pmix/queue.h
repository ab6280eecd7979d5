/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* queue.h - the one way from PMIx's thread to ours, and the one way back. */
#ifndef DT_PMIX_QUEUE_H
#define DT_PMIX_QUEUE_H

#include <pmix_common.h>
#include <pthread.h>

#include "base/error.h"

struct dt_pmix;

/* Embed it as the first member of one malloc'd block that holds the arguments
 * of a callback. */
struct dt_pmix_call {
    struct dt_pmix_call *next;
    /* In our thread. Frees call. */
    void (*run)(struct dt_pmix *pmix, struct dt_pmix_call *call);
};

struct dt_pmix_queue {
    pthread_mutex_t lock;
    struct dt_pmix_call *first, **last;
    int fd; /* an eventfd, readable while there are calls */
};

/* Only one can be open in a process. */
dt_result_t dt_pmix_queue_open(struct dt_pmix_queue *queue,
                               struct dt_error *err);

/* Any thread: have call run by dt_pmix_queue_run. When call is NULL (malloc
 * failed) or no queue is open, frees it and returns an error that PMIx can be
 * given, else PMIX_SUCCESS. */
pmix_status_t dt_pmix_post(struct dt_pmix_call *call);

/* Run what has been posted so far. */
void dt_pmix_queue_run(struct dt_pmix_queue *queue, struct dt_pmix *pmix);

/* Forget what has not run. After it nothing can be posted. */
void dt_pmix_queue_close(struct dt_pmix_queue *queue);

/* The loss of a rank may have completed an operation, or changed a count, and
 * PMIx tells of the loss only when it comes back to its event loop, by a timer:
 * later than what it is asked meanwhile. Asked so often, by
 * dt_pmix_in_library, it has come back. */
#define DT_ROUNDS 10

/* Have fn(PMIX_SUCCESS, arg) run in PMIx's thread. The replies to a lookup and
 * a query have to be made there: PMIx 4.2 does not lock what they touch. */
void dt_pmix_in_library(pmix_op_cbfunc_t fn, void *arg);

#endif
