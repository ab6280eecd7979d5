/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* exchange.c - one collective operation of ranks. */
#include "exchange.h"

#include <ctype.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core.h"
#include "info.h"

/* What PMIx noticed while it collected the ranks of this node. */
static pmix_status_t local_status(const struct dt_pmix_exchange *exchange)
{
    const pmix_value_t *value = dt_pmix_info_find(
        exchange->info, exchange->ninfo, PMIX_LOCAL_COLLECTIVE_STATUS);
    return value && value->type == PMIX_STATUS ? value->data.status
                                               : PMIX_SUCCESS;
}

static void finish(struct dt_pmix *pmix, struct dt_pmix_exchange *exchange,
                   pmix_status_t status)
{
    if (status != PMIX_SUCCESS) {
        free(exchange->data);
        exchange->data = NULL;
        exchange->len = 0;
    }
    exchange->done(pmix, exchange, status);
}

/* --- the ranks that take part -------------------------------------------- */

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static size_t sort_unique(uint32_t *ranks, size_t count)
{
    size_t kept = 0;
    qsort(ranks, count, sizeof(*ranks), compare);
    for (size_t i = 0; i < count; i++)
        if (!kept || ranks[kept - 1] != ranks[i])
            ranks[kept++] = ranks[i];
    return kept;
}

static bool names_all(const struct dt_pmix_exchange *self)
{
    for (size_t i = 0; i < self->nprocs; i++)
        if (self->procs[i].rank == PMIX_RANK_WILDCARD)
            return true;
    return false;
}

/* All ranks that procs name, rising, in *ranks, from malloc. */
static pmix_status_t expand(const struct dt_pmix_job *job,
                            const struct dt_pmix_exchange *self,
                            uint32_t **ranks, size_t *count)
{
    bool all = names_all(self);
    size_t room = all ? job->size : self->nprocs;
    for (size_t i = 0; i < self->nprocs; i++) {
        size_t rank;
        if (strncmp(self->procs[i].nspace, job->nspace, PMIX_MAX_NSLEN) != 0 ||
            (self->procs[i].rank != PMIX_RANK_WILDCARD &&
             !dt_pmix_job_rank(job, &self->procs[i], &rank)))
            return PMIX_ERR_BAD_PARAM;
    }
    uint32_t *list = malloc((room ? room : 1) * sizeof(*list));
    if (!list)
        return PMIX_ERR_NOMEM;
    for (size_t i = 0; i < room; i++)
        list[i] = all ? (uint32_t)i : self->procs[i].rank;
    *count = sort_unique(list, room);
    *ranks = list;
    return PMIX_SUCCESS;
}

/* --- with other nodes ---------------------------------------------------- */

static pmix_status_t status_of(dt_result_t rc)
{
    switch (rc) {
    case DT_SUCCESS:
        return PMIX_SUCCESS;
    case DT_ERR_PROC_FAILED:
        return PMIX_ERR_PROC_ABORTED;
    case DT_ERR_TIMED_OUT:
        return PMIX_ERR_TIMEOUT;
    case DT_ERR_NO_MEMORY:
        return PMIX_ERR_NOMEM;
    default:
        return PMIX_ERROR;
    }
}

static void collected(void *arg, dt_result_t rc, const void *data, size_t len)
{
    struct dt_pmix_exchange *self = arg;
    *self->link = self->next;
    if (self->next)
        self->next->link = self->link;
    pmix_status_t status = status_of(rc);
    if (status == PMIX_SUCCESS && len) {
        self->data = malloc(len);
        if (self->data)
            memcpy(self->data, data, len);
        else
            status = PMIX_ERR_NOMEM;
        self->len = len;
    }
    finish(self->pmix, self, status);
}

/* Bring the nodes' parts together. */
static void combine(struct dt_pmix *pmix, struct dt_pmix_exchange *self,
                    const uint32_t *ranks, size_t nranks)
{
    const struct dt_collective what = {self->what, self->name ? self->name : "",
                                       ranks, nranks};
    long seconds =
        dt_pmix_info_number(self->info, self->ninfo, PMIX_TIMEOUT, 0);
    char *part = self->data;
    size_t len = self->len;
    self->data = NULL;
    self->len = 0;
    self->pmix = pmix;
    self->next = pmix->exchanges;
    self->link = &pmix->exchanges;
    if (self->next)
        self->next->link = &self->next;
    pmix->exchanges = self;
    dt_mesh_collect(pmix->mesh, &what, part, len,
                    seconds > 0 ? (int64_t)seconds * 1000 : 0, collected, self);
    free(part);
}

/* --- who is gone --------------------------------------------------------- */

/* So often it is gone through a library that never sleeps: other events keep it
 * awake, and its timers have their turns among them. */
#define AWAKE_ROUNDS 10000

/* What PMIx's thread does. When it sleeps in its event loop it has told us of
 * all the losses that it has seen: it does so by a timer, that is, after it may
 * have completed a fence without the rank that it lost. */
enum doing { ASLEEP, AWAKE, UNTOLD };

static enum doing look_at(pid_t thread)
{
    char path[64], text[16] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)thread);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return UNTOLD;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0)
        return UNTOLD;
    if (!isdigit((unsigned char)*text)) /* "running" */
        return AWAKE;
    long number = strtol(text, NULL, 10);
#ifdef SYS_epoll_wait
    if (number == SYS_epoll_wait)
        return ASLEEP;
#endif
    return number == SYS_epoll_pwait ? ASLEEP : AWAKE;
}

static void post_exchange(struct dt_pmix_exchange *self)
{
    char *data = self->data;
    if (dt_pmix_post(&self->call) != PMIX_SUCCESS)
        free(data);
}

/* In PMIx's thread. */
static void passed(pmix_status_t status, void *arg)
{
    struct dt_pmix_exchange *self = arg;
    (void)status;
    self->thread = gettid();
    post_exchange(self);
}

/* Hear of all losses before this operation is judged. False: not yet, it comes
 * again. Where the kernel does not tell what the thread does, going through it
 * that often must do. */
static bool has_heard(struct dt_pmix_exchange *self)
{
    if (self->heard)
        return true;
    sched_yield(); /* on a busy machine it may wait for our core */
    enum doing doing = look_at(self->thread);
    self->heard = doing == ASLEEP ||
                  ++self->rounds >= (doing == AWAKE ? AWAKE_ROUNDS : DT_ROUNDS);
    if (self->heard)
        post_exchange(self); /* behind what it has told us by then */
    else
        dt_pmix_in_library(passed, self);
    return false;
}

static void run_exchange(struct dt_pmix *pmix, struct dt_pmix_call *call)
{
    struct dt_pmix_exchange *self = (struct dt_pmix_exchange *)call;
    if (!has_heard(self))
        return;
    uint32_t *ranks = NULL;
    size_t nranks = 0;
    pmix_status_t status = expand(&pmix->job, self, &ranks, &nranks);
    if (status == PMIX_SUCCESS && (local_status(self) != PMIX_SUCCESS ||
                                   dt_pmix_any_dead(pmix, ranks, nranks)))
        status = PMIX_ERR_PROC_ABORTED;
    if (status == PMIX_SUCCESS && self->prepare)
        status = self->prepare(pmix, self);
    if (status == PMIX_SUCCESS)
        combine(pmix, self, ranks, nranks);
    else
        finish(pmix, self, status);
    free(ranks);
}

pmix_status_t dt_pmix_exchange_start(struct dt_pmix_exchange *exchange)
{
    if (!exchange)
        return PMIX_ERR_NOMEM;
    exchange->call.run = run_exchange;
    dt_pmix_in_library(passed, exchange);
    return PMIX_SUCCESS;
}

void dt_pmix_exchanges_free(struct dt_pmix_exchange *all)
{
    for (struct dt_pmix_exchange *next; all; all = next) {
        next = all->next;
        free(all->data);
        free(all);
    }
}
