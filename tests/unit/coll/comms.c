/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* comms.c - many communicators: made, full, used by several threads at
 * once, and groups of calls on them. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

#define SUM_I32(in, out, n, comm)                                              \
    dt_allreduce(in, out, n, DT_DTYPE_I32, DT_OP_SUM, comm, DT_STREAM_NONE)

/* Who is in it: the ranks of the world, in order, by an allgather on it. */
static void members(dt_comm_t comm, int n, const int *want, const char *what)
{
    int32_t mine = dt_rank(), all[64];
    bool same = dt_comm_size(comm) == n;
    expect(dt_allgather(&mine, all, 1, DT_DTYPE_I32, comm, DT_STREAM_NONE) ==
               DT_SUCCESS,
           "%s: allgather", what);
    for (int i = 0; same && i < n; i++)
        same &= all[i] == want[i];
    expect(same && all[dt_comm_rank(comm)] == mine, "%s: members", what);
}

static void destroy(dt_comm_t comm)
{
    expect(dt_comm_destroy(comm) == DT_SUCCESS, "destroy");
}

void mode_comms(int argc, char **argv)
{
    int rank = dt_rank(), size = dt_size(), want[64], n = 0;
    dt_comm_t comm = NULL, again = NULL;
    dt_request_t request = NULL;
    (void)argc, (void)argv;
    for (int r = size - 1; r >= 0; r--)
        want[n++] = r;
    dt_comm_split(dt_comm_world(), 5, -rank, &comm);
    members(comm, n, want, "keys");
    dt_comm_split(comm, 0, 7, &again);
    members(again, n, want, "equal keys keep the order");
    destroy(again);
    n = 0;
    for (int r = size - 1; r >= 0; r--)
        if (r % 3 == rank % 3)
            want[n++] = r;
    dt_comm_split(comm, rank % 3, 0, &again);
    members(again, n, want, "colors of colors");
    destroy(comm); /* before its child */
    members(again, n, want, "a child without its parent");
    destroy(again);
    again = comm = (dt_comm_t)(void *)want;
    expect(dt_comm_split(dt_comm_world(), rank ? DT_COLOR_NONE : 0, 0, &comm) ==
                   DT_SUCCESS &&
               (comm == NULL) == (rank > 0),
           "DT_COLOR_NONE");
    destroy(comm);
    dt_comm_split(dt_comm_world(), rank, 0, &comm);
    members(comm, 1, &rank, "alone");
    /* destroy waits for what is open */
    static int32_t in[9000], out[9000];
    in[8999] = 1;
    dt_iallreduce(in, out, 9000, DT_DTYPE_I32, DT_OP_SUM, comm, DT_STREAM_NONE,
                  &request);
    destroy(comm);
    expect(out[8999] == 1, "destroy completes requests");
    for (int i = 0; i < 300; i++) { /* more than there are ids */
        dt_comm_split(dt_comm_world(), rank % 2, i % 2 ? rank : -rank, &comm);
        int32_t one = 1, sum = 0;
        expect(SUM_I32(&one, &sum, 1, comm) == DT_SUCCESS &&
                   sum == dt_comm_size(comm),
               "round %d", i);
        destroy(comm);
    }
}

/* 255 communicators, and one too many, although rank 0 has room for it. A rank
 * that is not in the one too many does not fail. */
void mode_exhaust(int argc, char **argv)
{
    enum { FREE = 254 };
    dt_comm_t comm[FREE + 1] = {NULL}, none = NULL;
    int rank = dt_rank();
    (void)argc, (void)argv;
    for (int i = 0; i < FREE; i++)
        expect(dt_comm_split(dt_comm_world(),
                             rank || i < FREE - 1 ? 0 : DT_COLOR_NONE, rank,
                             &comm[i]) == DT_SUCCESS,
               "communicator %d", i);
    for (int i = 0; i < FREE; i += 50) {
        int32_t x = rank + i, sum = 0, want = 0;
        for (int r = 0; r < dt_size(); r++)
            want += r + i;
        expect(SUM_I32(&x, &sum, 1, comm[i]) == DT_SUCCESS && sum == want,
               "allreduce on communicator %d", i);
    }
    expect(dt_comm_split(dt_comm_world(), 0, 0, &none) == DT_ERR_NO_MEMORY,
           "one too many");
    expect(strstr(dt_last_error(), "destroy some first") && !none, "its words");
    expect(dt_comm_split(dt_comm_world(), rank ? 0 : DT_COLOR_NONE, 0, &none) ==
                   (rank ? DT_ERR_NO_MEMORY : DT_SUCCESS) &&
               !none,
           "who wants none is not refused");
    destroy(comm[100]);
    expect(dt_comm_split(dt_comm_world(), 0, 0, &comm[100]) == DT_SUCCESS,
           "room again");
    for (int i = 0; i < FREE; i++)
        destroy(comm[i]);
    expect(dt_barrier(WORLD) == DT_SUCCESS, "barrier");
}

/* ---- create ---- */

static void ascending(int n, const int *ranks, const char *what)
{
    dt_comm_t comm = NULL;
    expect(dt_comm_create(dt_comm_world(), ranks, n, &comm) == DT_SUCCESS, "%s",
           what);
    members(comm, n, ranks, what);
    destroy(comm);
}

/* Two sets at once, of which one has destroyed its communicator long before
 * the other begins: nobody waits for who is not in it. */
static void test_disjoint(int rank, int size)
{
    int odd[64], even[64], nodd = 0, neven = 0, token = 1;
    for (int r = 0; r < size; r++)
        if (r % 2)
            odd[nodd++] = r;
        else
            even[neven++] = r;
    if (rank % 2)
        ascending(nodd, odd, "odd ranks");
    if (rank == 1) /* the even ones begin when this arrives */
        expect(dt_send(&token, 1, DT_DTYPE_I32, 0, WORLD) == DT_SUCCESS,
               "send");
    if (rank == 0 && size > 1)
        expect(dt_recv(&token, 1, DT_DTYPE_I32, 1, WORLD) == DT_SUCCESS,
               "recv");
    if (rank % 2 == 0)
        ascending(neven, even, "even ranks");
}

/* A ring of pairs: each rank is in two, and makes them in the same order. */
static void test_pairs(int rank, int size)
{
    dt_comm_t pair[2] = {NULL, NULL};
    int n = 0;
    for (int r = 0; r < size; r++) {
        const int ranks[] = {(r + 1) % size, r};
        if (ranks[0] == r || (rank != ranks[0] && rank != ranks[1]))
            continue;
        expect(dt_comm_create(dt_comm_world(), ranks, 2, &pair[n]) ==
                   DT_SUCCESS,
               "pair %d", r);
        expect(dt_comm_rank(pair[n]) == (rank == r), "the order as given");
        n++;
    }
    for (int i = 0; i < n; i++) {
        int32_t one = 1, sum = 0;
        expect(SUM_I32(&one, &sum, 1, pair[i]) == DT_SUCCESS && sum == 2,
               "pair %d sums", i);
    }
    for (int i = 0; i < n; i++)
        destroy(pair[i]);
}

/* Ranks of a communicator in another order, in another order. */
static void test_nested(int rank, int size)
{
    dt_comm_t back = NULL, again = NULL;
    int ranks[64], want[64], n = 0;
    dt_comm_split(dt_comm_world(), 0, -rank, &back);
    for (int i = size - 1; i >= 0; i -= 2) {
        ranks[n] = i; /* which is rank size - 1 - i of the world */
        want[n++] = size - 1 - i;
    }
    expect(dt_comm_create(back, ranks, n, &again) == DT_SUCCESS, "of a child");
    expect((again != NULL) == (rank % 2 == 0), "NULL for who is not in it");
    destroy(back);
    if (again)
        members(again, n, want, "ranks of the child");
    destroy(again);
}

static void refused(dt_comm_t parent, const int *ranks, int n, const char *text)
{
    dt_comm_t comm = dt_comm_world();
    expect(dt_comm_create(parent, ranks, n, &comm) != DT_SUCCESS &&
               comm == dt_comm_world() && strstr(dt_last_error(), text),
           "%s", text);
}

void mode_create(int argc, char **argv)
{
    int rank = dt_rank(), size = dt_size(), all[64];
    (void)argc, (void)argv;
    for (int r = 0; r < size; r++)
        all[r] = r;
    refused(NULL, all, 1, "no communicator");
    refused(dt_comm_world(), NULL, 1, "at NULL");
    refused(dt_comm_world(), all, 0, "expected 1 to");
    refused(dt_comm_world(), all, size + 1, "expected 1 to");
    refused(dt_comm_world(), (int[]){size}, 1, "ranks[0] is");
    refused(dt_comm_world(), (int[]){-1}, 1, "ranks[0] is");
    if (size > 1)
        refused(dt_comm_world(), (int[]){size - 1, size - 1}, 2, "twice");
    dt_group_start();
    refused(dt_comm_world(), all, size, "group");
    dt_group_end();
    for (int i = 0; i < 300; i++) /* more than there are ids */
        ascending(size, all, "all ranks");
    ascending(1, &rank, "alone");
    test_disjoint(rank, size);
    test_pairs(rank, size);
    test_nested(rank, size);
    expect(dt_barrier(WORLD) == DT_SUCCESS, "the world goes on");
}

/* ---- threads ---- */

struct worker {
    dt_comm_t comm;
    int id;
    pthread_t thread;
};

static void *work(void *arg)
{
    const struct worker *worker = arg;
    dt_comm_t comm = worker->comm, mine = NULL;
    enum { MOST = 4000 };
    int32_t in[MOST], out[MOST];
    int size = dt_comm_size(comm);
    for (int k = 0; k < 60; k++) {
        size_t n = (size_t)(k * 67 % MOST + 1);
        dt_request_t request = NULL;
        for (size_t i = 0; i < n; i++)
            in[i] = (int32_t)i + k * worker->id + dt_comm_rank(comm);
        expect(dt_iallreduce(in, out, n, DT_DTYPE_I32, DT_OP_SUM, comm,
                             DT_STREAM_NONE, &request) == DT_SUCCESS,
               "iallreduce");
        expect(dt_wait(&request) == DT_SUCCESS, "wait");
        bool same = true;
        for (size_t i = 0; i < n; i++)
            same &= out[i] == ((int32_t)i + k * worker->id) * size +
                                  size * (size - 1) / 2;
        expect(same, "thread %d, round %d", worker->id, k);
        if (k % 6)
            continue;
        /* both threads split at once, and want the same ids */
        int32_t one = 1, sum = 0;
        expect(dt_comm_split(comm, k % 12 ? dt_rank() % 2 : 0, 0, &mine) ==
                   DT_SUCCESS,
               "thread %d splits", worker->id);
        expect(SUM_I32(&one, &sum, 1, mine) == DT_SUCCESS &&
                   sum == dt_comm_size(mine),
               "thread %d on its own", worker->id);
        expect(dt_comm_destroy(mine) == DT_SUCCESS, "thread %d destroys",
               worker->id);
    }
    expect(dt_allreduce(in, out + 1, MOST, (dt_dtype_t)77, DT_OP_SUM, comm,
                        DT_STREAM_NONE) == DT_ERR_INVALID_ARG &&
               strstr(dt_last_error(), "77"),
           "each thread has its own words");
    return NULL;
}

void mode_threads(int argc, char **argv)
{
    struct worker workers[3] = {{.id = 1}, {.id = 2}, {.id = 3}};
    (void)argc, (void)argv;
    for (int i = 0; i < 3; i++)
        expect(dt_comm_split(dt_comm_world(), 0, i == 1 ? -dt_rank() : 0,
                             &workers[i].comm) == DT_SUCCESS,
               "split");
    for (int i = 0; i < 3; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            abort();
    for (int i = 0; i < 3; i++)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < 3; i++)
        destroy(workers[i].comm);
}

/* ---- groups and messages ---- */

#define MOST 100000

/* All to all by hand: what would hang if sends or receives waited. */
static void crossing(size_t n, int32_t *in, int32_t *out)
{
    int rank = dt_rank(), size = dt_size();
    for (int r = 0; r < size; r++)
        for (size_t i = 0; i < n; i++)
            in[(size_t)r * n + i] = rank * 1000 + r;
    memset(out, 0, n * (size_t)size * 4);
    dt_group_start();
    for (int r = 0; r < size; r++) {
        if (r == rank)
            continue;
        expect(dt_send(in + (size_t)r * n, n, DT_DTYPE_I32, r, WORLD) ==
                   DT_SUCCESS,
               "send");
        expect(dt_recv(out + (size_t)r * n, n, DT_DTYPE_I32, r, WORLD) ==
                   DT_SUCCESS,
               "recv");
    }
    expect(dt_group_end() == DT_SUCCESS, "group");
    for (int r = 0; r < size; r++)
        for (size_t i = 0; r != rank && i < n; i++)
            if (out[(size_t)r * n + i] != r * 1000 + rank) {
                expect(false, "crossing %zu, from %d", n, r);
                return;
            }
}

/* Messages of one peer arrive in the order in which they were sent, also where
 * a later one is short and collectives lie between them. */
static void in_order(int32_t *in, int32_t *out)
{
    static const size_t sizes[] = {30000, 1, 500, 1, 90000, 3};
    int rank = dt_rank(), size = dt_size();
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    dt_request_t request[6];
    int32_t one = 1, sum = 0;
    if (size == 1)
        return;
    for (int k = 0; k < 6; k++) {
        for (size_t i = 0; i < sizes[k]; i++)
            in[i] = k;
        dt_irecv(out, sizes[k], DT_DTYPE_I32, from, WORLD, &request[0]);
        dt_isend(in, sizes[k], DT_DTYPE_I32, to, WORLD, &request[1]);
        SUM_I32(&one, &sum, 1, dt_comm_world());
        expect(dt_wait(&request[0]) == DT_SUCCESS &&
                   dt_wait(&request[1]) == DT_SUCCESS && sum == size &&
                   out[0] == k && out[sizes[k] - 1] == k,
               "message %d with a sum beside it", k);
    }
    for (int k = 0; k < 6; k++) {
        in[k] = rank * 10 + k;
        dt_isend(&in[k], 1, DT_DTYPE_I32, to, WORLD, &request[k]);
    }
    for (int k = 0; k < 6; k++)
        expect(dt_recv(&out[k], 1, DT_DTYPE_I32, from, WORLD) == DT_SUCCESS &&
                   out[k] == from * 10 + k,
               "message %d in order", k);
    for (int k = 5; k >= 0; k--)
        expect(dt_wait(&request[k]) == DT_SUCCESS, "sent");
}

/* The first collective of a communicator beside a message that is still to be
 * sent. */
static void beside(void)
{
    int rank = dt_rank(), size = dt_size();
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    int32_t one = 1, sum = 0, got = -1;
    dt_comm_t comm;
    if (size == 1)
        return;
    dt_comm_split(dt_comm_world(), 0, 0, &comm);
    dt_group_start();
    expect(dt_recv(&got, 1, DT_DTYPE_I32, from, comm, DT_STREAM_NONE) ==
               DT_SUCCESS,
           "recv");
    expect(SUM_I32(&one, &sum, 1, comm) == DT_SUCCESS, "the first");
    expect(dt_send(&rank, 1, DT_DTYPE_I32, to, comm, DT_STREAM_NONE) ==
               DT_SUCCESS,
           "send");
    expect(dt_group_end() == DT_SUCCESS && got == from && sum == size,
           "a message around the first collective");
    destroy(comm);
}

/* Collectives on several communicators, begun in different orders. */
static void mixed(int32_t *in, int32_t *out)
{
    dt_comm_t comm[2];
    int32_t sum[2] = {0}, got = dt_rank() == 0 ? 77 : 0;
    int size = dt_size();
    for (int c = 0; c < 2; c++)
        dt_comm_split(dt_comm_world(), 0, 0, &comm[c]);
    for (size_t i = 0; i < MOST; i++)
        in[i] = 1;
    expect(dt_group_start() == DT_SUCCESS, "start");
    for (int c = 0; c < 2; c++) {
        int which = (c + dt_rank()) % 2;
        int32_t *mine = out + which * MOST;
        expect(SUM_I32(in, mine, MOST, comm[which]) == DT_SUCCESS, "begin");
    }
    expect(dt_group_start() == DT_SUCCESS, "nested start");
    expect(dt_bcast(&got, 1, DT_DTYPE_I32, 0, WORLD) == DT_SUCCESS, "begin");
    expect(dt_bcast(&got, 1, DT_DTYPE_I32, -3, WORLD) == DT_ERR_INVALID_ARG,
           "a wrong call says so at once");
    expect(dt_group_end() == DT_SUCCESS, "nested end");
    expect(dt_group_end() == DT_SUCCESS, "end");
    for (size_t i = 0; i < MOST; i++)
        sum[0] += out[i] == size, sum[1] += out[MOST + i] == size;
    expect(sum[0] == MOST && sum[1] == MOST && got == 77, "results");
    for (int c = 0; c < 2; c++)
        destroy(comm[c]);
}

void mode_groups(int argc, char **argv)
{
    size_t room = sizeof(int32_t) * MOST * (size_t)(dt_size() + 1);
    int32_t *in = malloc(room), *out = malloc(room);
    (void)argc, (void)argv;
    crossing(1, in, out);
    crossing(1000, in, out);
    crossing(MOST, in, out);
    in_order(in, out);
    beside();
    mixed(in, out);
    crossing(17, in, out);
    free(in);
    free(out);
}
