/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pmix.c - the bootstrap of a rank that has a PMIx server: dt-pmixd, dt-run,
 * Slurm's mpi/pmix, or PRRTE. */
#include <pmix.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "boot/boot.h"

#define CARD_KEY "dt.card.1"

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

struct pmix_boot {
    struct dt_boot base;
    pmix_proc_t self;
    pmix_value_t **cards; /* base.size of them, or NULL */
    /* used by PMIx's progress thread, which calls the event handler */
    pmix_info_t me;
    size_t handler;
    atomic_bool registered; /* the event handler is registered */
    atomic_bool lost;       /* set once, after loss */
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

/* Only PMIx's progress thread calls it, so there is one writer. */
static void set_lost(struct pmix_boot *self, pmix_status_t event,
                     pmix_rank_t rank, const int *code)
{
    if (atomic_load(&self->lost))
        return;
    if (event == PMIX_ERR_LOST_CONNECTION)
        dt_error_set(&self->loss, DT_ERR_PROC_FAILED,
                     "the PMIx server of this node is gone");
    else if (event == PMIX_ERR_PROC_TERM_WO_SYNC)
        dt_error_set(&self->loss, DT_ERR_PROC_FAILED,
                     "rank %u has ended without dt_finalize", rank);
    else if (code)
        dt_error_set(&self->loss, DT_ERR_PROC_FAILED,
                     "rank %u has died (exit code %d)", rank, *code);
    else
        dt_error_set(&self->loss, DT_ERR_PROC_FAILED, "rank %u has died", rank);
    atomic_store(&self->lost, true);
}

static void on_event(size_t handler, pmix_status_t event,
                     const pmix_proc_t *source, pmix_info_t info[],
                     size_t ninfo, pmix_info_t results[], size_t nresults,
                     pmix_event_notification_cbfunc_fn_t cbfunc, void *cbdata)
{
    struct pmix_boot *self = NULL;
    const pmix_proc_t *who = source;
    const int *code = NULL;
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
            code = &value->data.integer;
    }
    /* servers repeat old events: those about a rank that this one replaces are
     * ignored */
    bool peer = self && PMIX_CHECK_NSPACE(who->nspace, self->self.nspace) &&
                who->rank < self->base.size && who->rank != self->self.rank;
    if (self && (peer || event == PMIX_ERR_LOST_CONNECTION))
        set_lost(self, event, who->rank, code);
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
    if (err)
        *err = self->loss;
    return DT_ERR_PROC_FAILED;
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

/* A fence of all ranks; collect: with the data that they have put. */
static pmix_status_t fence_all(struct pmix_boot *self, bool collect,
                               long timeout)
{
    struct fence *fence = fence_create(collect, timeout);
    if (!fence)
        return PMIX_ERR_NOMEM;
    pmix_status_t rc = PMIx_Fence_nb(NULL, 0, fence->info, 2, fenced, fence);
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

static dt_result_t pmix_open(struct dt_boot **boot, struct dt_error *err)
{
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
    if (rc != PMIX_SUCCESS)
        goto leave;
    if (job_number(self, PMIX_NUM_NODES, &nnodes) != PMIX_SUCCESS)
        nnodes = 0;
    self->base = (struct dt_boot){.ops = &dt_boot_pmix,
                                  .rank = self->self.rank,
                                  .size = size,
                                  .nnodes = nnodes};
    dt_boot_node_name(self->base.node, sizeof(self->base.node));
    register_handler(self);
    *boot = &self->base;
    return DT_SUCCESS;

leave:
    PMIx_Finalize(NULL, 0);
free_self:
    free(self);
    return join_failed(rc, err);
}

/* Put mine, and wait until all ranks have put theirs. */
static pmix_status_t exchange(struct pmix_boot *self, const void *mine,
                              size_t len, long timeout)
{
    pmix_value_t value;
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = (char *)mine; /* copied, not written to */
    value.data.bo.size = len;
    pmix_status_t rc = PMIx_Put(PMIX_GLOBAL, CARD_KEY, &value);
    if (rc == PMIX_SUCCESS)
        rc = PMIx_Commit();
    return rc == PMIX_SUCCESS ? fence_all(self, true, timeout) : rc;
}

static pmix_status_t get_card(const struct pmix_boot *self, size_t rank,
                              pmix_value_t **card)
{
    pmix_proc_t peer;
    PMIX_LOAD_PROCID(&peer, self->self.nspace, (pmix_rank_t)rank);
    pmix_status_t rc = PMIx_Get(&peer, CARD_KEY, NULL, 0, card);
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

static dt_result_t pmix_allgather(struct dt_boot *boot, const void *mine,
                                  size_t len, struct dt_blob *all, long timeout,
                                  struct dt_error *err)
{
    struct pmix_boot *self = (struct pmix_boot *)boot;
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

static void pmix_finish(struct dt_boot *boot, long timeout)
{
    struct pmix_boot *self = (struct pmix_boot *)boot;
    /* this is the end: if the fence fails, nothing follows from it */
    if (!atomic_load(&self->lost))
        fence_all(self, false, timeout);
}

static void pmix_close(struct dt_boot *boot)
{
    struct pmix_boot *self = (struct pmix_boot *)boot;
    if (!self)
        return;
    for (size_t r = 0; self->cards && r < boot->size; r++)
        if (self->cards[r])
            PMIX_VALUE_RELEASE(self->cards[r]);
    free(self->cards);
    if (atomic_load(&self->registered))
        PMIx_Deregister_event_handler(self->handler, NULL, NULL);
    PMIx_Finalize(NULL, 0);
    free(self);
}

const struct dt_boot_ops dt_boot_pmix = {
    .open = pmix_open,
    .allgather = pmix_allgather,
    .check = pmix_check,
    .finish = pmix_finish,
    .close = pmix_close,
};
