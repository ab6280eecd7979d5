/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fashion_sampler.c - every sample exactly once per epoch, on any number of
 * ranks, interrupted or not. */
#include "fashion_sampler.h"
#include "../tap.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SAMPLES 1024

/* Walk from where the sampler stands until stop samples of the epoch are
 * taken, appending them in the order of the ranks. Returns false if the
 * shares of a step are uneven or do not add up. */
static bool walk(struct sampler *s, size_t batch, int size, size_t stop,
                 uint32_t *taken)
{
    bool even = true;
    while (s->position < stop) {
        size_t at = s->position, total = 0, least = SIZE_MAX, most = 0;
        for (int r = 0; r < size; r++) {
            struct sampler mine = *s; /* as this rank sees it */
            struct share share = sampler_next(&mine, batch, r, size);
            memcpy(taken + at + total, share.ids,
                   share.count * sizeof *share.ids);
            total += share.count;
            least = share.count < least ? share.count : least;
            most = share.count > most ? share.count : most;
            even = even && share.total == mine.position - at;
        }
        even = even && most - least <= 1 && most <= batch;
        even = even && sampler_next(s, batch, 0, size).total == total;
        if (s->position <= at)
            return false;
    }
    return even;
}

static bool each_once(const uint32_t *taken, size_t n)
{
    uint8_t seen[MAX_SAMPLES] = {0};
    for (size_t i = 0; i < n; i++)
        if (taken[i] >= n || seen[taken[i]]++)
            return false;
    return true;
}

static void test_whole_epochs(void)
{
    const size_t ns[] = {1, 2, 7, 64, 1000};
    const size_t batches[] = {1, 3, 32, 5000, SIZE_MAX};
    const int sizes[] = {1, 2, 3, 8};
    uint32_t taken[MAX_SAMPLES];
    bool good = true;
    for (size_t i = 0; i < 5 * 5 * 4; i++) {
        size_t n = ns[i % 5], batch = batches[i / 5 % 5];
        struct sampler s;
        if (sampler_create(&s, n, 1))
            abort();
        bool pass = walk(&s, batch, sizes[i / 25], n, taken) &&
                    each_once(taken, n) &&
                    sampler_next(&s, batch, 0, sizes[i / 25]).total == 0;
        if (!pass)
            diag("%zu samples, batch %zu, %d ranks", n, batch, sizes[i / 25]);
        good = good && pass;
        sampler_destroy(&s);
    }
    ok(good, "every sample exactly once per epoch, shares even");
}

static void test_last_batch(void)
{
    struct sampler s;
    if (sampler_create(&s, 3, 1))
        abort();
    size_t counts[8];
    for (int r = 0; r < 8; r++) {
        struct sampler mine = s;
        counts[r] = sampler_next(&mine, 4, r, 8).count;
    }
    size_t sum = 0, none = 0;
    for (int r = 0; r < 8; r++) {
        sum += counts[r];
        none += counts[r] == 0;
    }
    ok(sum == 3 && none == 5, "three samples on eight ranks: five have none");
    sampler_destroy(&s);
}

static void test_resume(void)
{
    enum { N = 1000 };
    uint32_t whole[MAX_SAMPLES], parts[MAX_SAMPLES];
    struct sampler s, later;
    if (sampler_create(&s, N, 5) || sampler_create(&later, N, 5))
        abort();
    sampler_seek(&s, 3, 0);
    walk(&s, 8, 4, N, whole);

    sampler_seek(&s, 3, 0);
    walk(&s, 8, 4, 300, parts);
    sampler_seek(&later, 3, s.position); /* another process, other ranks */
    ok(s.position == 320 && walk(&later, 7, 3, N, parts) &&
           !memcmp(whole, parts, N * sizeof *whole),
       "a run that goes on with 3 ranks instead of 4 takes the same samples");
    sampler_destroy(&s);
    sampler_destroy(&later);
}

static bool same_order(const struct sampler *a, const struct sampler *b)
{
    return !memcmp(a->order, b->order, a->nsamples * sizeof *a->order);
}

static void test_orders(void)
{
    struct sampler a, b;
    if (sampler_create(&a, 1000, 5) || sampler_create(&b, 1000, 5))
        abort();
    ok(same_order(&a, &b), "the order follows from seed and epoch");
    sampler_seek(&b, 1, 0);
    ok(!same_order(&a, &b), "another epoch, another order");
    sampler_seek(&b, 0, 0);
    ok(same_order(&a, &b), "and back again");
    sampler_destroy(&b);
    if (sampler_create(&b, 1000, 6))
        abort();
    ok(!same_order(&a, &b), "another seed, another order");

    size_t fixed = 0;
    for (size_t i = 0; i < a.nsamples; i++)
        fixed += a.order[i] == i;
    ok(fixed < 10, "it is shuffled: %zu of 1000 in their place", fixed);
    sampler_destroy(&a);
    sampler_destroy(&b);
}

int main(void)
{
    test_whole_epochs();
    test_last_batch();
    test_resume();
    test_orders();
    return tap_done();
}
