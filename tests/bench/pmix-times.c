/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* pmix-times.c - ranks that time PMIx_Init, and fences that collect a card of
 * each rank (an allgather), for each SIZE given, in bytes. Rank 0 prints
 *   INIT OWN FENCE...
 * in us: from the first main() to the last end of PMIx_Init; from the last
 * main() to this line; the slowest rank's fence, the median of FENCES, for each
 * SIZE. The clocks of all nodes must be one, as in a sandbox. */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FENCES = 11, SIZES = 8, CARD_MAX = 1 << 20 };

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

/* The times of a rank: when it began, when it had connected to the server, and
 * its fences. last is the last to begin, of all. */
struct times {
    double begin, last, met, fence[SIZES][FENCES];
};

static void time_fences(size_t size, double us[FENCES])
{
    char *card = malloc(size);
    check("card", card ? PMIX_SUCCESS : PMIX_ERR_NOMEM);
    for (int i = 0; i < FENCES; i++) {
        /* a new value of one key: PMIx brings all that a rank has put */
        memset(card, i, size);
        put("card", card, size);
        double begin = now();
        fence();
        us[i] = now() - begin;
    }
    free(card);
}

/* Into all: the first begin, the last end of PMIx_Init, the slowest fences. */
static void merge(struct times *all, const struct times *one, int sizes)
{
    all->begin = one->begin < all->begin ? one->begin : all->begin;
    all->last = one->last > all->last ? one->last : all->last;
    all->met = one->met > all->met ? one->met : all->met;
    for (int s = 0; s < sizes; s++)
        for (int i = 0; i < FENCES; i++)
            if (one->fence[s][i] > all->fence[s][i])
                all->fence[s][i] = one->fence[s][i];
}

static void print(struct times *all, int sizes)
{
    printf("%.0f %.0f", all->met - all->begin, now() - all->last);
    for (int s = 0; s < sizes; s++) {
        qsort(all->fence[s], FENCES, sizeof(double), by_value);
        printf(" %.0f", all->fence[s][FENCES / 2]);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    double begin = now();
    struct times mine = {.begin = begin, .last = begin}, all, one;
    int sizes = argc - 1;
    pmix_proc_t self, job;
    pmix_value_t *size;
    check("init", PMIx_Init(&self, NULL, 0));
    mine.met = now();
    check("arguments", sizes <= SIZES ? PMIX_SUCCESS : PMIX_ERR_BAD_PARAM);
    PMIX_LOAD_PROCID(&job, self.nspace, PMIX_RANK_WILDCARD);
    check("size", PMIx_Get(&job, PMIX_JOB_SIZE, NULL, 0, &size));
    uint32_t ranks = size->data.uint32;
    PMIX_VALUE_RELEASE(size);
    check("fence", PMIx_Fence(NULL, 0, NULL, 0));
    for (int s = 0; s < sizes; s++) {
        size_t bytes = strtoul(argv[1 + s], NULL, 10);
        check("SIZE",
              bytes && bytes <= CARD_MAX ? PMIX_SUCCESS : PMIX_ERR_BAD_PARAM);
        time_fences(bytes, mine.fence[s]);
    }
    put("times", &mine, sizeof(mine));
    fence();
    all = mine;
    for (uint32_t r = 0; self.rank == 0 && r < ranks; r++) {
        get(&self, r, "times", &one, sizeof(one));
        merge(&all, &one, sizes);
    }
    check("finalize", PMIx_Finalize(NULL, 0));
    if (self.rank == 0)
        print(&all, sizes);
    return 0;
}
