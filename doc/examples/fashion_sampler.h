/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fashion_sampler.h - which samples each rank takes next.
 *
 * An epoch is one random order of all samples, a function of (seed, epoch).
 * The ranks advance in it together: their position is one number for all of
 * them, so a checkpoint keeps (seed, epoch, position), and a run that continues
 * with another number of ranks still takes every sample exactly once. */
#ifndef FASHION_SAMPLER_H
#define FASHION_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

struct sampler {
    uint64_t seed;
    size_t nsamples;
    int64_t epoch;
    size_t position; /* samples of this epoch that all ranks have taken */
    uint32_t *order;
};

/* One step: total samples over all ranks, of which this rank's are ids. */
struct share {
    size_t total;
    size_t count;        /* of this rank; may be 0 at the end of an epoch */
    const uint32_t *ids; /* valid until the next sampler_seek */
};

/* Start at epoch 0. 0 < nsamples < 2^32. Returns 0, or -1 without memory. */
int sampler_create(struct sampler *sampler, size_t nsamples, uint64_t seed);
void sampler_destroy(struct sampler *sampler);

/* Go to a position (at most nsamples) of an epoch. */
void sampler_seek(struct sampler *sampler, int64_t epoch, size_t position);

/* Take the next size * batch samples, or what is left of the epoch, split
 * evenly: shares differ by at most one. total is 0 at the end of an epoch. */
struct share sampler_next(struct sampler *sampler, size_t batch, int rank,
                          int size);

#endif
