/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* queue.c - calls from PMIx's thread to the server's, and back. */
#include "server/queue.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* PMIx passes no pointer of ours to its callbacks, and can be one server per
 * process only: so this has to be global. */
static _Atomic(struct dt_pmix_queue *) the_queue;

dt_result_t dt_pmix_queue_open(struct dt_pmix_queue *queue,
                               struct dt_error *err)
{
    queue->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (queue->fd < 0)
        return dt_error_set(err, DT_ERR_IO, "eventfd: %s", strerror(errno));
    queue->first = NULL;
    queue->last = &queue->first;
    pthread_mutex_init(&queue->lock, NULL);
    struct dt_pmix_queue *none = NULL;
    if (atomic_compare_exchange_strong(&the_queue, &none, queue))
        return DT_SUCCESS;
    close(queue->fd);
    pthread_mutex_destroy(&queue->lock);
    return dt_error_set(err, DT_ERR_SYSTEM,
                        "this process is a PMIx server already; it can be "
                        "one only");
}

pmix_status_t dt_pmix_post(struct dt_pmix_call *call)
{
    struct dt_pmix_queue *queue = atomic_load(&the_queue);
    if (!call)
        return PMIX_ERR_NOMEM;
    if (!queue) {
        free(call);
        return PMIX_ERR_UNREACH;
    }
    call->next = NULL;
    pthread_mutex_lock(&queue->lock);
    *queue->last = call;
    queue->last = &call->next;
    pthread_mutex_unlock(&queue->lock);
    const uint64_t one = 1;
    /* it fails only at the largest count, when it is readable anyhow */
    ssize_t ignored = write(queue->fd, &one, sizeof(one));
    (void)ignored;
    return PMIX_SUCCESS;
}

static struct dt_pmix_call *take_all(struct dt_pmix_queue *queue)
{
    uint64_t count;
    ssize_t ignored = read(queue->fd, &count, sizeof(count));
    (void)ignored;
    pthread_mutex_lock(&queue->lock);
    struct dt_pmix_call *first = queue->first;
    queue->first = NULL;
    queue->last = &queue->first;
    pthread_mutex_unlock(&queue->lock);
    return first;
}

void dt_pmix_queue_run(struct dt_pmix_queue *queue, struct dt_pmix *pmix)
{
    struct dt_pmix_call *call = take_all(queue), *next;
    for (; call; call = next) {
        next = call->next;
        call->run(pmix, call);
    }
}

void dt_pmix_queue_close(struct dt_pmix_queue *queue)
{
    atomic_store(&the_queue, NULL);
    struct dt_pmix_call *call = take_all(queue), *next;
    for (; call; call = next) {
        next = call->next;
        free(call);
    }
    close(queue->fd);
    pthread_mutex_destroy(&queue->lock);
}
