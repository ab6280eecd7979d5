/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* coll-ranks.c - what one rank of coll.t does: `coll-ranks MODE`, under
 * dt-fork or srun. Exits 0 if this rank saw what it should; rank 0 of mode
 * "all" prints a digest of sums of random numbers, which must not change from
 * run to run. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dt.h"

static int wrong; /* facts that did not hold on this rank */

static void expect(bool cond, const char *what, size_t count, int dtype, int op)
{
    if (cond)
        return;
    if (wrong++ < 5)
        fprintf(stderr, "rank %d: %s, count %zu dtype %d op %d: %s\n",
                dt_rank(), what, count, dtype, op, dt_last_error());
}

static const dt_dtype_t dtypes[] = {DT_DTYPE_I32, DT_DTYPE_I64, DT_DTYPE_BF16,
                                    DT_DTYPE_F32, DT_DTYPE_F64};
#define NDTYPES (sizeof(dtypes) / sizeof(dtypes[0]))

/* Small whole numbers: their sums are exact in every type, bf16 included. */
static int input(int rank, size_t i)
{
    return ((int)(i % 5) - 2) * (rank % 3 + 1);
}

static void put(void *buf, size_t i, dt_dtype_t dtype, double value)
{
    switch (dtype) {
    case DT_DTYPE_I32:
        ((int32_t *)buf)[i] = (int32_t)value;
        break;
    case DT_DTYPE_I64:
        ((int64_t *)buf)[i] = (int64_t)value;
        break;
    case DT_DTYPE_F64:
        ((double *)buf)[i] = value;
        break;
    case DT_DTYPE_F32:
        ((float *)buf)[i] = (float)value;
        break;
    default: { /* bf16: to nearest even */
        float f = (float)value;
        uint32_t bits;
        memcpy(&bits, &f, 4);
        bits += 0x7fff + (bits >> 16 & 1);
        ((uint16_t *)buf)[i] = (uint16_t)(bits >> 16);
    }
    }
}

/* What element i must be, computed the slow way. */
static double expected(dt_op_t op, dt_dtype_t dtype, size_t i)
{
    double value = input(0, i);
    for (int r = 1; r < dt_size(); r++) {
        double next = input(r, i);
        if (op == DT_OP_MIN)
            value = next < value ? next : value;
        else if (op == DT_OP_MAX)
            value = next > value ? next : value;
        else
            value += next;
    }
    if (op == DT_OP_AVG && (dtype == DT_DTYPE_I32 || dtype == DT_DTYPE_I64))
        value = (double)((int64_t)value / dt_size());
    else if (op == DT_OP_AVG && dtype == DT_DTYPE_F64)
        value = value / dt_size();
    else if (op == DT_OP_AVG)
        value = (float)value / (float)dt_size();
    return value;
}

static void allreduce(size_t count, dt_dtype_t dtype, dt_op_t op, bool in_place)
{
    size_t bytes = count * dt_dtype_size(dtype);
    char *send = malloc(bytes + 1), *recv = malloc(bytes + 1);
    char *want = malloc(bytes + 1);
    for (size_t i = 0; i < count; i++) {
        put(send, i, dtype, input(dt_rank(), i));
        put(want, i, dtype, expected(op, dtype, i));
    }
    memset(recv, 0x5a, bytes + 1);
    recv[bytes] = want[bytes] = send[bytes] = 0x77;
    char *result = in_place ? send : recv;
    dt_result_t rc = dt_allreduce(send, result, count, dtype, op,
                                  dt_comm_world(), DT_STREAM_NONE);
    expect(rc == DT_SUCCESS, "allreduce fails", count, dtype, op);
    expect(!memcmp(result, want, bytes + 1),
           in_place ? "allreduce in place" : "allreduce", count, dtype, op);
    free(send);
    free(recv);
    free(want);
}

static void bcast(size_t count, int root)
{
    int64_t *buf = malloc(count * 8 + 8);
    for (size_t i = 0; i < count; i++)
        buf[i] = dt_rank() == root ? (int64_t)(i * 7 + (size_t)root) : -1;
    dt_result_t rc = dt_bcast(buf, count, DT_DTYPE_I64, root, dt_comm_world(),
                              DT_STREAM_NONE);
    bool same = rc == DT_SUCCESS;
    for (size_t i = 0; i < count; i++)
        same &= buf[i] == (int64_t)(i * 7 + (size_t)root);
    expect(same, "bcast", count, DT_DTYPE_I64, root);
    free(buf);
}

static void allgather(size_t count, bool in_place)
{
    size_t size = (size_t)dt_size(), rank = (size_t)dt_rank();
    int32_t *all = malloc(size * count * 4 + 4), *mine = malloc(count * 4 + 4);
    int32_t *send = in_place ? all + rank * count : mine;
    memset(all, 0x5a, size * count * 4);
    for (size_t i = 0; i < count; i++)
        send[i] = (int32_t)(rank * 1000 + i);
    dt_result_t rc = dt_allgather(send, all, count, DT_DTYPE_I32,
                                  dt_comm_world(), DT_STREAM_NONE);
    bool same = rc == DT_SUCCESS;
    for (size_t r = 0; r < size; r++)
        for (size_t i = 0; i < count; i++)
            same &= all[r * count + i] == (int32_t)(r * 1000 + i);
    expect(same, "allgather", count, DT_DTYPE_I32, in_place);
    free(all);
    free(mine);
}

/* Many at once, of one shape and of several, waited for in any order. */
static void requests(void)
{
    enum { N = 12 };
    static float in[N][5000], out[N][5000];
    dt_request_t request[N] = {NULL}, barrier = NULL;
    for (int k = 0; k < N; k++) {
        for (int i = 0; i < 5000; i++)
            in[k][i] = (float)(input(dt_rank(), (size_t)i) + k);
        expect(dt_iallreduce(in[k], out[k], k % 3 ? 5000 : 17, DT_DTYPE_F32,
                             DT_OP_SUM, dt_comm_world(), DT_STREAM_NONE,
                             &request[k]) == DT_SUCCESS,
               "iallreduce", 5000, DT_DTYPE_F32, 0);
    }
    expect(dt_ibarrier(dt_comm_world(), DT_STREAM_NONE, &barrier) == DT_SUCCESS,
           "ibarrier", 0, 0, 0);
    while (dt_test(&barrier) == DT_IN_PROGRESS)
        ;
    for (int k = N - 1; k >= 0; k--) {
        expect(dt_wait(&request[k]) == DT_SUCCESS && !request[k], "wait", 0, 0,
               0);
        bool same = true;
        for (size_t i = 0; i < (k % 3 ? 5000 : 17); i++)
            same &= out[k][i] == expected(DT_OP_SUM, DT_DTYPE_F32, i) +
                                     (double)(k * dt_size());
        expect(same, "outstanding iallreduce", 5000, DT_DTYPE_F32, k);
    }
}

/* Random numbers whose sum depends on the order: the same bits on all ranks,
 * and, printed, from run to run. */
static void digest(void)
{
    enum { N = 300001 };
    float *buf = malloc(N * sizeof(*buf));
    uint32_t seed = 12345u + (uint32_t)dt_rank();
    for (size_t i = 0; i < N; i++) {
        seed = seed * 1664525u + 1013904223u;
        buf[i] = (float)(int32_t)seed * 1e-6f;
    }
    uint64_t hash = 14695981039346656037u;
    for (size_t count = 100; count <= N; count = count * 3 + 1) {
        expect(dt_allreduce(buf, buf, count, DT_DTYPE_F32, DT_OP_SUM,
                            dt_comm_world(), DT_STREAM_NONE) == DT_SUCCESS,
               "allreduce of random numbers", count, 0, 0);
        for (size_t i = 0; i < count * 4; i++)
            hash = (hash ^ ((unsigned char *)buf)[i]) * 1099511628211u;
        for (size_t i = 0; i < count; i++)
            buf[i] *= 0.01f + 0.001f * (float)dt_rank();
    }
    int64_t mine = (int64_t)(hash >> 1), all[4096];
    dt_allgather(&mine, all, 1, DT_DTYPE_I64, dt_comm_world(), DT_STREAM_NONE);
    for (int r = 0; r < dt_size(); r++)
        expect(all[r] == mine, "same bits on all ranks", N, DT_DTYPE_F32, r);
    if (dt_rank() == 0)
        printf("digest %016llx\n", (unsigned long long)hash);
    free(buf);
}

static void all(void)
{
    static const size_t counts[] = {0, 1, 2, 3, 7, 64, 1001, 5000, 70003};
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
        for (size_t d = 0; d < NDTYPES; d++)
            for (int op = DT_OP_SUM; op <= DT_OP_AVG; op++)
                allreduce(counts[c], dtypes[d], (dt_op_t)op,
                          (c + d + (size_t)op) % 2);
    allreduce(3000001, DT_DTYPE_F32, DT_OP_SUM, false);
    allreduce(2000003, DT_DTYPE_F32, DT_OP_AVG, true);
    for (int root = 0; root < dt_size(); root++)
        bcast(root % 2 ? 1000 : 1, root);
    bcast(0, 0);
    bcast(1500000, dt_size() - 1);
    allgather(0, false);
    allgather(1, true);
    allgather(333, false);
    allgather(100003, true);
    requests();
    digest();
}

/* ---- misuse ---- */

static void before(void)
{
    float x = 1;
    expect(dt_rank() == DT_ERR_NOT_INITIALIZED, "dt_rank before", 0, 0, 0);
    expect(!dt_comm_world(), "dt_comm_world before", 0, 0, 0);
    expect(dt_allreduce(&x, &x, 1, DT_DTYPE_F32, DT_OP_SUM, dt_comm_world(),
                        DT_STREAM_NONE) == DT_ERR_NOT_INITIALIZED,
           "allreduce before", 0, 0, 0);
    expect(strstr(dt_last_error(), "dt_init"), "its words", 0, 0, 0);
    expect(dt_finalize() == DT_ERR_NOT_INITIALIZED, "finalize before", 0, 0, 0);
}

static void misuse(void)
{
    float buf[16] = {0};
    dt_comm_t comm = dt_comm_world();
    expect(dt_init() == DT_ERR_INVALID_ARG, "dt_init twice", 0, 0, 0);
    expect(dt_allreduce(buf, buf + 1, 4, DT_DTYPE_F32, DT_OP_SUM, comm,
                        DT_STREAM_NONE) == DT_ERR_INVALID_ARG,
           "overlap", 0, 0, 0);
    expect(dt_allreduce(buf, NULL, 4, DT_DTYPE_F32, DT_OP_SUM, comm,
                        DT_STREAM_NONE) == DT_ERR_INVALID_ARG,
           "NULL", 0, 0, 0);
    expect(dt_allreduce(buf, buf, 4, DT_DTYPE_F16, DT_OP_SUM, comm,
                        DT_STREAM_NONE) == DT_ERR_UNSUPPORTED,
           "dtype", 0, 0, 0);
    expect(dt_allreduce(buf, buf, 4, (dt_dtype_t)99, (dt_op_t)-1, comm,
                        DT_STREAM_NONE) == DT_ERR_UNSUPPORTED,
           "no dtype", 0, 0, 0);
    expect(dt_allreduce(buf, buf, SIZE_MAX / 2, DT_DTYPE_F32, DT_OP_SUM, comm,
                        DT_STREAM_NONE) == DT_ERR_INVALID_ARG,
           "too many", 0, 0, 0);
    expect(dt_bcast(buf, 1, DT_DTYPE_F32, dt_size(), comm, DT_STREAM_NONE) ==
               DT_ERR_INVALID_ARG,
           "root", 0, 0, 0);
    expect(dt_bcast(buf, 1, DT_DTYPE_F32, -1, comm, DT_STREAM_NONE) ==
               DT_ERR_INVALID_ARG,
           "negative root", 0, 0, 0);
    expect(dt_allreduce(buf, buf, 1, DT_DTYPE_F32, DT_OP_SUM, comm, buf) ==
               DT_ERR_UNSUPPORTED,
           "stream", 0, 0, 0);
    expect(dt_iallreduce(buf, buf, 1, DT_DTYPE_F32, DT_OP_SUM, comm,
                         DT_STREAM_NONE, NULL) == DT_ERR_INVALID_ARG,
           "no request", 0, 0, 0);
    allreduce(10, DT_DTYPE_F32, DT_OP_SUM, true); /* it still works */
}

/* ---- failures ---- */

/* The last rank goes away by a signal between two collectives. Where the
 * first is not over on all ranks by then, it may fail already. */
static void lose(int signo, dt_result_t want)
{
    static float big[200000];
    dt_result_t rc = DT_SUCCESS;
    for (int i = 0; i < 4 && rc == DT_SUCCESS; i++) {
        if (i == 1 && dt_rank() == dt_size() - 1)
            raise(signo);
        rc = dt_allreduce(big, big, 200000, DT_DTYPE_F32, DT_OP_SUM,
                          dt_comm_world(), DT_STREAM_NONE);
    }
    fprintf(stderr, "rank %d: %s: %s\n", dt_rank(), dt_strerror(rc),
            dt_last_error());
    expect(rc == want || rc == DT_ERR_PROC_FAILED, "result", 0, 0, 0);
    expect(dt_barrier(dt_comm_world(), DT_STREAM_NONE) == rc, "for ever", 0, 0,
           0);
    expect(dt_finalize() == DT_SUCCESS, "finalize after", 0, 0, 0);
}

/* The last rank dies when a lot is under way, so that the others stand in the
 * middle of a message to it. */
static void lose_amid(void)
{
    enum { N = 3, COUNT = 2000000 };
    static float big[N][COUNT];
    dt_request_t request[N] = {NULL};
    dt_result_t rc = DT_SUCCESS;
    for (int k = 0; k < N && rc == DT_SUCCESS; k++)
        rc = dt_iallreduce(big[k], big[k], COUNT, DT_DTYPE_F32, DT_OP_SUM,
                           dt_comm_world(), DT_STREAM_NONE, &request[k]);
    if (dt_rank() == dt_size() - 1)
        raise(SIGKILL);
    for (int k = 0; k < N; k++) {
        dt_result_t ended = dt_wait(&request[k]);
        rc = rc == DT_SUCCESS ? ended : rc;
    }
    expect(rc == DT_ERR_PROC_FAILED, "result", 0, rc, 0);
    expect(dt_allreduce(NULL, NULL, 0, DT_DTYPE_F32, DT_OP_SUM, dt_comm_world(),
                        DT_STREAM_NONE) == rc,
           "for ever, even of nothing", 0, 0, 0);
    expect(dt_finalize() == DT_SUCCESS, "finalize after", 0, 0, 0);
}

/* More operations while one is outstanding than a tag can count. */
static void wrap(void)
{
    static int32_t sum[2];
    dt_request_t request;
    int32_t mine = dt_rank() + 1;
    expect(dt_iallreduce(&mine, &sum[0], 1, DT_DTYPE_I32, DT_OP_SUM,
                         dt_comm_world(), DT_STREAM_NONE,
                         &request) == DT_SUCCESS,
           "iallreduce", 1, 0, 0);
    for (int32_t i = 0; i < 4200; i++) {
        int32_t got = dt_rank() == 0 ? i : -1;
        dt_bcast(&got, 1, DT_DTYPE_I32, 0, dt_comm_world(), DT_STREAM_NONE);
        expect(got == i, "bcast number", (size_t)i, got, 0);
    }
    expect(dt_wait(&request) == DT_SUCCESS &&
               sum[0] == dt_size() * (dt_size() + 1) / 2,
           "the sum begun before", 1, sum[0], 0);
}

/* Requests that nobody waited for do not hold anybody up at the end. */
static void open_end(void)
{
    static float buf[5000];
    dt_request_t request;
    if (dt_iallreduce(buf, buf, 5000, DT_DTYPE_F32, DT_OP_SUM, dt_comm_world(),
                      DT_STREAM_NONE, &request))
        expect(false, "iallreduce", 5000, 0, 0);
}

/* The last rank dies; the others learn of it in dt_finalize at the latest. */
static void lose_open(void)
{
    static float big[2000000];
    dt_request_t request = NULL;
    dt_iallreduce(big, big, 2000000, DT_DTYPE_F32, DT_OP_SUM, dt_comm_world(),
                  DT_STREAM_NONE, &request);
    if (dt_rank() == dt_size() - 1)
        raise(SIGKILL);
    expect(dt_finalize() == DT_ERR_PROC_FAILED, "finalize", 0, 0, 0);
}

/* One rank gets its notice in step 5; all must see it in the same step. */
static void notice(void)
{
    int32_t x = 0, seen = -1, lowest, highest;
    expect(!dt_should_exit(), "too early", 0, 0, 0);
    for (int32_t step = 0; step < 10; step++) {
        if (step == 5 && dt_rank() == dt_size() - 1)
            raise(SIGTERM);
        dt_allreduce(&x, &x, 1, DT_DTYPE_I32, DT_OP_SUM, dt_comm_world(),
                     DT_STREAM_NONE);
        if (seen < 0 && dt_should_exit())
            seen = step;
    }
    dt_allreduce(&seen, &lowest, 1, DT_DTYPE_I32, DT_OP_MIN, dt_comm_world(),
                 DT_STREAM_NONE);
    dt_allreduce(&seen, &highest, 1, DT_DTYPE_I32, DT_OP_MAX, dt_comm_world(),
                 DT_STREAM_NONE);
    expect(lowest == 5 && highest == 5, "same step", (size_t)seen, lowest,
           highest);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "all";
    if (!strcmp(mode, "misuse"))
        before();
    if (dt_init() != DT_SUCCESS) {
        fprintf(stderr, "dt_init: %s\n", dt_last_error());
        return 2;
    }
    if (!strcmp(mode, "die")) {
        lose(SIGKILL, DT_ERR_PROC_FAILED);
        return wrong != 0;
    }
    if (!strcmp(mode, "stop")) {
        lose(SIGSTOP, DT_ERR_TIMED_OUT);
        return wrong != 0;
    }
    if (!strcmp(mode, "amid")) {
        lose_amid();
        return wrong != 0;
    }
    if (!strcmp(mode, "lose-open")) {
        lose_open();
        return wrong != 0;
    }
    if (!strcmp(mode, "all"))
        all();
    else if (!strcmp(mode, "wrap"))
        wrap();
    else if (!strcmp(mode, "open"))
        open_end();
    else if (!strcmp(mode, "misuse"))
        misuse();
    else if (!strcmp(mode, "notice"))
        notice();
    expect(dt_finalize() == DT_SUCCESS, "finalize", 0, 0, 0);
    expect(dt_rank() == DT_ERR_NOT_INITIALIZED, "dt_rank after", 0, 0, 0);
    return wrong != 0;
}
