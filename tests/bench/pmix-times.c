/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pmix-times.c - a rank that times its meeting with the others: from main() to
 * the end of PMIx_Init, and fences that bring 200-byte cards to everybody.
 * Rank 0 prints "init-us FENCE-us", the slowest rank's of each, the fence as
 * the median over FENCES rounds. */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FENCES 21

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e6 + (double)at.tv_nsec * 1e-3;
}

static void check(const char *what, pmix_status_t rc)
{
    if (rc == PMIX_SUCCESS)
        return;
    fprintf(stderr, "pmix-times: %s: %s\n", what, PMIx_Error_string(rc));
    exit(1);
}

static void put(const char *key, const void *data, size_t len)
{
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT};
    value.data.bo.bytes = (char *)data;
    value.data.bo.size = len;
    check("put", PMIx_Put(PMIX_GLOBAL, key, &value));
    check("commit", PMIx_Commit());
}

static void fence(void)
{
    bool collect = true;
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    check("fence", PMIx_Fence(NULL, 0, &info, 1));
    PMIX_INFO_DESTRUCT(&info);
}

static void get(const pmix_proc_t *self, uint32_t rank, const char *key,
                void *data, size_t len)
{
    pmix_proc_t peer;
    pmix_value_t *value;
    PMIX_LOAD_PROCID(&peer, self->nspace, rank);
    check("get", PMIx_Get(&peer, key, NULL, 0, &value));
    if (value->type != PMIX_BYTE_OBJECT || value->data.bo.size != len)
        check("get", PMIX_ERR_TYPE_MISMATCH);
    memcpy(data, value->data.bo.bytes, len);
    PMIX_VALUE_RELEASE(value);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void)
{
    double begin = now(), mine[1 + FENCES], slowest[1 + FENCES] = {0};
    pmix_proc_t self, job;
    pmix_value_t *size;
    check("init", PMIx_Init(&self, NULL, 0));
    mine[0] = now() - begin;
    PMIX_LOAD_PROCID(&job, self.nspace, PMIX_RANK_WILDCARD);
    check("size", PMIx_Get(&job, PMIX_JOB_SIZE, NULL, 0, &size));
    uint32_t ranks = size->data.uint32;
    PMIX_VALUE_RELEASE(size);
    check("fence", PMIx_Fence(NULL, 0, NULL, 0));
    for (int i = 1; i <= FENCES; i++) {
        char card[200], key[32];
        memset(card, i, sizeof(card));
        snprintf(key, sizeof(key), "card.%d", i);
        put(key, card, sizeof(card));
        begin = now();
        fence();
        mine[i] = now() - begin;
    }
    put("times", mine, sizeof(mine));
    fence();
    for (uint32_t r = 0; self.rank == 0 && r < ranks; r++) {
        double times[1 + FENCES];
        get(&self, r, "times", times, sizeof(times));
        for (int i = 0; i <= FENCES; i++)
            if (times[i] > slowest[i])
                slowest[i] = times[i];
    }
    if (self.rank == 0) {
        qsort(slowest + 1, FENCES, sizeof(*slowest), by_value);
        printf("%.0f %.0f\n", slowest[0], slowest[1 + FENCES / 2]);
    }
    check("finalize", PMIx_Finalize(NULL, 0));
    return 0;
}
