/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nccl.c - what goes by NCCL, which is a mock, and what becomes of it when
 * that fails. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ranks.h"
#include "mock.h"

#define F32 DT_DTYPE_F32

/* How often the mock NCCL's function was called; 0 where there is none. */
static int calls_of(const char *name)
{
    int (*calls)(const char *name) = NULL;
    void *nccl = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);
    if (nccl)
        *(void **)&calls = dlsym(nccl, "dt_mock_nccl_calls");
    int n = calls ? calls(name) : 0;
    if (nccl)
        dlclose(nccl);
    return n;
}

static int collectives(void)
{
    static const char *const names[] = {
        "ncclAllReduce", "ncclReduce", "ncclReduceScatter", "ncclBroadcast",
        "ncclAllGather", "ncclSend",   "ncclRecv"};
    int n = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        n += calls_of(names[i]);
    return n;
}

/* By what it went, as rank 0 saw it; *before: calls of NCCL so far. */
static void tell(const char *name, dt_result_t rc, dt_stream_t stream,
                 int *before)
{
    gpu_sync(stream);
    expect(rc == DT_SUCCESS, "%s: %d", name, (int)rc);
    int now = collectives();
    /* the first one also opens, with a sum */
    int first = *before < 0 && now > 0;
    if (dt_rank() == 0)
        printf("%s %s\n", name,
               now > (*before < 0 ? first : *before) ? "nccl" : "other");
    *before = now;
}

void mode_served(int argc, char **argv)
{
    enum { N = 1000 };
    size_t counts[16], at[16];
    const int n = dt_size();
    int before = -1;
    dt_comm_t world = dt_comm_world();
    dt_stream_t stream = gpu_stream();
    float *a = gpu_memory(16 * N * 4), *b = gpu_memory(16 * N * 4);
    (void)argc, (void)argv;
    for (int r = 0; r < n; r++) {
        counts[r] = N;
        at[r] = (size_t)r * N;
    }
#define TELL(name, ...) tell(name, dt_##__VA_ARGS__, stream, &before)
    put_floats(a, N, 0);
    TELL("sum", allreduce(a, b, N, F32, DT_OP_SUM, world, stream));
    expect_sum(b, N, 0, "sum");
    TELL("avg", allreduce(a, b, N, F32, DT_OP_AVG, world, stream));
    TELL("min", allreduce(a, b, N, F32, DT_OP_MIN, world, stream));
    TELL("int min", allreduce(a, b, N, DT_DTYPE_I32, DT_OP_MIN, world, stream));
    TELL("int avg", allreduce(a, b, N, DT_DTYPE_I32, DT_OP_AVG, world, stream));
    TELL("f8", allreduce(a, b, N, DT_DTYPE_F8E4M3, DT_OP_SUM, world, stream));
    TELL("scaled",
         allreduce_scaled(a, b, N, F32, DT_OP_SUM, 2, 1, world, stream));
    TELL("reduce", reduce(a, b, N, F32, DT_OP_SUM, 0, world, stream));
    TELL("bcast", bcast(b, N, F32, 0, world, stream));
    TELL("allgather", allgather(a, b, N, F32, world, stream));
    TELL("allgatherv", allgatherv(a, b, counts, at, F32, world, stream));
    TELL("reduce_scatter",
         reduce_scatter(a, b, N, F32, DT_OP_SUM, world, stream));
    TELL("reduce_scatterv",
         reduce_scatterv(a, b, counts, F32, DT_OP_SUM, world, stream));
    TELL("alltoall", alltoall(a, b, N, F32, world, stream));
    TELL("alltoallv",
         alltoallv(a, counts, at, b, counts, at, F32, world, stream));
    TELL("gather", gather(a, b, N, F32, 0, world, stream));
    TELL("scatter", scatter(a, b, N, F32, 0, world, stream));
    TELL("barrier", barrier(world, stream));
    if (dt_rank() == 0)
        TELL("message", send(a, N, F32, 1, world, stream));
    if (dt_rank() == 1)
        TELL("message", recv(b, N, F32, 0, world, stream));
#undef TELL
}

/* fails RESULT WORDS ABORTS [kill]: steps until that; then NCCL has been
 * aborted so often. kill: the last rank dies. */
void mode_fails(int argc, char **argv)
{
    enum { COUNT = 100000 };
    dt_stream_t stream = gpu_stream();
    float *a = gpu_memory(COUNT * 4);
    dt_result_t rc = DT_SUCCESS;
    if (argc < 3)
        exit(64);
    long want = strtol(argv[0], NULL, 10);
    for (int k = 0; rc == DT_SUCCESS && k < 100000; k++) {
        dt_request_t request = NULL;
        if (argc > 3 && k == 5 && dt_rank() == dt_size() - 1)
            raise(SIGKILL);
        rc = dt_iallreduce(a, a, COUNT, F32, DT_OP_SUM, dt_comm_world(), stream,
                           &request);
        if (rc == DT_SUCCESS)
            rc = dt_wait(&request);
    }
    expect(rc == want, "result %d, not %ld", rc, want);
    expect(strstr(dt_last_error(), argv[1]) != NULL, "words: expected \"%s\"",
           argv[1]);
    gpu_sync(stream); /* which goes on */
    expect(dt_allreduce(a, a, COUNT, F32, DT_OP_SUM, dt_comm_world(), stream) ==
               rc,
           "not for ever");
    expect(dt_finalize() == DT_SUCCESS, "finalize after");
    expect(calls_of("ncclCommAbort") == atoi(argv[2]), "%d aborts, not %s",
           calls_of("ncclCommAbort"), argv[2]);
}

/* Tell, in a file of this folder, that this rank has its result; rank 0 waits
 * until all others have. dt-fork sees to the end. */
static void meet_in(const char *folder)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%d", folder, dt_rank());
    if (dt_rank() != 0) {
        FILE *file = fopen(path, "w");
        expect(file && !fclose(file), "%s", path);
        return;
    }
    for (int r = 1; r < dt_size(); r++) {
        snprintf(path, sizeof(path), "%s/%d", folder, r);
        while (access(path, F_OK))
            usleep(1000);
    }
}

/* dead MINE THEIRS FOLDER: the program's own work hangs on rank 0's GPU, which
 * has died; the others only wait. */
void mode_dead(int argc, char **argv)
{
    dt_stream_t stream = gpu_stream();
    float *a = gpu_memory(4000);
    dt_request_t request = NULL;
    if (argc != 3)
        exit(64);
    long want = strtol(argv[dt_rank() != 0], NULL, 10);
    expect(dt_allreduce(a, a, 1000, F32, DT_OP_SUM, dt_comm_world(), stream) ==
               DT_SUCCESS,
           "the first");
    gpu_sync(stream);
    if (dt_rank() == 0)
        gate_shut(stream);
    dt_result_t rc = dt_iallreduce(a, a, 1000, F32, DT_OP_SUM, dt_comm_world(),
                                   stream, &request);
    if (rc == DT_SUCCESS)
        rc = dt_wait(&request);
    expect(rc == want, "result %d, not %ld", rc, want);
    meet_in(argv[2]);
    if (dt_rank() == 0)
        gate_open();
    expect(dt_finalize() == DT_SUCCESS, "finalize after");
}
