/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* node-each.c - every collective on GPUs: bit for bit what a loop over the
 * ranks makes of it, and what the collectives on host memory give; and nothing
 * else is written to. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "exec/exec.h"
#include "node-ranks.h"

#define GUARD 64 /* bytes around what a call may touch */

/* One call. Its buffers are in two areas, or, in place, both in the first. */
struct job {
    struct bench *b;
    struct dt_shape shape;
    size_t rank, size;
    size_t shift;              /* of the buffers from where they are aligned */
    size_t row;                /* bytes */
    size_t send_len, recv_len; /* bytes */
    bool sends, recvs;         /* are the buffers looked at? */
    size_t send_at, recv_at;   /* in their areas */
    size_t room;               /* of an area */
};

static void measure(struct job *job)
{
    struct dt_shape *s = &job->shape;
    const bool root = job->rank == s->root;
    const bool many_sent = s->coll == DT_COLL_REDUCE_SCATTER ||
                           s->coll == DT_COLL_SCATTER ||
                           s->coll == DT_COLL_ALLTOALL;
    const bool many_received = s->coll == DT_COLL_ALLGATHER ||
                               s->coll == DT_COLL_GATHER ||
                               s->coll == DT_COLL_ALLTOALL;
    job->row = s->count * dt_dtype_size(s->dtype);
    job->send_len = many_sent ? job->size * job->row : job->row;
    job->recv_len = many_received ? job->size * job->row : job->row;
    job->sends = s->coll != DT_COLL_SCATTER || root;
    job->recvs =
        (s->coll != DT_COLL_REDUCE && s->coll != DT_COLL_GATHER) || root;
    s->in_place &= job->sends && job->recvs && s->coll != DT_COLL_ALLTOALL;
    if (s->coll == DT_COLL_BCAST)
        s->in_place = true;
    job->send_at = job->recv_at = GUARD + job->shift;
    if (s->in_place && many_received)
        job->send_at += job->rank * job->row;
    if (s->in_place && many_sent)
        job->recv_at += job->rank * job->row;
    job->room =
        (job->send_len > job->recv_len ? job->send_len : job->recv_len) +
        job->shift + 2 * GUARD;
}

/* What a rank sends: any bits. */
static void fill(const struct job *job, size_t rank, char *to)
{
    uint64_t state = job->shape.count * 1000003u + rank * 7919u + 1, bits;
    for (size_t i = 0; i < job->send_len; i += sizeof(bits)) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        bits = state ^ state >> 29;
        memcpy(to + i, &bits,
               job->send_len - i < sizeof(bits) ? job->send_len - i
                                                : sizeof(bits));
    }
}

/* The result by a loop, from all ranks' send buffers one after the other. */
static void compute(const struct job *job, const char *all, char *want)
{
    const struct dt_shape *s = &job->shape;
    const void *in[DT_GPU_PEERS];
    const size_t row = job->row, len = job->send_len, n = job->size;
    const size_t at = s->coll == DT_COLL_REDUCE_SCATTER ? job->rank * row : 0;
    const double scale = s->prescale * s->postscale;
    switch (s->coll) {
    case DT_COLL_BCAST:
        memcpy(want, all + s->root * len, row);
        return;
    case DT_COLL_SCATTER:
        memcpy(want, all + s->root * len + job->rank * row, row);
        return;
    case DT_COLL_ALLGATHER:
    case DT_COLL_GATHER:
        memcpy(want, all, n * row);
        return;
    case DT_COLL_ALLTOALL:
        for (size_t r = 0; r < n; r++)
            memcpy(want + r * row, all + r * len + job->rank * row, row);
        return;
    default:
        break;
    }
    for (size_t r = 0; r < n; r++)
        in[r] = all + r * len + at;
    if (n == 1 && s->op != DT_OP_AVG && scale == 1)
        memcpy(want, in[0], row);
    else
        dt_exec_reduce_n(want, in, n, s->count, s->dtype, s->op, scale);
    if (s->op == DT_OP_AVG)
        dt_exec_divide(want, s->count, s->dtype, n);
}

static void differ(const struct job *job, const char *what)
{
    const struct dt_shape *s = &job->shape;
    expect(false, "%s of %zu x type %d, op %d, root %zu, factor %g%s, +%zu: %s",
           dt_name_coll(s->coll), s->count, (int)s->dtype, (int)s->op, s->root,
           s->prescale, s->in_place ? ", in place" : "", job->shift, what);
}

/* The buffers in these areas. */
static void *send_of(const struct job *job, char *const area[2])
{
    return job->sends ? area[0] + job->send_at : NULL;
}

static void *recv_of(const struct job *job, char *const area[2])
{
    return job->recvs ? area[job->shape.in_place ? 0 : 1] + job->recv_at : NULL;
}

static void run_gpu(const struct job *job, char *const area[2])
{
    struct bench *b = job->b;
    struct dt_error err = {"not done when the stream is"};
    uint32_t ticket;
    for (size_t i = 0; i < 2; i++)
        move(b, b->area[i], area[i], job->room);
    dt_result_t rc =
        dt_gpu_node_start(b->node, &job->shape, send_of(job, b->area),
                          recv_of(job, b->area), b->stream, &ticket, &err);
    if (rc == DT_SUCCESS)
        rc = b->gpu->ops->finish(b->gpu, b->device, b->stream, &err);
    if (rc != DT_SUCCESS || !dt_gpu_node_done(b->node, ticket))
        differ(job, err.text);
    for (size_t i = 0; i < 2; i++)
        move(b, area[i], b->area[i], job->room);
}

static void compare(const struct job *job, char *const got[2],
                    char *const want[2], const char *what)
{
    for (size_t i = 0; i < 2; i++)
        if (memcmp(got[i], want[i], job->room) != 0)
            differ(job, what);
}

static void run(struct job *job)
{
    struct dt_error err;
    enum { WANT, GPU, HOST, WHO };
    char *area[WHO][2];
    measure(job);
    char *all = malloc(job->size * job->send_len);
    for (size_t r = 0; r < job->size; r++)
        fill(job, r, all + r * job->send_len);
    for (size_t w = 0; w < WHO; w++)
        for (size_t i = 0; i < 2; i++) {
            area[w][i] = malloc(job->room);
            memset(area[w][i], 0xa5, job->room);
            if (i == 0 && job->sends)
                memcpy(area[w][0] + job->send_at,
                       all + job->rank * job->send_len, job->send_len);
        }
    if (job->recvs)
        compute(job, all, recv_of(job, area[WANT]));
    run_gpu(job, area[GPU]);
    compare(job, area[GPU], area[WANT], "not what it should be");
    if (dt_comm_run(job->b->comm, &job->shape, send_of(job, area[HOST]),
                    recv_of(job, area[HOST]), &err) != DT_SUCCESS)
        differ(job, err.text);
    compare(job, area[HOST], area[GPU], "not what the host makes of it");
    for (size_t w = 0; w < WHO; w++)
        for (size_t i = 0; i < 2; i++)
            free(area[w][i]);
    free(all);
}

static struct job job_of(struct bench *b, enum dt_coll coll, size_t count)
{
    return (struct job){.b = b,
                        .rank = b->comm->rank,
                        .size = b->comm->size,
                        .shape = {.coll = coll,
                                  .dtype = DT_DTYPE_F32,
                                  .count = count,
                                  .prescale = 1,
                                  .postscale = 1}};
}

static bool reduces(enum dt_coll coll)
{
    return coll == DT_COLL_ALLREDUCE || coll == DT_COLL_REDUCE ||
           coll == DT_COLL_REDUCE_SCATTER;
}

/* One type, with all operations. */
static void each_op(struct bench *b, enum dt_coll coll, dt_dtype_t dtype,
                    size_t count, unsigned turn)
{
    const int ops = reduces(coll) ? DT_OP_PROD + 1 : 1;
    for (int op = 0; op < ops; op++, turn++) {
        struct job job = job_of(b, coll, count);
        job.shape.dtype = dtype;
        job.shape.op = (dt_op_t)op;
        job.shape.root = turn % b->comm->size;
        job.shape.in_place = turn % 3 == 1;
        job.shift = turn % 5 < 3 ? 0 : turn % 16 * dt_dtype_size(dtype);
        if (coll == DT_COLL_ALLREDUCE && dt_exec_is_float(dtype) &&
            (op == DT_OP_SUM || op == DT_OP_AVG) && turn % 2) {
            job.shape.prescale = 0.3;
            job.shape.postscale = 1.7;
        }
        const bool serves = dt_gpu_node_serves(&job.shape);
        expect(serves == (b->comm->layout.nnodes == 1 || !reduces(coll)),
               "collective %d is served: %d", (int)coll, serves);
        if (serves)
            run(&job);
    }
}

void each(struct bench *b)
{
    static const size_t counts[] = {1, 3, 257, 4099};
    unsigned turn = 0;
    for (int coll = 0; coll < DT_COLL_SEND; coll++)
        for (int dtype = 0; dtype <= DT_DTYPE_F8E5M2; dtype++)
            for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
                each_op(b, (enum dt_coll)coll, (dt_dtype_t)dtype, counts[i],
                        turn += 7);
}

void large(struct bench *b)
{
    static const struct {
        enum dt_coll coll;
        dt_dtype_t dtype;
        dt_op_t op;
        size_t bytes; /* of all rows */
    } jobs[] = {
        {DT_COLL_ALLREDUCE, DT_DTYPE_F32, DT_OP_SUM, 17 << 20},
        {DT_COLL_ALLREDUCE, DT_DTYPE_BF16, DT_OP_AVG, 1 << 20},
        {DT_COLL_REDUCE, DT_DTYPE_I8, DT_OP_MAX, 9 << 20},
        {DT_COLL_BCAST, DT_DTYPE_U8, DT_OP_SUM, 9 << 20},
        {DT_COLL_ALLGATHER, DT_DTYPE_I32, DT_OP_SUM, 9 << 20},
        {DT_COLL_REDUCE_SCATTER, DT_DTYPE_F64, DT_OP_SUM, 9 << 20},
        {DT_COLL_ALLTOALL, DT_DTYPE_F16, DT_OP_SUM, 9 << 20},
        {DT_COLL_GATHER, DT_DTYPE_F8E4M3, DT_OP_SUM, 9 << 20},
        {DT_COLL_SCATTER, DT_DTYPE_U8, DT_OP_SUM, 9 << 20},
    };
    const size_t n = b->comm->size;
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        const size_t elem = dt_dtype_size(jobs[i].dtype);
        const bool rows = jobs[i].coll == DT_COLL_ALLGATHER ||
                          jobs[i].coll >= DT_COLL_REDUCE_SCATTER;
        struct job job =
            job_of(b, jobs[i].coll, jobs[i].bytes / (rows ? n : 1) / elem + 1);
        job.shape.dtype = jobs[i].dtype;
        job.shape.op = jobs[i].op;
        job.shape.root = n - 1;
        job.shape.in_place = i % 2;
        run(&job);
    }
}
