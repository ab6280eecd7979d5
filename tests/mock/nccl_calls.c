/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* nccl_calls.c - collectives of the mock NCCL: messages, and then folds, as one
 * batch on a stream. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "exec/exec.h"
#include "mock.h"
#include "nccl.h"

/* A reduction, after all messages: of what came from each rank. */
struct fold {
    struct fold *next;
    char *in[MOCK_RANKS];
    char *out;
    size_t count;
    dt_dtype_t dtype;
    dt_op_t op;
};

/* What is put on a stream as one. */
struct mock_batch {
    struct mock_batch *next; /* of those that are to be put there later */
    struct dt_nccl_comm *comm;
    dt_stream_t stream;
    struct mock_message *messages;
    size_t n;
    struct fold *folds;
    bool never;
};

static _Thread_local struct {
    int depth;
    struct mock_batch *batch;
} group;

/* ---- a batch ---- */

void mock_batch_free(struct mock_batch *batch)
{
    struct fold *next;
    for (struct fold *fold = batch->folds; fold; fold = next) {
        next = fold->next;
        for (int r = 0; r < batch->comm->size; r++)
            free(fold->in[r]);
        free(fold);
    }
    free(batch->messages);
    free(batch);
}

static void run_fold(const struct fold *fold, int size)
{
    dt_exec_reduce_n(fold->out, (const void *const *)fold->in, (size_t)size,
                     fold->count, fold->dtype, fold->op, 1);
    if (fold->op == DT_OP_AVG)
        dt_exec_divide(fold->out, fold->count, fold->dtype, (size_t)size);
    if (mock_nccl_settings()->wrong)
        fold->out[0] ^= 1;
}

/* On the stream's thread. */
static void run_batch(void *arg)
{
    struct mock_batch *batch = arg;
    struct dt_nccl_comm *comm = batch->comm;
    while (!comm->aborted &&
           (batch->never ||
            !mock_mail_move(comm->mail, batch->messages, batch->n)))
        usleep(20);
    for (const struct fold *f = batch->folds; f && !comm->aborted; f = f->next)
        run_fold(f, comm->size);
    mock_batch_free(batch);
    comm->running--;
}

int mock_batch_launch(struct mock_batch *batch)
{
    static atomic_int collectives;
    struct dt_nccl_comm *comm = batch->comm;
    comm->running++;
    if (++collectives == mock_nccl_settings()->async_from) {
        comm->error = mock_nccl_settings()->async;
        batch->never = true;
    }
    if (!cuLaunchHostFunc(batch->stream, run_batch, batch))
        return DT_NCCL_OK;
    comm->running--;
    mock_batch_free(batch);
    return CUDA_ERROR;
}

static int put(struct mock_batch *batch)
{
    struct dt_nccl_comm *comm = batch->comm;
    if (!mock_nccl_settings()->later)
        return mock_batch_launch(batch);
    comm->batch = batch;
    comm->error = DT_NCCL_IN_PROGRESS;
    mock_nccl_later(comm);
    return DT_NCCL_IN_PROGRESS;
}

/* The one that this call belongs to. */
static struct mock_batch *batch_of(struct dt_nccl_comm *comm,
                                   dt_stream_t stream)
{
    struct mock_batch *batch = group.batch;
    if (batch)
        return batch->comm == comm && batch->stream == stream ? batch : NULL;
    batch = calloc(1, sizeof(*batch));
    if (!batch)
        abort();
    batch->comm = comm;
    batch->stream = stream;
    group.batch = batch;
    return batch;
}

static void add(struct mock_batch *batch, bool sends, int peer, const void *at,
                size_t len)
{
    batch->messages =
        realloc(batch->messages, (batch->n + 1) * sizeof(*batch->messages));
    if (!batch->messages)
        abort();
    batch->messages[batch->n++] = (struct mock_message){
        .sends = sends, .peer = peer, .at = (char *)(uintptr_t)at, .len = len};
}

/* Begin a call of a communicator. */
static int enter(enum mock_nccl_call call, struct dt_nccl_comm *comm,
                 dt_stream_t stream, struct mock_batch **batch)
{
    int code = mock_nccl_begin(call), device = -1;
    if (code == DT_NCCL_IN_PROGRESS) {
        comm->error = code;
        comm->stuck = true;
    }
    if (!code && comm->error != DT_NCCL_IN_PROGRESS)
        code = comm->error;
    if (code)
        return code;
    if (comm->inside++ || comm->error || cuCtxGetDevice(&device) ||
        device != comm->device) {
        fprintf(stderr, "mock: NCCL called by two threads, on another device, "
                        "or too early\n");
        comm->inside--;
        return INVALID_USAGE;
    }
    *batch = batch_of(comm, stream);
    comm->inside--;
    return *batch ? DT_NCCL_OK : INVALID_USAGE;
}

static int leave(void)
{
    struct mock_batch *batch = group.batch;
    if (group.depth || !batch)
        return DT_NCCL_OK;
    group.batch = NULL;
    return put(batch);
}

int ncclGroupStart(void)
{
    int code = mock_nccl_begin(CALL_ncclGroupStart);
    group.depth += !code;
    return code;
}

int ncclGroupEnd(void)
{
    int code = mock_nccl_begin(CALL_ncclGroupEnd);
    if (!group.depth)
        return INVALID_USAGE;
    group.depth--;
    return code ? code : leave();
}

/* ---- collectives ---- */

static bool type_of(enum dt_nccl_type type, dt_dtype_t *dtype)
{
    static const int types[] = {
        [DT_NCCL_I8] = DT_DTYPE_I8 + 1,   [DT_NCCL_U8] = DT_DTYPE_U8 + 1,
        [DT_NCCL_I32] = DT_DTYPE_I32 + 1, [DT_NCCL_I64] = DT_DTYPE_I64 + 1,
        [DT_NCCL_F16] = DT_DTYPE_F16 + 1, [DT_NCCL_F32] = DT_DTYPE_F32 + 1,
        [DT_NCCL_F64] = DT_DTYPE_F64 + 1, [DT_NCCL_BF16] = DT_DTYPE_BF16 + 1,
    };
    if ((size_t)type >= sizeof(types) / sizeof(types[0]) || !types[type])
        return false;
    *dtype = (dt_dtype_t)(types[type] - 1);
    return true;
}

/* The reduction of what all ranks send me, into out. */
static bool add_fold(struct mock_batch *batch, char *out, size_t count,
                     enum dt_nccl_type type, enum dt_nccl_op op)
{
    static const dt_op_t ops[] = {DT_OP_SUM, DT_OP_PROD, DT_OP_MAX, DT_OP_MIN,
                                  DT_OP_AVG};
    struct fold *fold = calloc(1, sizeof(*fold)), **last = &batch->folds;
    if (!fold || !type_of(type, &fold->dtype) || (size_t)op > 4)
        return free(fold), false;
    while (*last)
        last = &(*last)->next;
    *last = fold;
    fold->out = out;
    fold->count = count;
    fold->op = ops[op];
    for (int r = 0; r < batch->comm->size; r++) {
        size_t len = count * dt_dtype_size(fold->dtype);
        fold->in[r] = malloc(len + 1);
        if (!fold->in[r])
            abort();
        add(batch, false, r, fold->in[r], len);
    }
    return true;
}

static size_t size_of(enum dt_nccl_type type)
{
    dt_dtype_t dtype = DT_DTYPE_U8;
    return type_of(type, &dtype) ? dt_dtype_size(dtype) : 0;
}

int ncclAllReduce(const void *send, void *recv, size_t count,
                  enum dt_nccl_type type, enum dt_nccl_op op,
                  struct dt_nccl_comm *comm, dt_stream_t stream)
{
    struct mock_batch *batch;
    int code = enter(CALL_ncclAllReduce, comm, stream, &batch);
    if (code)
        return code;
    for (int r = 0; r < comm->size; r++)
        add(batch, true, r, send, count * size_of(type));
    return add_fold(batch, recv, count, type, op) ? leave() : INVALID_ARGUMENT;
}

int ncclReduce(const void *send, void *recv, size_t count,
               enum dt_nccl_type type, enum dt_nccl_op op, int root,
               struct dt_nccl_comm *comm, dt_stream_t stream)
{
    struct mock_batch *batch;
    int code = enter(CALL_ncclReduce, comm, stream, &batch);
    if (code)
        return code;
    add(batch, true, root, send, count * size_of(type));
    if (root == comm->rank && !add_fold(batch, recv, count, type, op))
        return INVALID_ARGUMENT;
    return leave();
}

int ncclReduceScatter(const void *send, void *recv, size_t count,
                      enum dt_nccl_type type, enum dt_nccl_op op,
                      struct dt_nccl_comm *comm, dt_stream_t stream)
{
    struct mock_batch *batch;
    const size_t len = count * size_of(type);
    int code = enter(CALL_ncclReduceScatter, comm, stream, &batch);
    if (code)
        return code;
    for (int r = 0; r < comm->size; r++)
        add(batch, true, r, (const char *)send + (size_t)r * len, len);
    return add_fold(batch, recv, count, type, op) ? leave() : INVALID_ARGUMENT;
}

int ncclBroadcast(const void *send, void *recv, size_t count,
                  enum dt_nccl_type type, int root, struct dt_nccl_comm *comm,
                  dt_stream_t stream)
{
    struct mock_batch *batch;
    int code = enter(CALL_ncclBroadcast, comm, stream, &batch);
    if (code)
        return code;
    for (int r = 0; r < comm->size && root == comm->rank; r++)
        add(batch, true, r, send, count * size_of(type));
    add(batch, false, root, recv, count * size_of(type));
    return leave();
}

int ncclAllGather(const void *send, void *recv, size_t count,
                  enum dt_nccl_type type, struct dt_nccl_comm *comm,
                  dt_stream_t stream)
{
    struct mock_batch *batch;
    const size_t len = count * size_of(type);
    int code = enter(CALL_ncclAllGather, comm, stream, &batch);
    if (code)
        return code;
    for (int r = 0; r < comm->size; r++) {
        add(batch, true, r, send, len);
        add(batch, false, r, (char *)recv + (size_t)r * len, len);
    }
    return leave();
}

int ncclSend(const void *buf, size_t count, enum dt_nccl_type type, int peer,
             struct dt_nccl_comm *comm, dt_stream_t stream)
{
    struct mock_batch *batch;
    int code = enter(CALL_ncclSend, comm, stream, &batch);
    if (code)
        return code;
    add(batch, true, peer, buf, count * size_of(type));
    return leave();
}

int ncclRecv(void *buf, size_t count, enum dt_nccl_type type, int peer,
             struct dt_nccl_comm *comm, dt_stream_t stream)
{
    struct mock_batch *batch;
    int code = enter(CALL_ncclRecv, comm, stream, &batch);
    if (code)
        return code;
    add(batch, false, peer, buf, count * size_of(type));
    return leave();
}
