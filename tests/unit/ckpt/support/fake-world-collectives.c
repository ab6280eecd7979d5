/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* fake-world-collectives.c - the collectives of a pretended job. */
#include <stdlib.h>
#include <string.h>

#include "fake-world-place.h"

/* bytes of each rank, in order. */
static void take_all(struct dt_comm *comm, char *to, size_t bytes)
{
    for (int r = 0; r < comm->place->size; r++, to += bytes)
        if (to != comm->place->post[r])
            memcpy(to, comm->place->post[r], bytes);
}

dt_result_t dt_allgather(const void *sendbuf, void *recvbuf, size_t count,
                         dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream)
{
    (void)stream;
    bool deaf;
    size_t bytes = count * dt_dtype_size(dtype);
    if (!place_post(comm, sendbuf, &deaf))
        return place_gone();
    take_all(comm, recvbuf, bytes);
    return place_leave(comm, deaf);
}

dt_result_t dt_allgatherv(const void *sendbuf, void *recvbuf,
                          const size_t *counts, const size_t *displs,
                          dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream)
{
    (void)stream;
    bool deaf;
    size_t width = dt_dtype_size(dtype);
    if (!place_post(comm, sendbuf, &deaf))
        return place_gone();
    for (int r = 0; r < comm->place->size; r++) {
        char *to = (char *)recvbuf + displs[r] * width;
        if (counts[r] > 0 && to != comm->place->post[r])
            memcpy(to, comm->place->post[r], counts[r] * width);
    }
    return place_leave(comm, deaf);
}

dt_result_t dt_gather(const void *sendbuf, void *recvbuf, size_t count,
                      dt_dtype_t dtype, int root, dt_comm_t comm,
                      dt_stream_t stream)
{
    (void)stream;
    bool deaf;
    size_t bytes = count * dt_dtype_size(dtype);
    if (!place_post(comm, sendbuf, &deaf))
        return place_gone();
    if (comm->rank == root)
        take_all(comm, recvbuf, bytes);
    return place_leave(comm, deaf);
}

dt_result_t dt_bcast(void *buf, size_t count, dt_dtype_t dtype, int root,
                     dt_comm_t comm, dt_stream_t stream)
{
    (void)stream;
    bool deaf;
    if (!place_post(comm, buf, &deaf))
        return place_gone();
    if (comm->rank != root)
        memcpy(buf, comm->place->post[root], count * dt_dtype_size(dtype));
    return place_leave(comm, deaf);
}

struct uneven {
    const char *send;
    const size_t *counts, *displs;
};

dt_result_t dt_alltoallv(const void *sendbuf, const size_t *sendcounts,
                         const size_t *senddispls, void *recvbuf,
                         const size_t *recvcounts, const size_t *recvdispls,
                         dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream)
{
    (void)stream;
    bool deaf;
    size_t width = dt_dtype_size(dtype);
    const struct uneven mine = {sendbuf, sendcounts, senddispls};
    if (!place_post(comm, &mine, &deaf))
        return place_gone();
    for (int r = 0; r < comm->place->size; r++) {
        const struct uneven *theirs = comm->place->post[r];
        if (theirs->counts[comm->rank] != recvcounts[r])
            abort(); /* the caller's mistake */
        if (recvcounts[r] > 0)
            memcpy((char *)recvbuf + recvdispls[r] * width,
                   theirs->send + theirs->displs[comm->rank] * width,
                   recvcounts[r] * width);
    }
    return place_leave(comm, deaf);
}

dt_result_t dt_alltoall(const void *sendbuf, void *recvbuf, size_t count,
                        dt_dtype_t dtype, dt_comm_t comm, dt_stream_t stream)
{
    (void)stream;
    bool deaf;
    size_t bytes = count * dt_dtype_size(dtype);
    if (!place_post(comm, sendbuf, &deaf))
        return place_gone();
    for (int r = 0; r < comm->place->size; r++)
        memcpy((char *)recvbuf + (size_t)r * bytes,
               (const char *)comm->place->post[r] + (size_t)comm->rank * bytes,
               bytes);
    return place_leave(comm, deaf);
}

static bool is_larger(const void *a, const void *b, dt_dtype_t dtype)
{
    switch (dtype) {
    case DT_DTYPE_F64:
        return *(const double *)a > *(const double *)b;
    case DT_DTYPE_I64:
        return *(const int64_t *)a > *(const int64_t *)b;
    case DT_DTYPE_I32:
        return *(const int32_t *)a > *(const int32_t *)b;
    default:
        abort();
    }
}

/* Only what lib/ckpt needs: the largest of a few numbers. */
dt_result_t dt_allreduce(const void *sendbuf, void *recvbuf, size_t count,
                         dt_dtype_t dtype, dt_op_t op, dt_comm_t comm,
                         dt_stream_t stream)
{
    (void)stream;
    bool deaf;
    char mine[256], most[256];
    size_t width = dt_dtype_size(dtype);
    if (op != DT_OP_MAX || count * width > sizeof(mine))
        abort();
    memcpy(mine, sendbuf, count * width);
    memcpy(most, sendbuf, count * width);
    if (!place_post(comm, mine, &deaf))
        return place_gone();
    for (int r = 0; r < comm->place->size; r++)
        for (size_t at = 0; at < count * width; at += width) {
            const char *theirs = (const char *)comm->place->post[r] + at;
            if (is_larger(theirs, most + at, dtype))
                memcpy(most + at, theirs, width);
        }
    memcpy(recvbuf, most, count * width);
    return place_leave(comm, deaf);
}

dt_result_t dt_barrier(dt_comm_t comm, dt_stream_t stream)
{
    (void)stream;
    bool deaf;
    if (!place_post(comm, NULL, &deaf))
        return place_gone();
    return place_leave(comm, deaf);
}
