/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* misuse.c - every call given what it must refuse, and in which words. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

/* A call that must fail as wanted, in words that contain these. */
static void refused(dt_result_t rc, dt_result_t want, const char *words)
{
    expect(rc == want, "result %d instead of %d (%s)", rc, want, words);
    expect(strstr(dt_last_error(), words), "words: wanted %s", words);
    expect(!strchr(dt_last_error(), '\n'), "one line");
}
#define INVALID(call, words) refused(call, DT_ERR_INVALID_ARG, words)

#define F32 DT_DTYPE_F32
#define SUM DT_OP_SUM

static float buf[64], other[64];
static size_t counts[64], displs[64];

void misuse_before_init(void)
{
    void *ptr;
    dt_comm_t comm;
    expect(dt_rank() == DT_ERR_NOT_INITIALIZED, "dt_rank before");
    expect(dt_comm_rank(NULL) == DT_ERR_NOT_INITIALIZED, "dt_comm_rank before");
    expect(dt_comm_size(NULL) == DT_ERR_NOT_INITIALIZED, "dt_comm_size before");
    expect(!dt_comm_world(), "dt_comm_world before");
    refused(dt_allreduce(buf, buf, 1, F32, SUM, WORLD), DT_ERR_NOT_INITIALIZED,
            "between dt_init and");
    refused(dt_barrier(WORLD), DT_ERR_NOT_INITIALIZED, "dt_barrier: ");
    refused(dt_send(buf, 1, F32, 0, WORLD), DT_ERR_NOT_INITIALIZED, "dt_send");
    refused(dt_comm_split(dt_comm_world(), 0, 0, &comm), DT_ERR_NOT_INITIALIZED,
            "dt_comm_split");
    refused(dt_mem_alloc(1, &ptr), DT_ERR_NOT_INITIALIZED, "dt_mem_alloc");
    refused(dt_mem_register(buf, 1), DT_ERR_NOT_INITIALIZED, "dt_mem_register");
    refused(dt_mem_deregister(buf), DT_ERR_NOT_INITIALIZED, "dt_mem_dereg");
    refused(dt_mem_free(buf), DT_ERR_NOT_INITIALIZED, "dt_mem_free");
    refused(dt_finalize(), DT_ERR_NOT_INITIALIZED, "no dt_init");
    expect(dt_comm_destroy(NULL) == DT_SUCCESS, "destroy of NULL");
    expect(dt_mem_free(NULL) == DT_SUCCESS, "free of NULL");
}

/* What all collectives look at alike. */
static void common(void)
{
    dt_request_t request;
    INVALID(dt_init(), "called again");
    INVALID(dt_allreduce(buf, buf, 4, (dt_dtype_t)99, SUM, WORLD),
            "99 is no element type");
    INVALID(dt_bcast(buf, 4, (dt_dtype_t)-1, 0, WORLD),
            "-1 is no element type");
    INVALID(dt_reduce(buf, other, 4, F32, (dt_op_t)17, 0, WORLD),
            "17 is no reduction");
    INVALID(dt_allreduce(buf, other, SIZE_MAX / 2, F32, SUM, WORLD),
            "do not fit in memory");
    INVALID(dt_allgather(buf, other, SIZE_MAX / 4 + 1, DT_DTYPE_I8, WORLD),
            "do not fit in memory");
    INVALID(dt_alltoall(buf, other, (size_t)PTRDIFF_MAX / 4, F32, WORLD),
            "do not fit in memory");
    INVALID(dt_bcast(buf, 1, F32, dt_size(), WORLD), "expected a rank from 0");
    INVALID(dt_reduce(buf, buf, 1, F32, SUM, -1, WORLD), "root -1");
    INVALID(dt_gather(buf, other, 1, F32, 1 << 20, WORLD), "root 1048576");
    INVALID(dt_scatter(buf, other, 0, F32, -7, WORLD), "root -7");
    refused(dt_allreduce(buf, buf, 1, F32, SUM, dt_comm_world(), buf),
            DT_ERR_UNSUPPORTED, "DT_STREAM_NONE");
    refused(dt_barrier(dt_comm_world(), buf), DT_ERR_UNSUPPORTED,
            "DT_STREAM_NONE");
    INVALID(dt_iallreduce(buf, buf, 1, F32, SUM, WORLD, NULL),
            "request is NULL");
    INVALID(dt_ibarrier(WORLD, NULL), "request is NULL");
    request = (dt_request_t)(void *)buf;
    INVALID(dt_ibcast(buf, 1, F32, -1, WORLD, &request), "root");
    expect(request == (dt_request_t)(void *)buf, "request is left alone");
}

static void scaled(void)
{
    INVALID(dt_allreduce_scaled(buf, buf, 4, F32, DT_OP_MAX, 1, 1, WORLD),
            "max of f32 cannot be scaled");
    INVALID(dt_allreduce_scaled(buf, buf, 4, DT_DTYPE_I32, SUM, 1, 1, WORLD),
            "sum of i32 cannot be scaled");
    INVALID(dt_allreduce_scaled(buf, buf, 4, F32, DT_OP_PROD, 1, 1, WORLD),
            "prod of f32 cannot be scaled");
    INVALID(
        dt_allreduce_scaled(buf, buf, 4, F32, DT_OP_AVG, INFINITY, 1, WORLD),
        "expected finite");
    INVALID(dt_allreduce_scaled(buf, buf, 4, F32, SUM, 1, NAN, WORLD),
            "expected finite");
}

static void buffers(void)
{
    size_t mine = (size_t)dt_rank();
    INVALID(dt_allreduce(buf, buf + 1, 4, F32, SUM, WORLD), "overlap");
    INVALID(dt_allreduce(buf + 3, buf, 4, F32, SUM, WORLD), "overlap");
    INVALID(dt_allreduce(buf, NULL, 4, F32, SUM, WORLD), "recvbuf is NULL");
    INVALID(dt_allreduce(NULL, buf, 4, F32, SUM, WORLD), "sendbuf is NULL");
    INVALID(dt_bcast(NULL, 4, F32, 0, WORLD), "buf is NULL");
    INVALID(dt_allgather(buf + 2 * mine + 1, buf, 2, F32, WORLD),
            "dt_allgather: sendbuf and recvbuf overlap");
    INVALID(dt_reduce_scatter(buf, buf + 4 * mine + 1, 4, F32, SUM, WORLD),
            "overlap");
    INVALID(dt_alltoall(buf, buf, 4, F32, WORLD), "overlap: pass memory apart");
    INVALID(dt_reduce(NULL, buf, 4, F32, SUM, 0, WORLD), "sendbuf is NULL");
    INVALID(dt_gather(buf, NULL, 4, F32, dt_rank(), WORLD), "recvbuf is NULL");
    INVALID(dt_gather(buf + 1, buf, 4, F32, dt_rank(), WORLD), "overlap");
    INVALID(dt_scatter(NULL, buf, 4, F32, dt_rank(), WORLD), "sendbuf is NULL");
    INVALID(dt_scatter(NULL, NULL, 4, F32, (dt_rank() + 1) % dt_size(), WORLD),
            "buf is NULL");
}

static void reset(size_t n)
{
    for (size_t r = 0; r < 64; r++) {
        counts[r] = n;
        displs[r] = n * r;
    }
}

static void uneven(void)
{
    size_t mine = (size_t)dt_rank();
    reset(4);
    INVALID(dt_allgatherv(buf, other, NULL, displs, F32, WORLD), "is NULL");
    INVALID(dt_allgatherv(buf, other, counts, NULL, F32, WORLD), "is NULL");
    INVALID(dt_reduce_scatterv(buf, other, NULL, F32, SUM, WORLD), "is NULL");
    INVALID(dt_alltoallv(buf, counts, displs, other, counts, NULL, F32, WORLD),
            "is NULL");
    displs[1] = 3;
    INVALID(dt_allgatherv(buf, other, counts, displs, F32, WORLD),
            "the blocks of ranks 0 and 1 overlap");
    INVALID(
        dt_alltoallv(buf, counts, counts, other, counts, displs, F32, WORLD),
        "overlap in the receive buffer: look at counts and recvdispls");
    reset(4);
    INVALID(dt_allgatherv(buf + 4 * mine + 1, buf, counts, displs, F32, WORLD),
            "overlap");
    counts[mine] = 5;
    size_t three[64];
    for (int r = 0; r < 64; r++)
        three[r] = 3;
    INVALID(dt_alltoallv(buf, counts, displs, other, three, displs, F32, WORLD),
            "sends 5 elements to itself, but expects 3");
    reset(4);
    counts[0] = SIZE_MAX / 4;
    INVALID(dt_allgatherv(buf, other, counts, displs, F32, WORLD),
            "do not fit in memory");
    INVALID(dt_reduce_scatterv(buf, other, counts, F32, SUM, WORLD),
            "do not fit in memory");
    reset(4);
    displs[1] = SIZE_MAX;
    INVALID(
        dt_alltoallv(buf, counts, displs, other, counts, counts, F32, WORLD),
        "do not fit in memory");
}

static void p2p_and_groups(void)
{
    dt_comm_t comm = NULL;
    INVALID(dt_send(buf, 1, F32, dt_rank(), WORLD), "this rank itself");
    INVALID(dt_recv(buf, 1, F32, dt_rank(), WORLD), "this rank itself");
    INVALID(dt_send(buf, 1, F32, dt_size(), WORLD), "peer");
    INVALID(dt_send(NULL, 1, F32, (dt_rank() + 1) % dt_size(), WORLD), "NULL");
    INVALID(dt_recv(NULL, 1, F32, (dt_rank() + 1) % dt_size(), WORLD), "NULL");
    INVALID(dt_group_end(), "no dt_group_start");
    expect(dt_group_start() == DT_SUCCESS, "group");
    INVALID(dt_comm_split(dt_comm_world(), 0, 0, &comm), "end the group first");
    INVALID(dt_finalize(), "end the group first");
    INVALID(dt_bcast(buf, 1, F32, -1, WORLD), "root");
    expect(dt_group_end() == DT_SUCCESS, "an empty group");
}

static void comms(void)
{
    dt_comm_t comm = NULL;
    INVALID(dt_comm_split(dt_comm_world(), -2, 0, &comm), "color -2");
    INVALID(dt_comm_split(dt_comm_world(), 0, 0, NULL), "newcomm is NULL");
    INVALID(dt_comm_destroy(dt_comm_world()), "dt_finalize destroys");
    expect(!comm, "outputs only on success");
    expect(dt_comm_split(dt_comm_world(), 0, 0, &comm) == DT_SUCCESS, "split");
    dt_group_start();
    INVALID(dt_comm_destroy(comm), "end the group first");
    dt_group_end();
    expect(dt_comm_destroy(comm) == DT_SUCCESS, "destroy");
}

static void memory(void)
{
    void *ptr = buf;
    INVALID(dt_mem_alloc(0, &ptr), "0 bytes");
    INVALID(dt_mem_alloc(1, NULL), "ptr is NULL");
    refused(dt_mem_alloc(SIZE_MAX / 2 + 2, &ptr), DT_ERR_NO_MEMORY,
            "no memory");
    refused(dt_mem_alloc((size_t)1 << 60, &ptr), DT_ERR_NO_MEMORY, "");
    expect(ptr == buf, "outputs only on success");
    INVALID(dt_mem_free(buf), "did not come from dt_mem_alloc");
    expect(dt_mem_alloc(5000, &ptr) == DT_SUCCESS && ptr &&
               (uintptr_t)ptr % 4096 == 0,
           "alloc");
    bool zero = true;
    for (size_t i = 0; i < 5000; i++)
        zero &= ((char *)ptr)[i] == 0;
    expect(zero, "memory is zeroed");
    INVALID(dt_mem_free((char *)ptr + 1), "did not come from dt_mem_alloc");
    INVALID(dt_mem_deregister(ptr), "not the start of registered memory");
    expect(dt_mem_free(ptr) == DT_SUCCESS, "free");
    INVALID(dt_mem_free(ptr), "was freed already");
    INVALID(dt_mem_register(NULL, 5), "expected memory");
    INVALID(dt_mem_register(buf, 0), "expected memory");
    INVALID(dt_mem_register(buf, SIZE_MAX), "expected memory");
    expect(dt_mem_register(buf, 100) == DT_SUCCESS, "register");
    INVALID(dt_mem_register(buf, 100), "registered already");
    INVALID(dt_mem_register((char *)buf + 99, 10), "registered already");
    expect(dt_mem_register((char *)buf + 100, 10) == DT_SUCCESS, "beside it");
    INVALID(dt_mem_deregister((char *)buf + 1), "not the start");
    expect(dt_mem_deregister(buf) == DT_SUCCESS, "deregister");
    INVALID(dt_mem_deregister(buf), "not the start");
    expect(dt_mem_deregister((char *)buf + 100) == DT_SUCCESS, "deregister");
    INVALID(dt_mem_deregister(NULL), "not the start");
}

/* What looks odd, but is right. */
static void allowed(void)
{
    reset(0);
    expect(dt_allreduce(NULL, NULL, 0, F32, SUM, WORLD) == DT_SUCCESS, "zero");
    expect(dt_alltoall(NULL, NULL, 0, F32, WORLD) == DT_SUCCESS, "zero");
    expect(dt_send(NULL, 0, F32, (dt_rank() + 1) % dt_size(), WORLD) ==
               DT_SUCCESS,
           "zero to another");
    expect(dt_allgatherv(NULL, NULL, counts, displs, F32, WORLD) == DT_SUCCESS,
           "all counts zero");
    expect(dt_reduce_scatterv(NULL, NULL, counts, F32, SUM, WORLD) ==
               DT_SUCCESS,
           "all counts zero");
    expect(dt_alltoallv(NULL, counts, displs, NULL, counts, displs, F32,
                        WORLD) == DT_SUCCESS,
           "all counts zero");
    displs[0] = SIZE_MAX; /* of a block of nothing */
    expect(dt_allgatherv(NULL, NULL, counts, displs, F32, WORLD) == DT_SUCCESS,
           "the place of nothing");
    expect(dt_reduce(buf, dt_rank() ? NULL : other, 8, F32, SUM, 0, WORLD) ==
               DT_SUCCESS,
           "recvbuf only at the root");
    expect(dt_reduce(buf, dt_rank() ? buf + 1 : other, 8, F32, SUM, 0, WORLD) ==
               DT_SUCCESS,
           "recvbuf is ignored elsewhere");
    float x = 2, sum = 0;
    expect(dt_allreduce(&x, &sum, 1, F32, SUM, WORLD) == DT_SUCCESS &&
               sum == 2.0f * (float)dt_size(),
           "it still works");
}

void mode_misuse(int argc, char **argv)
{
    (void)argc, (void)argv;
    common();
    scaled();
    buffers();
    uneven();
    p2p_and_groups();
    comms();
    memory();
    allowed();
}
