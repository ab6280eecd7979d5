/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* modes.c - streams: their order, what waits for what, and what does not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"
#include "mock.h"

#define SUM DT_DTYPE_F32, DT_OP_SUM

/* All calls return while the stream stands still, so none has waited for it;
 * then each step takes what the copies before it have left. */
void mode_order(int argc, char **argv)
{
    enum { STEPS = 6 };
    const size_t count = argc ? strtoul(argv[0], NULL, 10) : 500000;
    dt_stream_t stream = gpu_stream();
    float *from[STEPS], *to[STEPS];
    float *buf = gpu_memory(count * 4), *out = gpu_memory(count * 4);
    dt_request_t request = NULL;
    expect(dt_allreduce(buf, buf, count, SUM, dt_comm_world(), stream) ==
               DT_SUCCESS,
           "the first");
    gpu_sync(stream);
    gate_shut(stream);
    for (int k = 0; k < STEPS; k++) {
        dt_result_t rc;
        from[k] = gpu_memory(count * 4);
        to[k] = gpu_memory(count * 4);
        put_floats(from[k], count, k);
        gpu_copy(buf, from[k], count * 4, stream);
        if (k % 3 == 0)
            rc = dt_allreduce(buf, out, count, SUM, dt_comm_world(), stream);
        else
            rc = dt_iallreduce(buf, out, count, SUM, dt_comm_world(), stream,
                               k % 3 == 1 ? NULL : &request);
        expect(rc == DT_SUCCESS, "step %d", k);
        expect(k % 3 != 2 || dt_test(&request) == DT_IN_PROGRESS, "too early");
        gpu_copy(to[k], out, count * 4, stream);
        if (k == 2)
            expect(dt_barrier(dt_comm_world(), stream) == DT_SUCCESS,
                   "barrier");
        if (k == 2) /* the last one is left open */
            request = NULL;
    }
    gate_open();
    expect(dt_wait(&request) == DT_SUCCESS, "wait");
    expect_sum(out, count, STEPS - 1, "the last, after dt_wait");
    gpu_sync(stream);
    for (int k = 0; k < STEPS; k++)
        expect_sum(to[k], count, k, "order");
}

/* Two communicators on two streams, in another order on every second rank. */
void mode_two(int argc, char **argv)
{
    enum { STEPS = 5, COUNT = 700000 };
    dt_comm_t comm[2] = {dt_comm_world(), NULL};
    dt_stream_t stream[2] = {gpu_stream(), gpu_stream()};
    float *buf[2];
    (void)argc, (void)argv;
    expect(dt_comm_split(comm[0], 0, 0, &comm[1]) == DT_SUCCESS, "split");
    for (int c = 0; c < 2; c++) {
        buf[c] = gpu_memory(COUNT * 4);
        expect(dt_allreduce(buf[c], buf[c], 1, SUM, comm[c], stream[c]) ==
                   DT_SUCCESS,
               "the first");
        gpu_sync(stream[c]);
    }
    for (int k = 0; k < STEPS; k++) {
        for (int c = 0; c < 2; c++)
            put_floats(buf[c], COUNT, k * 2 + c);
        gate_shut(stream[0]); /* lest luck decides */
        for (int i = 0; i < 2; i++) {
            int c = (i + dt_rank()) % 2;
            expect(dt_allreduce(buf[c], buf[c], COUNT, SUM, comm[c],
                                stream[c]) == DT_SUCCESS,
                   "step %d", k);
        }
        gpu_sync(stream[1]);
        expect_sum(buf[1], COUNT, k * 2 + 1, "the second stream");
        gate_open();
        gpu_sync(stream[0]);
        expect_sum(buf[0], COUNT, k * 2, "the first stream");
    }
    expect(dt_comm_destroy(comm[1]) == DT_SUCCESS, "destroy");
}

/* Elements of call k: few are posted to GPUs of the same node. */
static size_t some_count(int k)
{
    return k % 50 == 7 ? 400000 : k % 3 ? 3000 : 30;
}

/* Far more than there are slots, waited for backwards; and with host
 * collectives between them. */
void mode_many(int argc, char **argv)
{
    enum { N = 150 };
    dt_stream_t stream[3] = {DT_STREAM_NONE, gpu_stream(), gpu_stream()};
    dt_request_t request[N];
    float *buf[N], host[10];
    (void)argc, (void)argv;
    for (int k = 0; k < N; k++) {
        const size_t count = some_count(k);
        buf[k] = gpu_memory(count * 4);
        put_floats(buf[k], count, k);
        expect(dt_iallreduce(buf[k], buf[k], count, SUM, dt_comm_world(),
                             stream[k % 3], &request[k]) == DT_SUCCESS,
               "start %d", k);
        if (k % 10)
            continue;
        put_floats(host, 10, k);
        expect(dt_allreduce(host, host, 10, SUM, WORLD) == DT_SUCCESS,
               "host %d", k);
        expect_sum(host, 10, k, "host");
    }
    for (int k = N - 1; k >= 0; k--) {
        while (k % 2 && dt_test(&request[k]) == DT_IN_PROGRESS)
            ;
        expect(dt_wait(&request[k]) == DT_SUCCESS, "wait %d", k);
        expect_sum(buf[k], some_count(k), k, "many");
    }
}

/* ---- messages ---- */

/* len bytes from every rank to every other, at once. */
static void everybody(size_t len, dt_stream_t stream)
{
    int n = dt_size(), me = dt_rank();
    char *out = gpu_memory(len * (size_t)n), *in = gpu_memory(len * (size_t)n);
    char *want = malloc(len);
    dt_group_start();
    for (int i = 1; i < n; i++) {
        int to = (me + i) % n, from = to; /* which is busy with others */
        value_fill(out + len * (size_t)to, len, (unsigned)(me * n + to));
        expect(dt_send(out + len * (size_t)to, len, DT_DTYPE_U8, to,
                       dt_comm_world(), stream) == DT_SUCCESS,
               "send");
        expect(dt_recv(in + len * (size_t)from, len, DT_DTYPE_U8, from,
                       dt_comm_world(), stream) == DT_SUCCESS,
               "receive");
    }
    expect(dt_group_end() == DT_SUCCESS, "group");
    if (stream)
        gpu_sync(stream);
    for (int r = 0; r < n; r++) {
        if (r == me)
            continue;
        value_fill(want, len, (unsigned)(r * n + me));
        expect(!memcmp(in + len * (size_t)r, want, len),
               "%zu bytes from rank %d are wrong", len, r);
    }
    free(want);
}

/* In order, though the first is long; to a neighbour, requests of both ends
 * open together. */
static void in_a_ring(void)
{
    enum { N = 4 };
    static const size_t len[N] = {6 * MIB + 5, 10, MIB, 1};
    int n = dt_size(), to = (dt_rank() + 1) % n, from = (dt_rank() + n - 1) % n;
    dt_request_t request[2 * N];
    char *out[N], *in[N], *want = malloc(8 * MIB);
    for (int k = 0; k < N; k++) {
        out[k] = gpu_memory(len[k]);
        in[k] = gpu_memory(len[k]);
        value_fill(out[k], len[k], (unsigned)(dt_rank() * N + k));
        expect(dt_isend(out[k], len[k], DT_DTYPE_U8, to, WORLD,
                        &request[2 * k]) == DT_SUCCESS,
               "isend");
    }
    for (int k = 0; k < N; k++)
        expect(dt_irecv(in[k], len[k], DT_DTYPE_U8, from, WORLD,
                        &request[2 * k + 1]) == DT_SUCCESS,
               "irecv");
    for (int k = 2 * N - 1; k >= 0; k--)
        expect(dt_wait(&request[k]) == DT_SUCCESS, "wait");
    for (int k = 0; k < N; k++) {
        value_fill(want, len[k], (unsigned)(from * N + k));
        expect(!memcmp(in[k], want, len[k]), "message %d is wrong", k);
    }
    free(want);
}

void mode_messages(int argc, char **argv)
{
    (void)argc, (void)argv;
    /* before any collective, and of two ranks only */
    if (dt_rank() == 0)
        expect(dt_send(gpu_memory(100), 100, DT_DTYPE_U8, 1, WORLD) ==
                   DT_SUCCESS,
               "the first send");
    if (dt_rank() == 1)
        expect(dt_recv(gpu_memory(100), 100, DT_DTYPE_U8, 0, WORLD) ==
                   DT_SUCCESS,
               "the first receive");
    in_a_ring();
    everybody(3, gpu_stream());
    everybody(9 * MIB, gpu_stream());
    everybody(9 * MIB, DT_STREAM_NONE);
}

/* ---- what a step costs ---- */

/* Nothing that waits, allocates or makes anything. */
static int calls(void)
{
    static const char *const names[] = {
        "cuStreamSynchronize", "cuMemAlloc_v2",
        "cuMemFree_v2",        "cuMemHostAlloc",
        "cuMemFreeHost",       "cuStreamCreateWithPriority",
        "cuStreamDestroy_v2",  "cuDevicePrimaryCtxRetain",
    };
    int n = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        n += dt_mock_calls(names[i]);
    return n;
}

void mode_steady(int argc, char **argv)
{
    enum { COUNT = 400000 };
    dt_stream_t stream = gpu_stream();
    float *buf = gpu_memory(COUNT * 4), *all = gpu_memory(COUNT * 16);
    int before = 0;
    (void)argc, (void)argv;
    for (int k = 0; k < 20; k++) {
        dt_request_t request;
        if (k == 3)
            before = calls();
        expect(dt_allreduce(buf, buf, COUNT, SUM, dt_comm_world(), stream) ==
                   DT_SUCCESS,
               "allreduce");
        expect(dt_allgather(buf, all, COUNT, DT_DTYPE_F32, dt_comm_world(),
                            stream) == DT_SUCCESS,
               "allgather");
        expect(dt_ibcast(buf, COUNT, DT_DTYPE_F32, 0, WORLD, &request) ==
                       DT_SUCCESS &&
                   dt_wait(&request) == DT_SUCCESS,
               "bcast");
    }
    expect(calls() == before, "%d calls of the driver that wait or allocate",
           calls() - before);
    gpu_sync(stream);
}

/* ---- the end, with things under way ---- */

void mode_end(int argc, char **argv)
{
    enum { COUNT = 800000 };
    dt_stream_t stream = gpu_stream();
    dt_request_t open = NULL;
    float *a = gpu_memory(COUNT * 4), *b = gpu_memory(COUNT * 4);
    dt_comm_t comm, other;
    (void)argc, (void)argv;
    put_floats(a, COUNT, 1);
    put_floats(b, COUNT, 2);
    expect(dt_comm_split(dt_comm_world(), 0, 0, &comm) == DT_SUCCESS, "split");
    expect(dt_iallreduce(a, a, COUNT, SUM, comm, stream, NULL) == DT_SUCCESS,
           "a");
    expect(dt_comm_split(comm, 0, 0, &other) == DT_SUCCESS, "split again");
    expect(dt_comm_destroy(comm) == DT_SUCCESS, "destroy");
    expect(dt_iallreduce(b, b, COUNT, SUM, other, stream, &open) == DT_SUCCESS,
           "b");
    expect(dt_iallreduce(a, a, 10, DT_DTYPE_F32, DT_OP_MAX, WORLD, &open) ==
               DT_SUCCESS,
           "c");
    expect(dt_finalize() == DT_SUCCESS, "finalize");
    gpu_sync(stream);
}
