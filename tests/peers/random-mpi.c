/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* random-mpi.c - one rank of a random program on MPI: `random-mpi SEED STEPS`
 * prints what random-ranks with the same arguments and `print` prints. */
#include <mpi.h>
#include <stdlib.h>

#include "../unit/coll/random-program.h"

static struct random_comm parts[RANDOM_COMMS];
static MPI_Comm comms[RANDOM_COMMS];

/* One call, on which buffers, and the counts of its uneven forms. */
struct job {
    const struct random_call *call;
    const struct random_comm *part;
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Op op;
    int count;
    char *send, *recv;
    int sendcounts[RANDOM_RANKS], senddispls[RANDOM_RANKS];
    int recvcounts[RANDOM_RANKS], recvdispls[RANDOM_RANKS];
};

static void lay_out(struct job *job)
{
    const struct random_call *call = job->call;
    bool gathers = call->coll == RANDOM_ALLGATHERV;
    bool scatters = call->coll == RANDOM_REDUCE_SCATTERV;
    int sent = 0, received = 0, me = job->part->rank;
    for (int r = 0; r < job->part->size; r++) {
        job->sendcounts[r] = (int)random_between(call, scatters ? -1 : me, r);
        job->recvcounts[r] = (int)random_between(call, r, gathers ? -1 : me);
        job->senddispls[r] = sent;
        job->recvdispls[r] = received;
        sent += job->sendcounts[r];
        received += job->recvcounts[r];
    }
}

static void shift(const struct job *job)
{
    int n = job->part->size, me = job->part->rank;
    MPI_Sendrecv(job->send, job->count, job->type, (me + job->call->root) % n,
                 0, job->recv, job->count, job->type,
                 (me + n - job->call->root) % n, 0, job->comm,
                 MPI_STATUS_IGNORE);
}

static void run(struct job *job)
{
    const struct random_call *call = job->call;
    char *send = job->send, *recv = job->recv;
    switch (call->coll) {
    case RANDOM_ALLREDUCE:
        MPI_Allreduce(send, recv, job->count, job->type, job->op, job->comm);
        break;
    case RANDOM_REDUCE:
        MPI_Reduce(send, recv, job->count, job->type, job->op, call->root,
                   job->comm);
        break;
    case RANDOM_BCAST:
        memcpy(recv, send, call->count * random_size(call->type));
        MPI_Bcast(recv, job->count, job->type, call->root, job->comm);
        break;
    case RANDOM_ALLGATHER:
        MPI_Allgather(send, job->count, job->type, recv, job->count, job->type,
                      job->comm);
        break;
    case RANDOM_ALLGATHERV:
        MPI_Allgatherv(send, job->recvcounts[job->part->rank], job->type, recv,
                       job->recvcounts, job->recvdispls, job->type, job->comm);
        break;
    case RANDOM_REDUCE_SCATTER:
        MPI_Reduce_scatter_block(send, recv, job->count, job->type, job->op,
                                 job->comm);
        break;
    case RANDOM_REDUCE_SCATTERV:
        MPI_Reduce_scatter(send, recv, job->sendcounts, job->type, job->op,
                           job->comm);
        break;
    case RANDOM_ALLTOALL:
        MPI_Alltoall(send, job->count, job->type, recv, job->count, job->type,
                     job->comm);
        break;
    case RANDOM_ALLTOALLV:
        MPI_Alltoallv(send, job->sendcounts, job->senddispls, job->type, recv,
                      job->recvcounts, job->recvdispls, job->type, job->comm);
        break;
    case RANDOM_GATHER:
        MPI_Gather(send, job->count, job->type, recv, job->count, job->type,
                   call->root, job->comm);
        break;
    case RANDOM_SCATTER:
        MPI_Scatter(send, job->count, job->type, recv, job->count, job->type,
                    call->root, job->comm);
        break;
    case RANDOM_BARRIER:
        MPI_Barrier(job->comm);
        break;
    default:
        shift(job);
    }
}

static uint64_t run_call(const struct random_call *call, uint64_t digest,
                         char *send, char *recv)
{
    const MPI_Datatype types[RANDOM_TYPES] = {
        MPI_INT8_T,  MPI_UINT8_T, MPI_INT32_T,
        MPI_INT64_T, MPI_FLOAT,   MPI_DOUBLE,
    };
    const MPI_Op ops[RANDOM_OPS] = {MPI_SUM, MPI_MIN, MPI_MAX, MPI_PROD};
    struct job job = {.call = call,
                      .part = &parts[call->comm],
                      .comm = comms[call->comm],
                      .type = types[call->type],
                      .op = ops[call->op],
                      .count = (int)call->count,
                      .send = send,
                      .recv = recv};
    struct random_extent extent = random_extent(call, job.part);
    lay_out(&job);
    for (size_t i = 0; i < extent.send; i++)
        random_put(send, i, call->type, random_value(call, job.part->rank, i));
    run(&job);
    if (!random_receives(call, job.part))
        return digest;
    return random_digest(digest, recv, extent.recv * random_size(call->type));
}

int main(int argc, char **argv)
{
    int rank, size;
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    unsigned steps = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 50;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int c = 0; c < RANDOM_COMMS; c++) {
        random_comm(seed, c, rank, size, &parts[c]);
        MPI_Comm_split(MPI_COMM_WORLD, parts[c].color, parts[c].key, &comms[c]);
    }
    size_t room = (size_t)size * RANDOM_ROOM * 8;
    char *send = malloc(room), *recv = malloc(room);
    struct random_state random = {seed};
    struct random_step step;
    for (unsigned s = 0; send && recv && s < steps; s++) {
        uint64_t digest = RANDOM_DIGEST;
        random_step(&random, parts, &step);
        for (size_t k = 0; k < step.n; k++)
            digest = run_call(&step.calls[k], digest, send, recv);
        printf("rank %d step %u %016llx\n", rank, s,
               (unsigned long long)digest);
    }
    free(send);
    free(recv);
    MPI_Finalize();
    return 0;
}
