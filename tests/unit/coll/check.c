/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* check.c - with DT_CHECK=1, ranks that disagree are told who does;
 * without it they may get an error, in bounded time, and no memory is overrun.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

static float in[4096], out[4096];
static size_t counts[64], displs[64], others[64];

/* The last rank is the odd one out. */
static bool odd(void)
{
    return dt_rank() == dt_size() - 1;
}

/* All have been told, of the last rank and of rank 0; then all goes on. */
static void told(dt_result_t rc, const char *theirs, const char *first)
{
    char want[512];
    float x = 1, sum = 0;
    if (theirs)
        snprintf(want, sizeof(want), "rank %d calls %s where rank 0 calls %s",
                 dt_size() - 1, theirs, first);
    else
        snprintf(want, sizeof(want), "%s", first);
    expect(rc == DT_ERR_MISMATCH, "result %d: %s", rc, want);
    expect(strstr(dt_last_error(), want), "wanted: %s", want);
    rc = dt_allreduce(&x, &sum, 1, DT_DTYPE_F32, DT_OP_SUM, WORLD);
    expect(rc == DT_SUCCESS && sum == (float)dt_size(), "goes on");
}

#define F32 DT_DTYPE_F32
#define SUM DT_OP_SUM

static void plain(void)
{
    told(odd() ? dt_bcast(in, 10, F32, 0, WORLD)
               : dt_allreduce(in, out, 10, F32, SUM, WORLD),
         "dt_bcast of 10 f32 from root 0", "dt_allreduce of 10 f32, sum");
    told(dt_allreduce(in, out, odd() ? 11 : 10, F32, SUM, WORLD),
         "dt_allreduce of 11 f32, sum", "dt_allreduce of 10 f32, sum");
    told(dt_allreduce(in, out, odd() ? 0 : 10, F32, SUM, WORLD),
         "dt_allreduce of 0 f32, sum", "dt_allreduce of 10 f32, sum");
    told(dt_allreduce(in, out, 10, odd() ? DT_DTYPE_I32 : F32, SUM, WORLD),
         "dt_allreduce of 10 i32, sum", "dt_allreduce of 10 f32, sum");
    told(dt_allreduce(in, out, 10, F32, odd() ? DT_OP_MAX : SUM, WORLD),
         "dt_allreduce of 10 f32, max", "dt_allreduce of 10 f32, sum");
    told(dt_reduce(in, out, 10, F32, SUM, odd() ? dt_rank() : 0, WORLD), NULL,
         "where rank 0 calls dt_reduce of 10 f32, sum, to root 0");
}

static void more(void)
{
    dt_request_t request = NULL;
    dt_comm_t comm = NULL;
    told(dt_allreduce_scaled(in, out, 4, F32, SUM, odd() ? 0.5 : 1, 1, WORLD),
         "dt_allreduce_scaled of 4 f32, sum, scaled by 0.5 and 1",
         "dt_allreduce_scaled of 4 f32, sum, scaled by 1 and 1");
    told(odd() ? dt_barrier(WORLD) : dt_allgather(in, out, 1, F32, WORLD),
         "dt_barrier", "dt_allgather of 1 f32");
    told(odd() ? dt_comm_split(dt_comm_world(), 0, 0, &comm)
               : dt_iallgather(in, out, 1, F32, WORLD, &request),
         "dt_comm_split", "dt_allgather of 1 f32");
    expect(!comm && !request, "outputs only on success");
    dt_group_start();
    dt_result_t rc = dt_bcast(in, odd() ? 3 : 2, F32, 0, WORLD);
    dt_group_end(); /* keeps the words of what failed */
    told(rc, "dt_bcast of 3 f32 from root 0", "dt_bcast of 2 f32 from root 0");
    expect(dt_comm_split(dt_comm_world(), 0, 0, &comm) == DT_SUCCESS, "split");
    if (odd())
        told(dt_comm_destroy(comm), "dt_comm_destroy", "dt_barrier");
    else
        told(dt_barrier(comm, DT_STREAM_NONE), "dt_comm_destroy", "dt_barrier");
    expect(dt_comm_destroy(comm) == DT_SUCCESS, "destroy");
}

static void uneven(void)
{
    size_t last = (size_t)dt_size() - 1;
    for (size_t r = 0; r <= last; r++) {
        counts[r] = others[r] = 4;
        displs[r] = 8 * r;
    }
    others[0] = 3;
    others[last] = 5; /* the same in all */
    told(dt_allgatherv(in, out, odd() ? others : counts, displs, F32, WORLD),
         NULL, "(counts #");
    told(dt_reduce_scatterv(in, out, odd() ? others : counts, F32, SUM, WORLD),
         NULL, "(counts #");
    told(dt_alltoallv(in, counts, displs, out, counts, displs,
                      odd() ? DT_DTYPE_I32 : F32, WORLD),
         "dt_alltoallv of i32", "dt_alltoallv of f32");
    if (odd())
        others[last] = 4; /* to itself as expected */
    told(dt_alltoallv(in, odd() ? others : counts, displs, out, counts, displs,
                      F32, WORLD),
         NULL, "elements in all, but expect");
    /* as many in all, but not from one rank to the other */
    for (size_t r = 0; r <= last; r++)
        others[r] = 4;
    others[0] = odd() ? 5 : 4;
    others[1] = odd() ? 3 : 4;
    if (last > 1)
        told(dt_alltoallv(in, others, displs, out, counts, displs, F32, WORLD),
             NULL, "than its receiver expects");
}

static void create(void)
{
    int ranks[64], n = dt_size();
    dt_comm_t comm = NULL;
    char want[96];
    for (int r = 0; r < n; r++)
        ranks[r] = odd() ? n - 1 - r : r;
    dt_result_t rc = dt_comm_create(dt_comm_world(), ranks, n, &comm);
    snprintf(want, sizeof(want), "rank %d calls dt_comm_create (ranks #",
             n - 1);
    told(rc, NULL, want);
    expect(!comm, "no communicator");
    ranks[0] = n - 1;
    ranks[n - 1] = 0;
    for (int r = 1; r < n - 1; r++)
        ranks[r] = r;
    expect(dt_comm_create(dt_comm_world(), ranks, n, &comm) == DT_SUCCESS &&
               dt_comm_rank(comm) == (odd()            ? 0
                                      : dt_rank() == 0 ? n - 1
                                                       : dt_rank()),
           "the same ranks");
    expect(dt_comm_destroy(comm) == DT_SUCCESS, "destroy");
}

void mode_check(int argc, char **argv)
{
    float x;
    (void)argc, (void)argv;
    plain();
    create();
    more();
    uneven();
    /* messages are not compared */
    if (dt_rank() == 0)
        expect(dt_send(in, 1, F32, 1, WORLD) == DT_SUCCESS, "send");
    if (dt_rank() == 1)
        expect(dt_recv(&x, 1, F32, 0, WORLD) == DT_SUCCESS, "recv");
}

/* ---- without DT_CHECK ---- */

/* What most call, and what the last rank calls: by name, with so many elements
 * of a type, and root 0 or 1. */
static const struct dispute {
    struct side {
        const char *name;
        size_t count;
        dt_dtype_t dtype;
        int root;
    } most, odd;
} disputes[] = {
    {{"allreduce", 4, F32, 0}, {"allreduce", 5, F32, 0}},
    {{"allreduce", 5000, F32, 0}, {"allreduce", 100, F32, 0}},
    {{"allreduce", 100, F32, 0}, {"allreduce", 5000, F32, 0}},
    {{"allreduce", 300000, F32, 0}, {"allreduce", 200000, F32, 0}},
    {{"allreduce", 200000, F32, 0}, {"allreduce", 300000, F32, 0}},
    {{"shared", 300000, F32, 0}, {"shared", 200000, F32, 0}},
    {{"shared", 200000, F32, 0}, {"shared", 300000, F32, 0}},
    {{"shared", 200000, F32, 0}, {"allreduce", 300000, F32, 0}},
    {{"allreduce", 1000, F32, 0}, {"allreduce", 1000, DT_DTYPE_F64, 0}},
    {{"allreduce", 1000, F32, 0}, {"bcast", 1000, F32, 0}},
    {{"allreduce", 1000, F32, 0}, {"barrier", 0, F32, 0}},
    {{"bcast", 1000, F32, 0}, {"bcast", 10, F32, 0}},
    {{"bcast", 10, F32, 0}, {"bcast", 100000, F32, 0}},
    {{"bcast", 1000, F32, 0}, {"bcast", 1000, F32, 1}},
    {{"allgather", 10, F32, 0}, {"allgather", 1000, F32, 0}},
    {{"allgather", 50000, F32, 0}, {"allgather", 10, F32, 0}},
    {{"reduce_scatter", 1000, F32, 0}, {"reduce_scatter", 3000, F32, 0}},
    {{"reduce_scatter", 30000, F32, 0}, {"reduce_scatter", 100, F32, 0}},
    {{"alltoall", 500, F32, 0}, {"alltoall", 700, F32, 0}},
    {{"alltoall", 70000, F32, 0}, {"alltoall", 50, F32, 0}},
    {{"gather", 100, F32, 0}, {"gather", 20000, F32, 0}},
    {{"gather", 20000, F32, 0}, {"gather", 100, F32, 0}},
    {{"scatter", 100, F32, 0}, {"scatter", 20000, F32, 0}},
    {{"scatter", 20000, F32, 0}, {"scatter", 100, F32, 0}},
    {{"reduce", 1000, F32, 0}, {"reduce", 50000, F32, 0}},
    {{"reduce", 50000, F32, 0}, {"reduce", 1000, F32, 1}},
    {{"send", 100, F32, -1}, {"recv", 50, F32, 0}},
    {{"send", 50000, F32, -1}, {"recv", 100, F32, 0}},
    {{"send", 100, F32, -1}, {"recv", 50000, F32, 0}},
};
#define DISPUTES (sizeof(disputes) / sizeof(disputes[0]))

/* Buffers are as long as this rank's own arguments say. */
static dt_result_t call(const struct side *side, void *from, void *to)
{
    const char *name = side->name;
    size_t n = side->count;
    if (!strcmp(name, "allreduce") || !strcmp(name, "shared"))
        return dt_allreduce(from, to, n, side->dtype, SUM, WORLD);
    if (!strcmp(name, "bcast"))
        return dt_bcast(to, n, side->dtype, side->root, WORLD);
    if (!strcmp(name, "reduce"))
        return dt_reduce(from, to, n, side->dtype, SUM, side->root, WORLD);
    if (!strcmp(name, "allgather"))
        return dt_allgather(from, to, n, side->dtype, WORLD);
    if (!strcmp(name, "reduce_scatter"))
        return dt_reduce_scatter(from, to, n, side->dtype, SUM, WORLD);
    if (!strcmp(name, "alltoall"))
        return dt_alltoall(from, to, n, side->dtype, WORLD);
    if (!strcmp(name, "gather"))
        return dt_gather(from, to, n, side->dtype, side->root, WORLD);
    if (!strcmp(name, "scatter"))
        return dt_scatter(from, to, n, side->dtype, side->root, WORLD);
    if (!strcmp(name, "recv"))
        return dt_recv(to, n, side->dtype, 0, WORLD);
    if (!strcmp(name, "send") && dt_rank() == 0)
        return dt_send(from, n, side->dtype, dt_size() - 1, WORLD);
    return dt_barrier(WORLD);
}

static void *room(const struct side *side, bool many)
{
    size_t blocks = many ? (size_t)dt_size() : 1;
    size_t bytes = blocks * side->count * dt_dtype_size(side->dtype);
    void *ptr = NULL;
    if (strcmp(side->name, "shared") != 0)
        return calloc(1, bytes + 1);
    return dt_mem_alloc(bytes, &ptr) == DT_SUCCESS ? ptr : NULL;
}

/* disagree NUMBER, until there are no more: 3. Whether it is found out or not,
 * all ranks come to their end. */
void mode_disagree(int argc, char **argv)
{
    size_t number = argc ? strtoul(argv[0], NULL, 10) : DISPUTES;
    if (number >= DISPUTES)
        exit(3);
    const struct side *side =
        odd() ? &disputes[number].odd : &disputes[number].most;
    const char *name = side->name;
    bool gives = !strcmp(name, "reduce_scatter") || !strcmp(name, "scatter");
    bool takes = !strcmp(name, "allgather") || !strcmp(name, "gather");
    bool both = !strcmp(name, "alltoall");
    void *from = room(side, gives || both), *to = room(side, takes || both);
    dt_result_t rc = call(side, from, to);
    expect(rc == DT_SUCCESS || rc == DT_ERR_PROC_FAILED ||
               rc == DT_ERR_TIMED_OUT,
           "dispute %zu: result %d", number, rc);
    expect(rc == DT_SUCCESS || dt_last_error()[0], "no words");
    rc = dt_finalize();
    expect(rc == DT_SUCCESS || rc == DT_ERR_PROC_FAILED ||
               rc == DT_ERR_TIMED_OUT,
           "dispute %zu: finalize: %d", number, rc);
    if (strcmp(name, "shared") != 0) {
        free(from);
        free(to);
    }
}
