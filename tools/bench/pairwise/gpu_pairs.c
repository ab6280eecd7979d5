/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gpu_pairs.c - each rank of a node reads the GPU memory of each other rank:
 * can the GPU reach it, can the process map it, are the bytes right, and how
 * fast are the reads? */
#include <stdlib.h>
#include <string.h>

#include "measure/gpu_memory.h"
#include "pairwise/pairwise.h"

enum {
    BYTES = 32 << 20, /* of a buffer: more than one of the driver's pages */
    SAMPLE = 4096,    /* bytes that are verified at each end */
    SMALL = 8,
    TIMES = 50,
    ENOUGH_US = 20000,
};

/* What the ranks exchange. */
struct shown {
    char bus[24];
    struct dt_gpu_handle handle;
};

struct bench {
    const struct job *job;
    struct gpu *gpu;
    char *mine, *other; /* exported; the destination of reads */
    struct shown *shown;
    struct gpu_pair *row; /* this rank's, by local rank */
};

static unsigned char byte_of(int rank, size_t i)
{
    return (unsigned char)((size_t)rank * 131 + i * 7 + 1);
}

/* ---- one reads the other ---- */

/* The shortest of several copies, with the call and the wait for its end. */
static dt_result_t clock_copy(const struct bench *b, const char *from,
                              size_t bytes, double *us, struct dt_error *err)
{
    double begin = now_us(), best = 0;
    dt_result_t rc = DT_SUCCESS;
    for (int i = 0; rc == DT_SUCCESS && i < TIMES; i++) {
        double start = now_us();
        rc = gpu_copy(b->gpu, b->other, from, bytes, err);
        double now = now_us();
        if (i < 2 || now - start < best)
            best = now - start;
        if (i && now - begin > ENOUGH_US)
            break;
    }
    *us = best;
    return rc;
}

static dt_result_t verify(const struct bench *b, int peer, const char *memory,
                          struct dt_error *err)
{
    static const size_t at[] = {0, BYTES - SAMPLE};
    unsigned char sample[SAMPLE];
    dt_result_t rc = DT_SUCCESS;
    for (int i = 0; rc == DT_SUCCESS && i < 2; i++) {
        rc = gpu_copy(b->gpu, b->other, memory + at[i], SAMPLE, err);
        if (rc == DT_SUCCESS)
            rc = gpu_copy(b->gpu, sample, b->other, SAMPLE, err);
        for (size_t k = 0; rc == DT_SUCCESS && k < SAMPLE; k++)
            if (sample[k] != byte_of(peer, at[i] + k))
                rc = dt_error_set(
                    err, DT_ERR_UNSUPPORTED,
                    "it reads other bytes than were written: the IOMMU, "
                    "or ACS in a PCIe switch, may be in the way");
    }
    return rc;
}

static dt_result_t read_memory(const struct bench *b, int peer,
                               struct gpu_pair *pair, struct dt_error *err)
{
    const struct shown *theirs = &b->shown[peer];
    const struct gpu *own = b->gpu;
    const struct dt_gpu_ops *ops = own->gpu->ops;
    void *memory = NULL;
    double us = 0;
    dt_result_t rc = ops->reaches(own->gpu, own->device, theirs->bus, err);
    if (rc == DT_SUCCESS)
        rc = ops->import(own->gpu, own->device, &theirs->handle, &memory, err);
    if (rc == DT_SUCCESS)
        rc = verify(b, peer, memory, err);
    if (rc == DT_SUCCESS)
        rc = clock_copy(b, memory, SMALL, &pair->us, err);
    if (rc == DT_SUCCESS)
        rc = clock_copy(b, memory, BYTES, &us, err);
    ops->release(own->gpu, memory);
    if (rc == DT_SUCCESS && us > 0)
        pair->gbs = (double)BYTES / us / 1e3;
    return rc;
}

/* A pair that does not work is a finding to report, not an error. */
static dt_result_t meet(const struct bench *b, int player, bool reads,
                        struct dt_error *err)
{
    const struct job *job = b->job;
    struct gpu_pair *pair = &b->row[player];
    int peer = job_rank_of(job, job->node, player);
    int64_t word = 0;
    dt_result_t rc;
    if (!reads) { /* the reader sends a message when it has finished */
        rc = dt_recv(&word, 1, DT_DTYPE_I64, peer, job->comm, DT_STREAM_NONE);
        return rc == DT_SUCCESS ? rc : fail_in_libdt(err, rc);
    }
    struct dt_error why = {""};
    if (read_memory(b, peer, pair, &why) != DT_SUCCESS)
        snprintf(pair->why, sizeof(pair->why), "%.*s",
                 (int)sizeof(pair->why) - 1, why.text);
    rc = dt_send(&word, 1, DT_DTYPE_I64, peer, job->comm, DT_STREAM_NONE);
    return rc == DT_SUCCESS ? rc : fail_in_libdt(err, rc);
}

static dt_result_t meet_all(const struct bench *b, int most, bool alone,
                            struct dt_error *err)
{
    const struct job *job = b->job;
    const int rounds = pairs_rounds(most, alone), n = job->local_size;
    dt_result_t rc = DT_SUCCESS;
    progress_start(job->rank == 0, PROGRESS_US);
    for (int round = 0; rc == DT_SUCCESS && round < rounds; round++) {
        int other = -1;
        if (round < pairs_rounds(n, alone))
            other = pairs_partner(n, alone, round, job->local_rank);
        for (int turn = 0; rc == DT_SUCCESS && other >= 0 && turn < 2; turn++)
            rc = meet(b, other, (job->local_rank < other) == !turn, err);
        rc = job_agree(job, rc, err);
        progress_show("GPUs of a node, round %d of %d", round + 1, rounds);
    }
    progress_clear();
    return rc;
}

/* ---- the whole ---- */

static dt_result_t fill(const struct bench *b, struct dt_error *err)
{
    char *bytes = malloc(BYTES);
    if (!bytes)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for a buffer");
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (char)byte_of(b->job->rank, i);
    dt_result_t rc = gpu_copy(b->gpu, b->mine, bytes, BYTES, err);
    free(bytes);
    return rc;
}

static dt_result_t make(struct bench *b, int most, struct shown *shown,
                        struct dt_error *err)
{
    memset(shown, 0, sizeof(*shown));
    b->row = calloc((size_t)most, sizeof(*b->row));
    b->shown = calloc((size_t)b->job->size, sizeof(*b->shown));
    if (!b->row || !b->shown)
        return dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for %d ranks",
                            b->job->size);
    dt_result_t rc = gpu_open(&b->gpu, b->job, err);
    if (rc == DT_SUCCESS)
        rc = gpu_alloc(b->gpu, BYTES, &b->mine, &shown->handle, err);
    if (rc == DT_SUCCESS)
        rc = gpu_alloc(b->gpu, BYTES, &b->other, NULL, err);
    if (rc == DT_SUCCESS)
        rc = fill(b, err);
    if (rc == DT_SUCCESS)
        rc =
            b->gpu->gpu->ops->bus(b->gpu->gpu, b->gpu->device, shown->bus, err);
    return rc;
}

static void clear(struct bench *b)
{
    if (b->gpu) {
        gpu_free(b->gpu, b->mine);
        gpu_free(b->gpu, b->other);
    }
    gpu_close(b->gpu);
    free(b->row);
    free(b->shown);
}

static dt_result_t print(const struct options *options, const struct bench *b,
                         const struct gpu_pair *all, int most,
                         struct dt_error *err)
{
    const struct job *job = b->job;
    struct gpu_pairs pairs = {.job = job, .most = most, .pair = all};
    dt_result_t rc = DT_SUCCESS;
    pairs.bus = calloc((size_t)job->size, sizeof(*pairs.bus));
    if (!pairs.bus)
        return dt_error_set(err, DT_ERR_NO_MEMORY,
                            "no memory for the names of GPUs");
    for (int r = 0; r < job->size; r++)
        memcpy(pairs.bus[r], b->shown[r].bus, sizeof(pairs.bus[r]) - 1);
    if (options->json)
        rc = gpu_pairs_json(stdout, &pairs, err);
    else
        gpu_pairs_print(stdout, &pairs, options->alone);
    free(pairs.bus);
    return rc;
}

/* Gather the rows of all ranks on rank 0. */
static dt_result_t gather(const struct options *options, const struct bench *b,
                          int most, struct dt_error *err)
{
    const struct job *job = b->job;
    const size_t len = (size_t)most * sizeof(*b->row);
    struct gpu_pair *all = NULL;
    dt_result_t rc = DT_SUCCESS;
    if (job->rank == 0 && !(all = calloc((size_t)job->size, len)))
        rc = dt_error_set(err, DT_ERR_NO_MEMORY, "no memory for all pairs");
    rc = job_agree(job, rc, err);
    if (rc == DT_SUCCESS) {
        rc = dt_gather(b->row, all, len, DT_DTYPE_U8, 0, job->comm,
                       DT_STREAM_NONE);
        if (rc != DT_SUCCESS)
            fail_in_libdt(err, rc);
    }
    if (rc == DT_SUCCESS && job->rank == 0)
        rc = print(options, b, all, most, err);
    free(all);
    return rc;
}

dt_result_t pairwise_gpu_run(const struct options *options,
                             const struct job *job, struct dt_error *err)
{
    struct bench b = {.job = job};
    struct shown shown;
    const int most = job->most_local;
    dt_result_t rc = job_agree(job, make(&b, most, &shown, err), err);
    if (rc == DT_SUCCESS) {
        rc = dt_allgather(&shown, b.shown, sizeof(shown), DT_DTYPE_U8,
                          job->comm, DT_STREAM_NONE);
        if (rc != DT_SUCCESS)
            fail_in_libdt(err, rc);
    }
    if (rc == DT_SUCCESS)
        rc = meet_all(&b, most, options->alone, err);
    if (rc == DT_SUCCESS)
        rc = gather(options, &b, most, err);
    clear(&b);
    return rc;
}
