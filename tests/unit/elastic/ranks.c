/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* ranks.c - what one rank of the tests of elastic jobs does: `ranks MODE
 * [ARG ...]`, under dt-run. Exits 0 if this rank saw what it should. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"
#include "train.h"

static int32_t sum_of(int32_t mine)
{
    int32_t sum = 0;
    expect(dt_allreduce(&mine, &sum, 1, DT_DTYPE_I32, DT_OP_SUM, WORLD) ==
               DT_SUCCESS,
           "allreduce");
    return sum;
}

/* The last rank is killed; the others notice. */
static void lose_last(void)
{
    const int last = dt_size() - 1;
    int ranks[2] = {-1, -1}, count = 2;
    if (dt_rank() == last)
        raise(SIGKILL);
    expect(dt_barrier(WORLD) == DT_ERR_PROC_FAILED, "barrier with the dead");
    expect(dt_comm_get_failed(dt_comm_world(), ranks, &count) == DT_SUCCESS &&
               count <= 1 && (!count || ranks[0] == last),
           "failed: %d, first %d", count, ranks[0]);
}

/* When all have done what they did before, this rank revokes comm. */
static void revoke_by(int rank, dt_comm_t comm)
{
    dt_result_t rc = dt_barrier(WORLD);
    if (rc == DT_SUCCESS && dt_rank() == rank)
        expect(dt_comm_revoke(comm) == DT_SUCCESS, "revoke");
    while (rc == DT_SUCCESS)
        rc = dt_barrier(WORLD);
    expect(rc == DT_ERR_PROC_FAILED, "result %d", rc);
}

/* Nobody is lost, but one rank wants to begin again. */
static void mode_revoke(int argc, char **argv)
{
    (void)argc, (void)argv;
    const int n = dt_size();
    for (int i = 0; i < 3; i++) {
        dt_comm_t half;
        expect(dt_comm_split(dt_comm_world(), dt_rank() % 2, 0, &half) ==
                   DT_SUCCESS,
               "split");
        revoke_by(i % n, half);
        expect(dt_reinit() == DT_SUCCESS, "reinit");
        expect(dt_size() == n && sum_of(1) == n, "size %d", dt_size());
    }
}

/* dt_reinit without any failure, which only some have to begin. */
static void mode_calm(int argc, char **argv)
{
    (void)argc, (void)argv;
    const int n = dt_size(), rank = dt_rank();
    expect(dt_reinit() == DT_SUCCESS, "reinit");
    expect(dt_size() == n && dt_rank() == rank, "size %d", dt_size());
    if (dt_rank() > 0)
        expect(dt_reinit() == DT_SUCCESS, "reinit of some");
    else {
        expect(dt_barrier(WORLD) == DT_ERR_PROC_FAILED, "barrier of one");
        expect(dt_reinit() == DT_SUCCESS, "reinit of the last");
    }
    expect(sum_of(1) == n, "sum");
}

/* Memory keeps its address and contents. */
static void mode_memory(int argc, char **argv)
{
    enum { N = 3 << 20 };
    static char pinned[100000];
    char *shared[3];
    (void)argc, (void)argv;
    expect(dt_mem_register(pinned, sizeof(pinned)) == DT_SUCCESS, "register");
    for (int i = 0; i < 3; i++) {
        expect(dt_mem_alloc(N, (void **)&shared[i]) == DT_SUCCESS, "alloc");
        memset(shared[i], i + 1, N);
    }
    expect(dt_mem_free(shared[1]) == DT_SUCCESS, "free");
    lose_last();
    expect(dt_reinit() == DT_SUCCESS, "reinit");
    for (int i = 0; i < 3; i += 2)
        expect(shared[i][0] == i + 1 &&
                   !memcmp(shared[i], shared[i] + 1, N - 1),
               "contents of %d", i);
    expect(dt_allreduce(shared[0], shared[2], N, DT_DTYPE_I8, DT_OP_SUM,
                        WORLD) == DT_SUCCESS &&
               shared[2][N - 1] == dt_size(),
           "allreduce on it: %d", shared[2][N - 1]);
    expect(dt_mem_alloc(N, (void **)&shared[1]) == DT_SUCCESS &&
               shared[1][N - 1] == 0,
           "alloc after");
    expect(dt_mem_free(shared[0]) == DT_SUCCESS, "free after");
    expect(dt_mem_deregister(pinned) == DT_SUCCESS, "deregister");
    revoke_by(0, dt_comm_world());
    expect(dt_reinit() == DT_SUCCESS, "reinit once more");
    expect(shared[2][0] == dt_size() && shared[1][5] == 0, "contents");
}

/* Communicators and requests are freed; the number of a rank may change. */
static void mode_shrink(int argc, char **argv)
{
    static float big[300000];
    dt_comm_t half;
    dt_request_t request;
    (void)argc, (void)argv;
    const int n = dt_size();
    expect(dt_comm_split(dt_comm_world(), dt_rank() % 2, 0, &half) ==
               DT_SUCCESS,
           "split");
    expect(dt_iallreduce(big, big, 300000, DT_DTYPE_F32, DT_OP_SUM, half,
                         DT_STREAM_NONE, &request) == DT_SUCCESS,
           "start");
    if (dt_rank() == 0)
        raise(SIGKILL);
    while (dt_barrier(WORLD) == DT_SUCCESS)
        ;
    const int before = dt_rank();
    expect(dt_reinit() == DT_SUCCESS, "reinit");
    expect(dt_size() == n - 1 && dt_rank() == before - 1 &&
               dt_local_size() == n - 1,
           "rank %d of %d", dt_rank(), dt_size());
    int count = 0;
    expect(dt_comm_get_failed(dt_comm_world(), NULL, &count) == DT_SUCCESS &&
               count == 0,
           "nobody is missing in the new world");
    expect(sum_of(dt_rank()) == (n - 1) * (n - 2) / 2, "sum");
    expect(dt_comm_split(dt_comm_world(), 0, 0, &half) == DT_SUCCESS &&
               dt_comm_destroy(half) == DT_SUCCESS,
           "split after");
}

/* What is refused. */
static void mode_wrong(int argc, char **argv)
{
    int count = 1, x = 5, y = 6;
    dt_state_t state;
    (void)argc, (void)argv;
    expect(dt_reinit() == DT_ERR_UNSUPPORTED, "reinit of a job that is not");
    expect(dt_barrier(WORLD) == DT_SUCCESS, "nothing has changed");
    expect(dt_comm_get_failed(NULL, NULL, &count) == DT_ERR_NOT_INITIALIZED,
           "no communicator");
    expect(dt_comm_get_failed(dt_comm_world(), NULL, &count) ==
               DT_ERR_INVALID_ARG,
           "no room");
    expect(dt_state_create(NULL) == DT_ERR_INVALID_ARG, "no state");
    expect(dt_state_create(&state) == DT_SUCCESS, "create");
    expect(dt_state_rollback(state) == DT_ERR_NOT_FOUND, "no commit");
    expect(dt_state_register(state, "", &x, sizeof(x)) == DT_ERR_INVALID_ARG,
           "no name");
    expect(dt_state_register(state, "x", NULL, 4) == DT_ERR_INVALID_ARG,
           "no data");
    expect(dt_state_register(state, "x", &x, 0) == DT_ERR_INVALID_ARG,
           "no bytes");
    expect(dt_state_register(state, "x", &x, sizeof(x)) == DT_SUCCESS, "x");
    expect(dt_state_register(state, "x", &y, sizeof(y)) == DT_ERR_INVALID_ARG,
           "twice");
    expect(dt_state_commit(state) == DT_SUCCESS, "commit");
    expect(dt_state_register(state, "y", &y, sizeof(y)) == DT_ERR_INVALID_ARG,
           "late");
    x = 7;
    expect(dt_state_rollback(state) == DT_SUCCESS && x == 5, "x is %d", x);
    expect(dt_elastic_run(NULL, state, NULL) == DT_ERR_INVALID_ARG, "no fn");
    dt_state_destroy(state);
    dt_state_destroy(NULL);
}

/* Ranks that register other things; and the newest commit counts. */
static void mode_sync(int argc, char **argv)
{
    int x = dt_rank() + 10, y = 0;
    dt_state_t state;
    (void)argc, (void)argv;
    expect(dt_state_create(&state) == DT_SUCCESS, "create");
    expect(dt_state_register(state, "x", &x, sizeof(x)) == DT_SUCCESS, "x");
    if (dt_rank() == 1)
        dt_state_register(state, "y", &y, sizeof(y));
    expect(dt_state_sync(state) == DT_ERR_MISMATCH, "mismatch");
    expect(strstr(dt_last_error(), "rank 1 has registered 2 pieces of 8 bytes"),
           "text");
    dt_state_destroy(state);
    expect(dt_state_create(&state) == DT_SUCCESS, "create");
    expect(dt_state_register(state, "x", &x, sizeof(x)) == DT_SUCCESS, "x");
    expect(dt_state_sync(state) == DT_SUCCESS && x == 10, "of rank 0: %d", x);
    x = dt_rank() + 20;
    if (dt_rank() > 0)
        expect(dt_state_commit(state) == DT_SUCCESS, "commit of some");
    x = 0;
    expect(dt_state_sync(state) == DT_SUCCESS && x == 21, "newest: %d", x);
    x = 0;
    expect(dt_state_rollback(state) == DT_SUCCESS && x == 21, "kept: %d", x);
    dt_state_destroy(state);
}

/* dt_init after dt_finalize. */
static void mode_again(int argc, char **argv)
{
    (void)argc, (void)argv;
    const int n = dt_size(), rank = dt_rank();
    for (int i = 0; i < 3; i++) {
        expect(dt_finalize() == DT_SUCCESS, "finalize");
        expect(dt_size() == DT_ERR_NOT_INITIALIZED, "size after");
        expect(dt_init() == DT_SUCCESS, "init again");
        expect(dt_size() == n && dt_rank() == rank && sum_of(1) == n, "size %d",
               dt_size());
    }
}

static const struct mode modes[] = {
    {"train", mode_train, true, NULL},
    {"revoke", mode_revoke, false, NULL},
    {"calm", mode_calm, false, NULL},
    {"memory", mode_memory, false, NULL},
    {"shrink", mode_shrink, false, NULL},
    {"wrong", mode_wrong, false, NULL},
    {"sync", mode_sync, false, NULL},
    {"again", mode_again, false, NULL},
    {NULL, NULL, false, NULL},
};

int main(int argc, char **argv)
{
    const struct mode *mode = begin_mode(modes, argc, argv);
    mode->fn(argc - 2, argv + 2);
    return end_mode(mode);
}
