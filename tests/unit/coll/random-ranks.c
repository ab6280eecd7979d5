/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* random-ranks.c - one rank of a random program on libdt:
 *
 *   random-ranks SEED STEPS [print]
 *
 * Exits 0 if every result was what it must be; print: also a digest of the
 * results of each step, as random-mpi prints it. */
#include <stdlib.h>

#include "dt.h"
#include "random-program.h"

static struct random_comm parts[RANDOM_COMMS];
static dt_comm_t comms[RANDOM_COMMS];
static int wrong;

/* A call with its buffers. */
struct job {
    const struct random_call *call;
    const struct random_comm *part;
    dt_comm_t comm;
    struct random_extent extent;
    dt_dtype_t dtype;
    char *room[2], *send, *recv;
    size_t sendcounts[RANDOM_RANKS], senddispls[RANDOM_RANKS];
    size_t recvcounts[RANDOM_RANKS], recvdispls[RANDOM_RANKS];
    dt_request_t request[2];
};

/* ---- what must come out ---- */

static int64_t combine(const struct random_call *call, int64_t a, int64_t b)
{
    switch (call->op) {
    case RANDOM_MIN:
        return b < a ? b : a;
    case RANDOM_MAX:
        return b > a ? b : a;
    case RANDOM_PROD:
        return a * b;
    default:
        return a + b;
    }
}

static int64_t reduced(const struct job *job, size_t i)
{
    int64_t value = random_value(job->call, 0, i);
    for (int r = 1; r < job->part->size; r++)
        value = combine(job->call, value, random_value(job->call, r, i));
    return value;
}

/* Element i of the block of rank r, of those that go by block. */
static int64_t from_block(const struct job *job, int r, size_t i)
{
    const struct random_call *call = job->call;
    size_t at = 0;
    if (call->coll == RANDOM_ALLTOALL)
        at = (size_t)job->part->rank * call->count;
    for (int to = 0; call->coll == RANDOM_ALLTOALLV && to < job->part->rank;
         to++)
        at += random_between(call, r, to);
    return random_value(call, r, at + i);
}

static int64_t wanted(const struct job *job, size_t i)
{
    const struct random_call *call = job->call;
    const struct random_comm *part = job->part;
    int r = 0;
    switch (call->coll) {
    case RANDOM_ALLREDUCE:
    case RANDOM_REDUCE:
        return reduced(job, i);
    case RANDOM_REDUCE_SCATTER:
    case RANDOM_REDUCE_SCATTERV:
        return reduced(job, job->extent.mine + i);
    case RANDOM_BCAST:
        return random_value(call, call->root, i);
    case RANDOM_SCATTER:
        return random_value(call, call->root, job->extent.mine + i);
    case RANDOM_SHIFT:
        r = (part->rank + part->size - call->root) % part->size;
        return random_value(call, r, i);
    default:
        while (r < part->size - 1 && i >= job->recvdispls[r + 1])
            r++;
        return from_block(job, r, i - job->recvdispls[r]);
    }
}

static void verify(const struct job *job, unsigned step, size_t k)
{
    char want[8];
    size_t elem = random_size(job->call->type);
    if (!random_receives(job->call, job->part))
        return;
    for (size_t i = 0; i < job->extent.recv; i++) {
        random_put(want, 0, job->call->type, wanted(job, i));
        if (!memcmp(job->recv + i * elem, want, elem))
            continue;
        fprintf(stderr,
                "rank %d: step %u call %zu: element %zu of collective %d, type "
                "%d, op %d, count %zu, root %d, communicator %d%s\n",
                dt_rank(), step, k, i, job->call->coll, job->call->type,
                job->call->op, job->call->count, job->call->root,
                job->call->comm, job->call->in_place ? ", in place" : "");
        wrong++;
        return;
    }
}

/* ---- running it ---- */

static void lay_out(struct job *job)
{
    const struct random_call *call = job->call;
    bool gathers = call->coll == RANDOM_ALLGATHERV;
    bool scatters = call->coll == RANDOM_REDUCE_SCATTERV;
    size_t sent = 0, received = 0;
    for (int r = 0; r < job->part->size; r++) {
        int me = job->part->rank;
        job->sendcounts[r] = random_between(call, scatters ? -1 : me, r);
        job->recvcounts[r] = random_between(call, r, gathers ? -1 : me);
        job->senddispls[r] = sent;
        job->recvdispls[r] = received;
        sent += job->sendcounts[r];
        received += job->recvcounts[r];
    }
}

/* Where this call may be in place, its buffers are one. */
static void place(struct job *job)
{
    size_t at = job->extent.mine * random_size(job->call->type);
    job->send = job->room[0];
    job->recv = job->room[1];
    if (!job->call->in_place)
        return;
    switch (job->call->coll) {
    case RANDOM_ALLGATHER:
    case RANDOM_ALLGATHERV:
        job->send = job->recv + at;
        break;
    case RANDOM_GATHER:
        if (job->call->root == job->part->rank)
            job->send = job->recv + at;
        break;
    case RANDOM_REDUCE_SCATTER:
    case RANDOM_REDUCE_SCATTERV:
        job->recv = job->send + at;
        break;
    case RANDOM_SCATTER:
        if (job->call->root == job->part->rank)
            job->recv = job->send + at;
        break;
    case RANDOM_ALLREDUCE:
    case RANDOM_REDUCE:
        job->recv = job->send;
        break;
    default:
        break;
    }
}

static void prepare(struct job *job, const struct random_call *call)
{
    static const dt_dtype_t dtypes[RANDOM_TYPES] = {DT_DTYPE_I8,  DT_DTYPE_U8,
                                                    DT_DTYPE_I32, DT_DTYPE_I64,
                                                    DT_DTYPE_F32, DT_DTYPE_F64};
    job->call = call;
    job->part = &parts[call->comm];
    job->comm = comms[call->comm];
    job->extent = random_extent(call, job->part);
    job->dtype = dtypes[call->type];
    job->request[0] = job->request[1] = NULL;
    lay_out(job);
    place(job);
    for (size_t i = 0; i < job->extent.send; i++)
        random_put(job->send, i, call->type,
                   random_value(call, job->part->rank, i));
    if (call->coll == RANDOM_BCAST && call->root == job->part->rank)
        memcpy(job->recv, job->send,
               job->extent.send * random_size(call->type));
}

/* The blocking form of a call, or the i-form. */
#define RUN(name, ...)                                                         \
    (later ? dt_i##name(__VA_ARGS__, DT_STREAM_NONE, &job->request[0])         \
           : dt_##name(__VA_ARGS__, DT_STREAM_NONE))

static dt_result_t shift(struct job *job, bool later)
{
    const struct random_call *call = job->call;
    int n = job->part->size, me = job->part->rank;
    int to = (me + call->root) % n, from = (me + n - call->root) % n;
    if (to == me) {
        memcpy(job->recv, job->send, call->count * random_size(call->type));
        return DT_SUCCESS;
    }
    dt_result_t rc = dt_group_start();
    if (rc == DT_SUCCESS)
        rc = RUN(send, job->send, call->count, job->dtype, to, job->comm);
    if (rc == DT_SUCCESS && later)
        rc = dt_irecv(job->recv, call->count, job->dtype, from, job->comm,
                      DT_STREAM_NONE, &job->request[1]);
    else if (rc == DT_SUCCESS)
        rc = dt_recv(job->recv, call->count, job->dtype, from, job->comm,
                     DT_STREAM_NONE);
    dt_result_t ended = dt_group_end();
    return rc == DT_SUCCESS ? ended : rc;
}

static dt_result_t run(struct job *job, bool later)
{
    static const dt_op_t ops[RANDOM_OPS] = {DT_OP_SUM, DT_OP_MIN, DT_OP_MAX,
                                            DT_OP_PROD};
    const struct random_call *call = job->call;
    dt_op_t op = ops[call->op];
    switch (call->coll) {
    case RANDOM_ALLREDUCE:
        return RUN(allreduce, job->send, job->recv, call->count, job->dtype, op,
                   job->comm);
    case RANDOM_REDUCE:
        return RUN(reduce, job->send, job->recv, call->count, job->dtype, op,
                   call->root, job->comm);
    case RANDOM_BCAST:
        return RUN(bcast, job->recv, call->count, job->dtype, call->root,
                   job->comm);
    case RANDOM_ALLGATHER:
        return RUN(allgather, job->send, job->recv, call->count, job->dtype,
                   job->comm);
    case RANDOM_ALLGATHERV:
        return RUN(allgatherv, job->send, job->recv, job->recvcounts,
                   job->recvdispls, job->dtype, job->comm);
    case RANDOM_REDUCE_SCATTER:
        return RUN(reduce_scatter, job->send, job->recv, call->count,
                   job->dtype, op, job->comm);
    case RANDOM_REDUCE_SCATTERV:
        return RUN(reduce_scatterv, job->send, job->recv, job->sendcounts,
                   job->dtype, op, job->comm);
    case RANDOM_ALLTOALL:
        return RUN(alltoall, job->send, job->recv, call->count, job->dtype,
                   job->comm);
    case RANDOM_ALLTOALLV:
        return RUN(alltoallv, job->send, job->sendcounts, job->senddispls,
                   job->recv, job->recvcounts, job->recvdispls, job->dtype,
                   job->comm);
    case RANDOM_GATHER:
        return RUN(gather, job->send, job->recv, call->count, job->dtype,
                   call->root, job->comm);
    case RANDOM_SCATTER:
        return RUN(scatter, job->send, job->recv, call->count, job->dtype,
                   call->root, job->comm);
    case RANDOM_BARRIER:
        return later ? dt_ibarrier(job->comm, DT_STREAM_NONE, &job->request[0])
                     : dt_barrier(job->comm, DT_STREAM_NONE);
    default:
        return shift(job, later);
    }
}

static dt_result_t run_step(struct job *jobs, const struct random_step *step)
{
    bool later = step->form == RANDOM_LATER;
    dt_result_t rc = DT_SUCCESS;
    for (size_t k = 0; k < step->n; k++)
        prepare(&jobs[k], &step->calls[k]);
    if (step->form == RANDOM_GROUP)
        rc = dt_group_start();
    for (size_t k = 0; rc == DT_SUCCESS && k < step->n; k++)
        rc = run(&jobs[k], later);
    if (step->form == RANDOM_GROUP && rc == DT_SUCCESS)
        rc = dt_group_end();
    for (size_t k = 0; rc == DT_SUCCESS && later && k < step->n; k++)
        for (int i = 0; rc == DT_SUCCESS && i < 2; i++)
            rc = dt_wait(&jobs[step->order[k]].request[i]);
    return rc;
}

static dt_result_t run_all(uint64_t seed, unsigned steps, bool print,
                           struct job *jobs)
{
    struct random_state random = {seed};
    struct random_step step;
    dt_result_t rc = DT_SUCCESS;
    for (unsigned s = 0; rc == DT_SUCCESS && s < steps; s++) {
        uint64_t digest = RANDOM_DIGEST;
        random_step(&random, parts, &step);
        rc = run_step(jobs, &step);
        for (size_t k = 0; rc == DT_SUCCESS && k < step.n; k++) {
            verify(&jobs[k], s, k);
            if (random_receives(jobs[k].call, jobs[k].part))
                digest = random_digest(digest, jobs[k].recv,
                                       jobs[k].extent.recv *
                                           random_size(jobs[k].call->type));
        }
        if (print)
            printf("rank %d step %u %016llx\n", dt_rank(), s,
                   (unsigned long long)digest);
    }
    return rc;
}

int main(int argc, char **argv)
{
    static struct job jobs[RANDOM_TOGETHER];
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    unsigned steps = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 50;
    dt_result_t rc = dt_init();
    setvbuf(stdout, NULL, _IOLBF, 0); /* whole lines, whoever else prints */
    for (int c = 0; rc == DT_SUCCESS && c < RANDOM_COMMS; c++) {
        random_comm(seed, c, dt_rank(), dt_size(), &parts[c]);
        comms[c] = dt_comm_world();
        if (c)
            rc = dt_comm_split(dt_comm_world(), parts[c].color, parts[c].key,
                               &comms[c]);
    }
    size_t room = (size_t)(rc ? 1 : dt_size()) * RANDOM_ROOM * 8;
    for (int k = 0; rc == DT_SUCCESS && k < RANDOM_TOGETHER * 2; k++) {
        /* some of each kind of memory */
        void *ptr = NULL;
        if (k % 3 == 0)
            rc = dt_mem_alloc(room, &ptr);
        else
            ptr = malloc(room);
        jobs[k / 2].room[k % 2] = ptr;
    }
    if (rc == DT_SUCCESS)
        rc = run_all(seed, steps, argc > 3, jobs);
    if (rc == DT_SUCCESS)
        rc = dt_finalize();
    if (rc != DT_SUCCESS)
        fprintf(stderr, "seed %llu: %s: %s\n", (unsigned long long)seed,
                dt_strerror(rc), dt_last_error());
    for (int k = 0; k < RANDOM_TOGETHER * 2; k++)
        if (k % 3)
            free(jobs[k / 2].room[k % 2]);
    return rc != DT_SUCCESS || wrong;
}
