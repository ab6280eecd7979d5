/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fashion_sampler.c - every sample exactly once per epoch. */
#include "fashion_sampler.h"

#include "fashion_random.h"

#include <stdlib.h>

int sampler_create(struct sampler *sampler, size_t nsamples, uint64_t seed)
{
    uint32_t *order = calloc(nsamples, sizeof *order);
    if (!order)
        return -1;
    *sampler =
        (struct sampler){.seed = seed, .nsamples = nsamples, .order = order};
    sampler_seek(sampler, 0, 0);
    return 0;
}

void sampler_destroy(struct sampler *sampler)
{
    free(sampler->order);
    sampler->order = NULL;
}

/* Fisher and Yates, from the identity each time: the order of an epoch must
 * not depend on which epochs this process has seen before. */
static void shuffle(struct sampler *s)
{
    for (size_t i = 0; i < s->nsamples; i++)
        s->order[i] = (uint32_t)i;
    for (size_t i = s->nsamples - 1; i > 0; i--) {
        uint32_t j =
            random_below(s->seed, (uint64_t)s->epoch, i, (uint32_t)i + 1);
        uint32_t swap = s->order[i];
        s->order[i] = s->order[j];
        s->order[j] = swap;
    }
}

void sampler_seek(struct sampler *sampler, int64_t epoch, size_t position)
{
    sampler->epoch = epoch;
    sampler->position = position;
    shuffle(sampler);
}

struct share sampler_next(struct sampler *sampler, size_t batch, int rank,
                          int size)
{
    size_t left = sampler->nsamples - sampler->position;
    size_t r = (size_t)rank, n = (size_t)size;
    size_t total = batch > left / n ? left : batch * n;
    size_t first = total / n * r + total % n * r / n;
    size_t end = total / n * (r + 1) + total % n * (r + 1) / n;
    const uint32_t *at = sampler->order + sampler->position;

    sampler->position += total;
    return (struct share){
        .total = total, .count = end - first, .ids = at + first};
}
