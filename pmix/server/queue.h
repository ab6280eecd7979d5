/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* queue.h - calls from PMIx's thread to the server's, and back. */
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
    /* In the server's thread. Frees call. */
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

/* Free the calls that have not run. Nothing can be posted any more. */
void dt_pmix_queue_close(struct dt_pmix_queue *queue);

#endif
