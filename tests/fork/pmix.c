/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pmix.c - the part of a PMIx client library that libdt needs, for the ranks of
 * tests/dt-fork: no server, no events, and one fence that collects data. What
 * is not here comes from the real library. */
#include <pmix.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "fork.h"

#define START_S 60 /* all ranks may take at least so long to start */

static struct {
    struct fork_place place;
    struct fork_area *area;
    char key[PMIX_MAX_KEYLEN + 1]; /* of what the ranks put */
} job;

pmix_status_t PMIx_Init(pmix_proc_t *proc, pmix_info_t info[], size_t ninfo)
{
    const char *text = getenv(FORK_ENV);
    struct fork_place *place = &job.place;
    struct stat st;
    (void)info, (void)ninfo;
    if (!text ||
        sscanf(text, "%8zu %8zu %8zu %8d %8zu", &place->rank, &place->size,
               &place->nodes, &place->fd, &place->node) != 5 ||
        place->rank >= place->size || fstat(place->fd, &st) ||
        (size_t)st.st_size != fork_area_size(place->size))
        return PMIX_ERR_INVALID_NAMESPACE;
    void *area = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE,
                      MAP_SHARED, place->fd, 0);
    if (area == MAP_FAILED)
        return PMIX_ERR_NOMEM;
    job.area = area;
    memset(proc, 0, sizeof(*proc));
    snprintf(proc->nspace, sizeof(proc->nspace), "dt-fork");
    proc->rank = (pmix_rank_t)place->rank;
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Finalize(const pmix_info_t info[], size_t ninfo)
{
    (void)info, (void)ninfo;
    munmap(job.area, fork_area_size(job.place.size));
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Put(pmix_scope_t scope, const char key[], pmix_value_t *val)
{
    struct fork_slot *slot = &job.area->slot[job.place.rank];
    (void)scope;
    if (val->type != PMIX_BYTE_OBJECT || val->data.bo.size > sizeof(slot->data))
        return PMIX_ERR_BAD_PARAM;
    memcpy(slot->data, val->data.bo.bytes, val->data.bo.size);
    slot->len = (uint32_t)val->data.bo.size;
    snprintf(job.key, sizeof(job.key), "%s", key);
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Commit(void)
{
    return PMIX_SUCCESS;
}

static pmix_status_t await_all(int seconds)
{
    const struct timespec pause = {.tv_nsec = 200000};
    long pauses = (seconds < START_S ? START_S : (long)seconds) * 5000;
    atomic_fetch_add(&job.area->arrived, 1);
    while (atomic_load(&job.area->arrived) < job.place.size) {
        if (atomic_load(&job.area->dead))
            return PMIX_ERR_PROC_ABORTED;
        if (pauses-- == 0)
            return PMIX_ERR_TIMEOUT;
        nanosleep(&pause, NULL);
    }
    return PMIX_SUCCESS;
}

/* The fence at the end, which collects nothing, keeps the end of one rank from
 * being an event to another: here there are no events. */
pmix_status_t PMIx_Fence_nb(const pmix_proc_t procs[], size_t nprocs,
                            const pmix_info_t info[], size_t ninfo,
                            pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    bool collect = false;
    int seconds = 0;
    (void)procs, (void)nprocs;
    for (size_t i = 0; i < ninfo; i++) {
        if (!strcmp(info[i].key, PMIX_COLLECT_DATA))
            collect = info[i].value.data.flag;
        else if (!strcmp(info[i].key, PMIX_TIMEOUT))
            seconds = info[i].value.data.integer;
    }
    cbfunc(collect ? await_all(seconds) : PMIX_SUCCESS, cbdata);
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Get(const pmix_proc_t *proc, const char key[],
                       const pmix_info_t info[], size_t ninfo,
                       pmix_value_t **val)
{
    bool card = !strcmp(key, job.key), size = !strcmp(key, PMIX_JOB_SIZE);
    (void)info, (void)ninfo;
    if (card ? proc->rank >= job.place.size
             : !size && strcmp(key, PMIX_NUM_NODES))
        return PMIX_ERR_NOT_FOUND;
    pmix_value_t *value = calloc(1, sizeof(*value));
    if (!value)
        return PMIX_ERR_NOMEM;
    if (card) {
        const struct fork_slot *slot = &job.area->slot[proc->rank];
        value->type = PMIX_BYTE_OBJECT;
        value->data.bo.size = slot->len;
        value->data.bo.bytes = malloc(slot->len + 1);
        if (!value->data.bo.bytes) {
            free(value);
            return PMIX_ERR_NOMEM;
        }
        memcpy(value->data.bo.bytes, slot->data, slot->len);
    } else {
        value->type = PMIX_UINT32;
        value->data.uint32 =
            (uint32_t)(size ? job.place.size : job.place.nodes);
    }
    *val = value;
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Register_event_handler(pmix_status_t codes[], size_t ncodes,
                                          pmix_info_t info[], size_t ninfo,
                                          pmix_notification_fn_t handler,
                                          pmix_hdlr_reg_cbfunc_t cbfunc,
                                          void *cbdata)
{
    (void)codes, (void)ncodes, (void)info, (void)ninfo, (void)handler;
    cbfunc(PMIX_ERR_NOT_SUPPORTED, 0, cbdata);
    return PMIX_SUCCESS;
}
