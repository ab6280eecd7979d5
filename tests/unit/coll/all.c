/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* all.c - every collective, type and reduction, of many sizes, in all
 * kinds of memory, on several communicators. */
#include <stdio.h>

#include "each.h"

char *arena[MEMORIES][2], *want_buf, *copy_buf;

enum { ALL_OPS = 1, ONE_OP = 2, SCALED = 4 };
static const struct {
    const char *name;
    void (*fn)(struct job *job);
    unsigned ops;
} colls[] = {
    {"allreduce", allreduce, ALL_OPS},
    {"allreduce_scaled", allreduce_scaled, ONE_OP | SCALED},
    {"reduce", reduce, ONE_OP},
    {"reduce_scatter", reduce_scatter, ONE_OP},
    {"reduce_scatterv", reduce_scatterv, ONE_OP},
    {"bcast", bcast, 0},
    {"allgather", allgather, 0},
    {"allgatherv", allgatherv, 0},
    {"alltoall", alltoall, 0},
    {"alltoallv", alltoallv, 0},
    {"gather", gather, 0},
    {"scatter", scatter, 0},
    {"barrier", barrier, 0},
};
#define COLLS (sizeof(colls) / sizeof(colls[0]))

/* What varies without being the point changes from case to case. */
static void run_case(struct job *job, size_t c, unsigned *turn)
{
    static const dt_op_t scaled[] = {DT_OP_SUM, DT_OP_AVG};
    unsigned t = ++*turn;
    bool small = job->dtype == DT_DTYPE_F8E4M3 || job->dtype == DT_DTYPE_F8E5M2;
    int first = 0, last = DT_OP_PROD;
    if (!(colls[c].ops & ALL_OPS))
        first = last = (int)(t % 5);
    if (colls[c].ops & SCALED) {
        if (job->dtype <= DT_DTYPE_I64)
            return;
        first = last = (int)scaled[t % 2];
    }
    /* more than 8 sums are not exact, and neither is a half of one */
    if (small && (job->size > 8 || colls[c].ops & SCALED))
        return;
    job->name = colls[c].name;
    for (int op = first; op <= last; op++, t++) {
        job->op = (dt_op_t)op;
        job->root = (int)(t % (unsigned)job->size);
        job->in_place = t / 2 % 2;
        job->later = t / 3 % 2;
        job->memory = (enum memory)(t / 5 % MEMORIES);
        job->shift = t % 7 == 0 ? each_shift : t % 7 == 3 ? 24 : 0;
        colls[c].fn(job);
    }
}

#define TYPES (DT_DTYPE_F8E5M2 + 1)

/* Of each count with as many types, which are others each time. */
static void on_comm(dt_comm_t comm, unsigned types, const size_t *counts,
                    size_t n)
{
    struct job job = {
        .comm = comm, .rank = dt_comm_rank(comm), .size = dt_comm_size(comm)};
    unsigned turn = 0;
    for (size_t c = 0; c < COLLS; c++)
        for (size_t k = 0; k < n; k++)
            for (unsigned d = 0; d < types; d++) {
                job.dtype =
                    (dt_dtype_t)((types < TYPES ? turn + c : d) % TYPES);
                job.elem = dt_dtype_size(job.dtype);
                job.count = counts[k];
                run_case(&job, c, &turn);
                turn += (unsigned)(k + d);
            }
}

/* Long ones, which are cut in pieces and pipelined. */
static void long_ones(void)
{
    struct job job = {.comm = dt_comm_world(),
                      .rank = dt_rank(),
                      .size = dt_size(),
                      .elem = 4,
                      .dtype = DT_DTYPE_F32};
    for (unsigned t = 0; t < 4; t++) {
        job.memory = (enum memory)(t % MEMORIES);
        job.in_place = t % 2;
        job.op = t == 3 ? DT_OP_AVG : DT_OP_SUM;
        job.root = (int)t % job.size;
        job.count = 2000003 + t;
        job.name = "long allreduce";
        allreduce(&job);
        job.name = "long reduce";
        reduce(&job);
        job.name = "long bcast";
        bcast(&job);
        job.count = 2000003 / (size_t)job.size;
        job.name = "long reduce_scatter";
        reduce_scatter(&job);
        job.name = "long allgather";
        allgather(&job);
        job.name = "long alltoall";
        alltoall(&job);
    }
}

/* Random numbers whose sum depends on the order: the same bits on all ranks,
 * and, printed, from run to run. */
static void digest(void)
{
    enum { N = 300001 };
    float *buf = (float *)(void *)arena[PRIVATE][0];
    uint32_t seed = 12345u + (uint32_t)dt_rank();
    for (size_t i = 0; i < N; i++) {
        seed = seed * 1664525u + 1013904223u;
        buf[i] = (float)(int32_t)seed * 1e-6f;
    }
    uint64_t hash = 14695981039346656037u;
    for (size_t count = 100; count <= N; count = count * 3 + 1) {
        expect(dt_allreduce(buf, buf, count, DT_DTYPE_F32, DT_OP_SUM, WORLD) ==
                   DT_SUCCESS,
               "allreduce of %zu random numbers", count);
        for (size_t i = 0; i < count * 4; i++)
            hash = (hash ^ ((unsigned char *)buf)[i]) * 1099511628211u;
        for (size_t i = 0; i < count; i++)
            buf[i] *= 0.01f + 0.001f * (float)dt_rank();
    }
    int64_t mine = (int64_t)(hash >> 1), all[4096];
    dt_allgather(&mine, all, 1, DT_DTYPE_I64, WORLD);
    for (int r = 0; r < dt_size(); r++)
        expect(all[r] == mine, "rank %d has other bits", r);
    if (dt_rank() == 0)
        printf("digest %016llx\n", (unsigned long long)hash);
}

void mode_all(int argc, char **argv)
{
    static const size_t all_types[] = {1, 1001}, few[] = {1, 130, 3001};
    static const size_t counts[] = {0, 2, 3, 7, 64, 5000, 30011};
    dt_comm_t backwards = NULL, half = NULL;
    (void)argc, (void)argv;
    open_arenas();
    on_comm(dt_comm_world(), TYPES, all_types, 2);
    on_comm(dt_comm_world(), 2, counts, sizeof(counts) / sizeof(counts[0]));
    expect(dt_comm_split(dt_comm_world(), 0, -dt_rank(), &backwards) ==
                   DT_SUCCESS &&
               dt_comm_rank(backwards) == dt_size() - 1 - dt_rank(),
           "split backwards");
    if (!backwards)
        return;
    on_comm(backwards, 2, few, 3);
    expect(dt_comm_split(backwards, dt_rank() % 2, 0, &half) == DT_SUCCESS,
           "split in halves");
    if (!half)
        return;
    on_comm(half, 2, few, 3);
    expect(dt_comm_destroy(half) == DT_SUCCESS, "destroy");
    expect(dt_comm_destroy(backwards) == DT_SUCCESS, "destroy");
    long_ones();
    digest();
    close_arenas();
}
