/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pmix.c - ranks that meet at a PMIx server: Slurm's mpi/pmix, PRRTE. */
#include <pmix.h>
#include <stdlib.h>
#include <string.h>

#include "boot/boot.h"

#define CARD_KEY "dt.card.1"

struct pmix_boot {
    struct dt_boot base;
    pmix_proc_t self;
    pmix_value_t **cards; /* base.size of them, or NULL */
};

static bool pmix_detect(void)
{
    return getenv("PMIX_NAMESPACE") && getenv("PMIX_RANK");
}

/* A number that the server knows of the whole job. */
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

static dt_result_t join_failed(pmix_status_t rc, struct dt_error *err)
{
    const char *server = getenv("PMIX_VERSION");
    return dt_error_set(err, DT_ERR_BOOTSTRAP,
                        "the PMIx server of this step does not answer (%s): "
                        "it speaks PMIx %s, this program was linked with %s; "
                        "see srun --mpi=list for others",
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
    *boot = &self->base;
    return DT_SUCCESS;

leave:
    PMIx_Finalize(NULL, 0);
free_self:
    free(self);
    return join_failed(rc, err);
}

/* Publish mine, and wait until all ranks have. */
static pmix_status_t exchange(const void *mine, size_t len, long timeout)
{
    pmix_value_t value;
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = (char *)mine; /* copied, not written to */
    value.data.bo.size = len;
    pmix_status_t rc = PMIx_Put(PMIX_GLOBAL, CARD_KEY, &value);
    if (rc == PMIX_SUCCESS)
        rc = PMIx_Commit();
    if (rc != PMIX_SUCCESS)
        return rc;
    pmix_info_t info[2];
    bool collect = true;
    int seconds = (int)timeout;
    PMIX_INFO_LOAD(&info[0], PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, &seconds, PMIX_INT);
    rc = PMIx_Fence(NULL, 0, info, 2);
    PMIX_INFO_DESTRUCT(&info[0]);
    PMIX_INFO_DESTRUCT(&info[1]);
    return rc;
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

static dt_result_t pmix_allgather(struct dt_boot *boot, const void *mine,
                                  size_t len, struct dt_blob *all, long timeout,
                                  struct dt_error *err)
{
    struct pmix_boot *self = (struct pmix_boot *)boot;
    self->cards = calloc(boot->size, sizeof(*self->cards));
    if (!self->cards)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory to start");
    pmix_status_t rc = exchange(mine, len, timeout);
    if (rc == PMIX_ERR_TIMEOUT)
        return dt_error_set(err, DT_ERR_TIMED_OUT,
                            "not all ranks came to dt_init in %ld s", timeout);
    for (size_t r = 0; rc == PMIX_SUCCESS && r < boot->size; r++)
        rc = get_card(self, r, &self->cards[r]);
    if (rc != PMIX_SUCCESS)
        return dt_error_set(err, DT_ERR_BOOTSTRAP,
                            "the ranks could not exchange addresses through "
                            "PMIx (%s)",
                            PMIx_Error_string(rc));
    for (size_t r = 0; r < boot->size; r++)
        all[r] = (struct dt_blob){self->cards[r]->data.bo.bytes,
                                  self->cards[r]->data.bo.size};
    return DT_SUCCESS;
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
    PMIx_Finalize(NULL, 0);
    free(self);
}

const struct dt_boot_ops dt_boot_pmix = {
    .size = sizeof(struct dt_boot_ops),
    .name = "pmix",
    .detect = pmix_detect,
    .open = pmix_open,
    .allgather = pmix_allgather,
    .close = pmix_close,
};
