/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pmix.c - the bootstrap of a rank that has a PMIx server: dt-pmixd, dt-run,
 * Slurm's mpi/pmix, or PRRTE. */
#include <pmix.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/env.h"
#include "boot/meet.h"

#define CARD_KEY "dt.card." /* and the number of the exchange */

/* PMIx 3.2 has no names for these, but delivers them. */
#ifndef PMIX_ERR_LOST_CONNECTION
#define PMIX_ERR_LOST_CONNECTION PMIX_ERR_LOST_CONNECTION_TO_SERVER
#endif
#ifndef PMIX_ERR_PROC_TERM_WO_SYNC
#define PMIX_ERR_PROC_TERM_WO_SYNC -200
#endif
#ifndef PMIX_ERR_PROC_ABORTED_BY_SIG
#define PMIX_ERR_PROC_ABORTED_BY_SIG -402
#endif

/* What is known of a number of the launcher's. */
struct number {
    uint32_t ended;       /* the processes with it that have ended */
    uint32_t incarnation; /* of the member with it */
    int32_t rank;         /* its rank; -1: it is not a member */
};

struct pmix_boot {
    struct dt_boot base;
    pmix_proc_t self;
    pmix_value_t **cards;      /* base.size of them, or NULL */
    unsigned exchanges;        /* of them, so far */
    struct dt_meeting meeting; /* the last one of an elastic job */
    /* shared with PMIx's progress thread, which calls the event handler */
    pmix_info_t me;
    size_t handler;
    atomic_bool registered; /* the event handler is registered */
    pthread_mutex_t lock;   /* of what follows */
    struct number *numbers; /* base.most of them */
    atomic_bool lost;       /* set after loss; read without the lock */
    atomic_bool no_server;  /* that of this node is gone; the same */
    struct dt_error loss;
};

/* An attribute of the whole job that is a number. */
static pmix_status_t job_number(const struct pmix_boot *self, const char *key,
                                size_t *number)
{
    pmix_proc_t job;
    pmix_value_t *value;
    PMIX_LOAD_PROCID(&job, self->self.nspace, PMIX_RANK_WILDCARD);
    pmix_status_t rc = PMIx_Get(&job, key, NULL, 0, &value);
    if (rc != PMIX_SUCCESS)
        return rc;
    if (value->type == PMIX_UINT32)
        *number = value->data.uint32;
    else
        rc = PMIX_ERR_TYPE_MISMATCH;
    PMIX_VALUE_RELEASE(value);
    return rc;
}

/* ---- events ---- */

/* What an event says. */
struct end {
    pmix_status_t event;
    pmix_rank_t number;
    uint32_t incarnation;
    const int *code; /* NULL: none */
};

/* A member has ended. After a loss ranks have other numbers than those that the
 * launcher labels their output with. The lock is held. */
static void set_lost(struct pmix_boot *self, const struct end *end)
{
    const struct number *number = &self->numbers[end->number];
    char label[64] = "", code[32] = "";
    if (atomic_load(&self->lost))
        return;
    if ((pmix_rank_t)number->rank != end->number)
        snprintf(label, sizeof(label), " (number %u of the launcher)",
                 end->number);
    if (end->code && *end->code) /* 0: not by its exit */
        snprintf(code, sizeof(code), " (exit code %d)", *end->code);
    if (end->event == PMIX_ERR_PROC_TERM_WO_SYNC)
        dt_error_set(&self->loss, DT_ERR_PROC_FAILED,
                     "rank %d%s has ended without dt_finalize", number->rank,
                     label);
    else
        dt_error_set(&self->loss, DT_ERR_PROC_FAILED, "rank %d%s has died%s",
                     number->rank, label, code);
    atomic_store(&self->lost, true);
}

static void note_server(struct pmix_boot *self)
{
    pthread_mutex_lock(&self->lock);
    if (!atomic_load(&self->lost))
        dt_error_set(&self->loss, DT_ERR_PROC_FAILED,
                     "the PMIx server of this node is gone");
    atomic_store(&self->no_server, true);
    atomic_store(&self->lost, true);
    pthread_mutex_unlock(&self->lock);
}

static void note_end(struct pmix_boot *self, const struct end *end)
{
    pthread_mutex_lock(&self->lock);
    struct number *number = &self->numbers[end->number];
    if (end->incarnation + 1 > number->ended)
        number->ended = end->incarnation + 1;
    if (number->rank >= 0 && number->ended > number->incarnation)
        set_lost(self, end);
    pthread_mutex_unlock(&self->lock);
}

static void on_event(size_t handler, pmix_status_t event,
                     const pmix_proc_t *source, pmix_info_t info[],
                     size_t ninfo, pmix_info_t results[], size_t nresults,
                     pmix_event_notification_cbfunc_fn_t cbfunc, void *cbdata)
{
    struct pmix_boot *self = NULL;
    const pmix_proc_t *who = source;
    struct end end = {.event = event};
    (void)handler, (void)results, (void)nresults;
    for (size_t i = 0; i < ninfo; i++) {
        const pmix_value_t *value = &info[i].value;
        if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_RETURN_OBJECT))
            self = value->data.ptr;
        else if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_AFFECTED_PROC) &&
                 value->type == PMIX_PROC)
            who = value->data.proc;
        else if (PMIX_CHECK_KEY(&info[i], PMIX_EXIT_CODE) &&
                 value->type == PMIX_INT)
            end.code = &value->data.integer;
        else if (PMIX_CHECK_KEY(&info[i], PMIX_REINCARNATION) &&
                 value->type == PMIX_UINT32)
            end.incarnation = value->data.uint32;
    }
    /* servers repeat old events: those about a rank that this one replaces are
     * ignored, as is that a rank lost its connection, of whose end there is
     * another event */
    end.number = who->rank;
    const bool peer = self &&
                      PMIX_CHECK_NSPACE(who->nspace, self->self.nspace) &&
                      who->rank < self->base.most;
    if (self && event == PMIX_ERR_LOST_CONNECTION && !peer)
        note_server(self);
    else if (peer && event != PMIX_ERR_LOST_CONNECTION &&
             who->rank != self->self.rank)
        note_end(self, &end);
    if (cbfunc)
        cbfunc(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

/* Not all servers send events; the transports notice lost ranks then. */
static void on_registered(pmix_status_t status, size_t handler, void *arg)
{
    struct pmix_boot *self = arg;
    self->handler = handler;
    atomic_store(&self->registered, status == PMIX_SUCCESS);
}

/* There is no need to wait for the registration: servers repeat earlier events.
 */
static void register_handler(struct pmix_boot *self)
{
    pmix_status_t codes[] = {
        PMIX_ERR_PROC_ABORTED, PMIX_ERR_PROC_ABORTED_BY_SIG,
        PMIX_ERR_PROC_TERM_WO_SYNC, PMIX_ERR_LOST_CONNECTION};
    PMIX_INFO_LOAD(&self->me, PMIX_EVENT_RETURN_OBJECT, self, PMIX_POINTER);
    PMIx_Register_event_handler(codes, sizeof(codes) / sizeof(*codes),
                                &self->me, 1, on_event, on_registered, self);
}

static dt_result_t pmix_check(struct dt_boot *boot, int wait_ms,
                              struct dt_error *err)
{
    struct pmix_boot *self = (struct pmix_boot *)boot;
    const struct timespec pause = {.tv_nsec = 1000000};
    while (!atomic_load(&self->lost)) {
        if (wait_ms-- <= 0 || !atomic_load(&self->registered))
            return DT_SUCCESS;
        nanosleep(&pause, NULL);
    }
    pthread_mutex_lock(&self->lock);
    if (err)
        *err = self->loss;
    pthread_mutex_unlock(&self->lock);
    return DT_ERR_PROC_FAILED;
}

static bool pmix_ended(struct dt_boot *boot, size_t rank)
{
    struct pmix_boot *self = (struct pmix_boot *)boot;
    bool ended = false;
    pthread_mutex_lock(&self->lock);
    for (size_t i = 0; i < boot->most; i++)
        if (self->numbers[i].rank == (int32_t)rank)
            ended = self->numbers[i].ended > self->numbers[i].incarnation;
    pthread_mutex_unlock(&self->lock);
    return ended;
}

/* ---- fence ---- */

/* A fence under way. When a rank dies, some servers never complete the fence of
 * the others. These return as soon as an event reports the death, and the fence
 * is freed by whoever uses it last, the caller or PMIx. */
struct fence {
    _Atomic enum { RUNNING, COMPLETE, ABANDONED } state;
    pmix_status_t status;
    pmix_info_t info[2];
};

static struct fence *fence_create(bool collect, long timeout)
{
    struct fence *fence = calloc(1, sizeof(*fence));
    int seconds = (int)timeout;
    if (!fence)
        return NULL;
    PMIX_INFO_LOAD(&fence->info[0], PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    PMIX_INFO_LOAD(&fence->info[1], PMIX_TIMEOUT, &seconds, PMIX_INT);
    return fence;
}

static void fence_destroy(struct fence *fence)
{
    PMIX_INFO_DESTRUCT(&fence->info[0]);
    PMIX_INFO_DESTRUCT(&fence->info[1]);
    free(fence);
}

static void fenced(pmix_status_t status, void *arg)
{
    struct fence *fence = arg;
    fence->status = status;
    if (atomic_exchange(&fence->state, COMPLETE) == ABANDONED)
        fence_destroy(fence);
}

/* Wait until it is complete, a rank is lost, or the time is over. */
static pmix_status_t await(struct pmix_boot *self, struct fence *fence,
                           long timeout)
{
    const struct timespec pause = {.tv_nsec = 200000};
    long pauses = timeout * 5000;
    while (atomic_load(&fence->state) == RUNNING && !atomic_load(&self->lost) &&
           pauses-- > 0)
        nanosleep(&pause, NULL);
    pmix_status_t rc = pauses < 0 ? PMIX_ERR_TIMEOUT : PMIX_ERR_PROC_ABORTED;
    if (atomic_exchange(&fence->state, ABANDONED) == COMPLETE) {
        rc = fence->status;
        fence_destroy(fence);
    }
    return rc;
}

/* A fence of these processes (NULL: of all); collect: with the data that they
 * have put. */
static pmix_status_t fence_procs(struct pmix_boot *self,
                                 const pmix_proc_t *procs, size_t nprocs,
                                 bool collect, long timeout)
{
    struct fence *fence = fence_create(collect, timeout);
    if (!fence)
        return PMIX_ERR_NOMEM;
    pmix_status_t rc =
        PMIx_Fence_nb(procs, nprocs, fence->info, 2, fenced, fence);
    if (rc == PMIX_SUCCESS)
        return await(self, fence, timeout);
    fence_destroy(fence);
    return rc;
}

/* ---- life ---- */

static dt_result_t join_failed(pmix_status_t rc, struct dt_error *err)
{
    const char *server = getenv("PMIX_VERSION");
    return dt_error_set(err, DT_ERR_BOOTSTRAP,
                        "the PMIx server of this step does not answer (%s): "
                        "it uses PMIx %s, this program was linked with %s; if "
                        "these are compatible, check that munged runs on this "
                        "node, and that that PMIx was built with munge",
                        PMIx_Error_string(rc), server ? server : "unknown",
                        PMIx_Get_version());
}

/* Until the first allgather all numbers are those of ranks. */
static bool number_ranks(struct pmix_boot *self, size_t size)
{
    self->numbers = calloc(size, sizeof(*self->numbers));
    for (size_t i = 0; self->numbers && i < size; i++)
        self->numbers[i].rank = (int32_t)i;
    return self->numbers;
}

static dt_result_t pmix_open(struct dt_boot **boot, struct dt_error *err)
{
    long elastic;
    dt_result_t result =
        dt_env_long(DT_ENV_ELASTIC, 0, 1, INT32_MAX, &elastic, err);
    if (result != DT_SUCCESS)
        return result;
    struct pmix_boot *self = calloc(1, sizeof(*self));
    if (!self)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory to start");
    pmix_status_t rc = PMIx_Init(&self->self, NULL, 0);
    if (rc != PMIX_SUCCESS)
        goto free_self;
    size_t size, nnodes;
    rc = job_number(self, PMIX_JOB_SIZE, &size);
    if (rc == PMIX_SUCCESS && self->self.rank >= size)
        rc = PMIX_ERR_BAD_PARAM;
    if (rc == PMIX_SUCCESS && !number_ranks(self, size))
        rc = PMIX_ERR_NOMEM;
    if (rc != PMIX_SUCCESS)
        goto leave;
    if (job_number(self, PMIX_NUM_NODES, &nnodes) != PMIX_SUCCESS)
        nnodes = 0;
    self->base = (struct dt_boot){.ops = &dt_boot_pmix,
                                  .rank = self->self.rank,
                                  .most = size,
                                  .nnodes = nnodes,
                                  .elastic = elastic > 0};
    dt_boot_node_name(self->base.node, sizeof(self->base.node));
    pthread_mutex_init(&self->lock, NULL);
    register_handler(self);
    *boot = &self->base;
    return DT_SUCCESS;

leave:
    PMIx_Finalize(NULL, 0);
free_self:
    free(self->numbers);
    free(self);
    return join_failed(rc, err);
}

/* Put mine, and wait until all ranks have put theirs. */
static pmix_status_t exchange(struct pmix_boot *self, const void *mine,
                              size_t len, long timeout)
{
    pmix_value_t value;
    char key[32];
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = (char *)mine; /* copied, not written to */
    value.data.bo.size = len;
    snprintf(key, sizeof(key), CARD_KEY "%u", self->exchanges);
    pmix_status_t rc = PMIx_Put(PMIX_GLOBAL, key, &value);
    if (rc == PMIX_SUCCESS)
        rc = PMIx_Commit();
    return rc == PMIX_SUCCESS ? fence_procs(self, NULL, 0, true, timeout) : rc;
}

static pmix_status_t get_card(const struct pmix_boot *self, size_t rank,
                              pmix_value_t **card)
{
    pmix_proc_t peer;
    char key[32];
    snprintf(key, sizeof(key), CARD_KEY "%u", self->exchanges);
    PMIX_LOAD_PROCID(&peer, self->self.nspace, (pmix_rank_t)rank);
    pmix_status_t rc = PMIx_Get(&peer, key, NULL, 0, card);
    if (rc == PMIX_SUCCESS && (*card)->type != PMIX_BYTE_OBJECT)
        rc = PMIX_ERR_TYPE_MISMATCH;
    return rc;
}

static dt_result_t exchange_failed(struct pmix_boot *self, pmix_status_t rc,
                                   struct dt_error *err)
{
    struct dt_error loss;
    const char *why = PMIx_Error_string(rc);
    if (pmix_check(&self->base, DT_BOOT_EVENT_WAIT, &loss) != DT_SUCCESS)
        why = loss.text;
    return dt_error_set(err, DT_ERR_BOOTSTRAP,
                        "the ranks could not exchange addresses through "
                        "PMIx: %s",
                        why);
}

static void free_cards(struct pmix_boot *self)
{
    for (size_t r = 0; self->cards && r < self->base.size; r++)
        if (self->cards[r])
            PMIX_VALUE_RELEASE(self->cards[r]);
    free(self->cards);
    self->cards = NULL;
}

/* An allgather of all ranks that were started. */
static dt_result_t gather_all(struct pmix_boot *self, const void *mine,
                              size_t len, struct dt_blob *all, long timeout,
                              struct dt_error *err)
{
    struct dt_boot *boot = &self->base;
    free_cards(self);
    boot->size = boot->most;
    self->exchanges++;
    self->cards = calloc(boot->size, sizeof(*self->cards));
    if (!self->cards)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory to start");
    pmix_status_t rc = exchange(self, mine, len, timeout);
    if (rc == PMIX_ERR_TIMEOUT)
        return dt_error_set(err, DT_ERR_TIMED_OUT,
                            "not all ranks called dt_init within %ld s",
                            timeout);
    for (size_t r = 0; rc == PMIX_SUCCESS && r < boot->size; r++)
        rc = get_card(self, r, &self->cards[r]);
    if (rc != PMIX_SUCCESS)
        return exchange_failed(self, rc, err);
    for (size_t r = 0; r < boot->size; r++)
        all[r] = (struct dt_blob){self->cards[r]->data.bo.bytes,
                                  self->cards[r]->data.bo.size};
    return DT_SUCCESS;
}

/* The members are those of the meeting. Those that have ended meanwhile are
 * lost, and what was lost before is over. */
static void renumber(struct pmix_boot *self)
{
    const struct dt_meeting *meeting = &self->meeting;
    pthread_mutex_lock(&self->lock);
    atomic_store(&self->lost, atomic_load(&self->no_server));
    for (size_t i = 0; i < self->base.most; i++)
        self->numbers[i].rank = -1;
    for (size_t r = 0; r < meeting->size; r++) {
        const struct dt_member *member = &meeting->members[r];
        struct number *number = &self->numbers[member->rank];
        number->rank = (int32_t)r;
        number->incarnation = member->incarnation;
        if (number->ended > member->incarnation &&
            member->rank != self->self.rank)
            set_lost(self, &(struct end){.event = PMIX_ERR_PROC_ABORTED,
                                         .number = member->rank});
    }
    self->base.rank = (size_t)self->numbers[self->self.rank].rank;
    self->base.size = meeting->size;
    pthread_mutex_unlock(&self->lock);
}

/* An allgather of the ranks that live. */
static dt_result_t gather_living(struct pmix_boot *self, const void *mine,
                                 size_t len, struct dt_blob *all, long timeout,
                                 struct dt_error *err)
{
    struct dt_meeting meeting;
    dt_result_t rc = dt_meet(self->self.rank, mine, len, timeout,
                             self->base.most, &self->no_server, &meeting, err);
    if (rc != DT_SUCCESS)
        return rc;
    dt_meeting_free(&self->meeting);
    self->meeting = meeting;
    self->base.epoch = meeting.epoch;
    renumber(self);
    for (size_t r = 0; r < meeting.size; r++)
        all[r] = meeting.members[r].card;
    return DT_SUCCESS;
}

static dt_result_t pmix_allgather(struct dt_boot *boot, const void *mine,
                                  size_t len, struct dt_blob *all, long timeout,
                                  struct dt_error *err)
{
    struct pmix_boot *self = (struct pmix_boot *)boot;
    return (boot->elastic ? gather_living : gather_all)(self, mine, len, all,
                                                        timeout, err);
}

static void pmix_finish(struct dt_boot *boot, long timeout)
{
    struct pmix_boot *self = (struct pmix_boot *)boot;
    size_t nprocs = self->meeting.size;
    pmix_proc_t *procs = nprocs ? calloc(nprocs, sizeof(*procs)) : NULL;
    for (size_t i = 0; procs && i < nprocs; i++)
        PMIX_LOAD_PROCID(&procs[i], self->self.nspace,
                         self->meeting.members[i].rank);
    /* this is the end: if the fence fails, nothing follows from it */
    if (!atomic_load(&self->lost))
        fence_procs(self, procs, procs ? nprocs : 0, false, timeout);
    free(procs);
}

static void pmix_close(struct dt_boot *boot)
{
    struct pmix_boot *self = (struct pmix_boot *)boot;
    if (!self)
        return;
    free_cards(self);
    dt_meeting_free(&self->meeting);
    if (atomic_load(&self->registered))
        PMIx_Deregister_event_handler(self->handler, NULL, NULL);
    PMIx_Finalize(NULL, 0);
    pthread_mutex_destroy(&self->lock);
    free(self->numbers);
    free(self);
}

const struct dt_boot_ops dt_boot_pmix = {
    .open = pmix_open,
    .allgather = pmix_allgather,
    .check = pmix_check,
    .ended = pmix_ended,
    .finish = pmix_finish,
    .close = pmix_close,
};
