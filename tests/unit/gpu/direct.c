/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* direct.c - what is handed to the network where it is: how many messages
 * and copies that takes, and that the right bytes come out. */
#include <stdlib.h>
#include <string.h>

#include "ranks.h"
#include "mock.h"
#include "ucx.h"

#define U8    DT_DTYPE_U8
#define CHUNK (16 * MIB) /* of a row that is direct */

static bool direct; /* as it should be */
static dt_stream_t stream;
static char *out_buf, *in_buf, *want;

/* What a call has cost this rank. */
struct cost {
    int messages, copies, pages;
};

static struct cost spent(void)
{
    return (struct cost){mock_ucx_messages(),
                         dt_mock_calls("cuMemcpyAsync") +
                             dt_mock_calls("cuMemcpy2DAsync_v2"),
                         dt_mock_calls("cuMemHostAlloc")};
}

/* Since before: so many messages and copies if it was direct, else no message
 * and more copies. */
static void expect_cost(const char *name, const struct cost *before,
                        int messages, int copies)
{
    const struct cost now = spent();
    int sent = now.messages - before->messages;
    int copied = now.copies - before->copies;
    expect(sent == (direct ? messages : 0), "%s: %d messages", name, sent);
    expect(direct ? copied == copies : copied > 0 || !messages, "%s: %d copies",
           name, copied);
}

static void fill(size_t len, int seed)
{
    value_fill(out_buf, len, (unsigned)(dt_rank() * 100 + seed));
}

static void expect_from(const char *name, const char *at, int rank, size_t len,
                        size_t skip, int seed)
{
    value_fill(want, skip + len, (unsigned)(rank * 100 + seed));
    expect(!memcmp(at, want + skip, len), "%s: %zu bytes of rank %d are wrong",
           name, len, rank);
}

static int chunks(size_t len)
{
    return (int)((len + CHUNK - 1) / CHUNK);
}

/* ---- collectives ---- */

static void try_allgather(size_t len)
{
    int n = dt_size();
    fill(len, 1);
    const struct cost before = spent();
    expect(dt_allgather(out_buf, in_buf, len, U8, dt_comm_world(), stream) ==
               DT_SUCCESS,
           "allgather");
    gpu_sync(stream);
    expect_cost("allgather", &before, 2 * (n - 1) * chunks(len), chunks(len));
    for (int r = 0; r < n; r++)
        expect_from("allgather", in_buf + len * (size_t)r, r, len, 0, 1);
}

/* Ranks give more, the higher they are, and the first one nothing. */
static void try_allgatherv(size_t len)
{
    size_t counts[16], displs[16], at = 0;
    int n = dt_size(), me = dt_rank(), messages = 0;
    for (int r = 0; r < n; r++) {
        counts[r] = len * (size_t)r;
        displs[r] = at + 5;
        at = displs[r] + counts[r];
        if (r != me)
            messages += chunks(counts[r]) + chunks(len * (size_t)me);
    }
    fill(counts[me], 2);
    memcpy(in_buf + displs[me], out_buf, counts[me]); /* in place */
    const struct cost before = spent();
    expect(dt_allgatherv(in_buf + displs[me], in_buf, counts, displs, U8,
                         dt_comm_world(), stream) == DT_SUCCESS,
           "allgatherv");
    gpu_sync(stream);
    expect_cost("allgatherv", &before, messages, 0);
    for (int r = 0; r < n; r++)
        expect_from("allgatherv", in_buf + displs[r], r, counts[r], 0, 2);
}

static void try_alltoall(size_t len)
{
    int n = dt_size(), me = dt_rank();
    fill(len * (size_t)n, 3);
    const struct cost before = spent();
    expect(dt_alltoall(out_buf, in_buf, len, U8, dt_comm_world(), stream) ==
               DT_SUCCESS,
           "alltoall");
    gpu_sync(stream);
    expect_cost("alltoall", &before, 2 * (n - 1), 1);
    for (int r = 0; r < n; r++)
        expect_from("alltoall", in_buf + len * (size_t)r, r, len,
                    len * (size_t)me, 3);
}

/* Rank a gives rank b a row of a + 2 b chunks, less some. */
static void try_alltoallv(size_t len)
{
    size_t give[16], gives[16], take[16], takes[16], to = 0, from = 0, skip;
    int n = dt_size(), me = dt_rank(), messages = 0;
    for (int r = 0; r < n; r++) {
        give[r] = len * (size_t)(me + 2 * r);
        take[r] = len * (size_t)(r + 2 * me);
        gives[r] = to;
        takes[r] = from;
        to += give[r];
        from += take[r];
        if (r != me)
            messages += chunks(give[r]) + chunks(take[r]);
    }
    fill(to, 4);
    const struct cost before = spent();
    expect(dt_alltoallv(out_buf, give, gives, in_buf, take, takes, U8,
                        dt_comm_world(), stream) == DT_SUCCESS,
           "alltoallv");
    gpu_sync(stream);
    expect_cost("alltoallv", &before, messages, chunks(give[me]));
    for (int r = 0; r < n; r++) {
        skip = 0;
        for (int b = 0; b < me; b++)
            skip += len * (size_t)(r + 2 * b);
        expect_from("alltoallv", in_buf + takes[r], r, take[r], skip, 4);
    }
}

static void try_rooted(size_t len)
{
    const int n = dt_size(), me = dt_rank(), root = n - 1;
    const bool here = me == root;
    fill(len, 5);
    struct cost before = spent();
    expect(dt_gather(out_buf, in_buf, len, U8, root, dt_comm_world(), stream) ==
               DT_SUCCESS,
           "gather");
    gpu_sync(stream);
    expect_cost("gather", &before, here ? n - 1 : 1, here);
    for (int r = 0; here && r < n; r++)
        expect_from("gather", in_buf + len * (size_t)r, r, len, 0, 5);
    fill(len * (size_t)n, 6);
    before = spent();
    expect(dt_scatter(out_buf, in_buf, len, U8, root, dt_comm_world(),
                      stream) == DT_SUCCESS,
           "scatter");
    gpu_sync(stream);
    expect_cost("scatter", &before, here ? n - 1 : 1, here);
    expect_from("scatter", in_buf, root, len, len * (size_t)me, 6);
}

/* Short, or to one rank: from the root. Else in rows: the root's, and then each
 * rank's, and the last rows may be short, or empty. */
static void try_bcast(size_t len)
{
    const int n = dt_size(), me = dt_rank(), root = n - 1;
    const size_t part = (len + (size_t)n - 1) / (size_t)n;
    int messages = me == root ? (n - 1) * chunks(len) : chunks(len);
    if (n > 2 && len >= 256 * 1024) {
        int others = chunks(len - part * (size_t)root), parts = chunks(part);
        messages = me == root ? (n - 1) * (parts + others)
                              : parts + (n - 2) * parts /* to the others */
                                    + (n - 2) * parts + others;
    }
    fill(len, 7);
    const struct cost before = spent();
    expect(dt_bcast(me == root ? out_buf : in_buf, len, U8, root,
                    dt_comm_world(), stream) == DT_SUCCESS,
           "bcast");
    gpu_sync(stream);
    expect_cost("bcast", &before, messages, 0);
    if (me != root)
        expect_from("bcast", in_buf, root, len, 0, 7);
}

/* ---- messages ---- */

/* To the next and from the one before; managed: of what moves by itself. */
static void try_messages(size_t len, bool managed)
{
    const int n = dt_size(), to = (dt_rank() + 1) % n;
    const int from = (dt_rank() + n - 1) % n;
    char *buf = out_buf;
    if (managed) {
        dt_cu_ptr ptr = 0;
        expect(!cuMemAllocManaged(&ptr, len, 1), "managed");
        out_buf = (char *)(uintptr_t)ptr;
    }
    fill(len, 8);
    const struct cost before = spent();
    const int others = mock_ucx_managed();
    dt_group_start();
    expect(dt_send(out_buf, len, U8, to, dt_comm_world(), stream) == DT_SUCCESS,
           "send");
    expect(dt_recv(in_buf, len, U8, from, dt_comm_world(), stream) ==
               DT_SUCCESS,
           "receive");
    expect(dt_group_end() == DT_SUCCESS, "group");
    gpu_sync(stream);
    expect_cost("messages", &before, 2 * chunks(len), 0);
    expect(mock_ucx_managed() - others == (direct && managed ? chunks(len) : 0),
           "managed memory is not called so");
    expect_from("messages", in_buf, from, len, 0, 8);
    out_buf = buf;
}

/* Their flags are pinned, and nothing else is. */
static void try_first_message(void)
{
    struct cost before = spent();
    try_messages(10, false);
    const struct cost now = spent();
    expect(now.pages - before.pages <= (direct ? 3 : 5) &&
               now.pages - before.pages > (direct ? 0 : 3),
           "%d pinned regions", now.pages - before.pages);
}

/* What comes before it on the stream is seen, and what comes after waits. */
static void try_order(void)
{
    enum { LEN = 100000 };
    const int n = dt_size(), to = (dt_rank() + 1) % n;
    const int from = (dt_rank() + n - 1) % n;
    char *early = gpu_memory(LEN), *late = gpu_memory(LEN);
    fill(LEN, 9);
    memcpy(early, out_buf, LEN);
    memset(out_buf, 0, LEN);
    gate_shut(stream);
    gpu_copy(out_buf, early, LEN, stream);
    dt_group_start();
    expect(dt_send(out_buf, LEN, U8, to, dt_comm_world(), stream) == DT_SUCCESS,
           "send");
    expect(dt_recv(in_buf, LEN, U8, from, dt_comm_world(), stream) ==
               DT_SUCCESS,
           "receive");
    expect(dt_group_end() == DT_SUCCESS, "group");
    gpu_copy(late, in_buf, LEN, stream);
    gpu_copy(out_buf, late, LEN, stream); /* is not sent any more */
    gate_open();
    gpu_sync(stream);
    expect_from("order", late, from, LEN, 0, 9);
}

/* direct yes|no: is it? */
void mode_direct(int argc, char **argv)
{
    const size_t room = 5 * CHUNK * (size_t)dt_size();
    direct = argc && !strcmp(argv[0], "yes");
    stream = gpu_stream();
    out_buf = gpu_memory(room);
    in_buf = gpu_memory(room);
    want = malloc(room);
    try_first_message();
    for (size_t len = 10; len < 2 * CHUNK; len = len * 700 + 1) {
        try_messages(len, false);
        try_allgather(len);
        try_alltoall(len);
        try_rooted(len);
        try_bcast(len);
    }
    try_messages(CHUNK + 9, true);
    try_allgather(CHUNK + 9);
    try_allgatherv(CHUNK / 2 + 9);
    try_alltoallv(CHUNK / 2 + 9);
    try_bcast(256 * 1024);
    try_bcast(3 * CHUNK + 1);
    try_order();
    free(want);
}
