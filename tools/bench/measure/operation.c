/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* operation.c - the operations of libdt that are measured. */
#include <string.h>

#include "bench.h"

static dt_result_t run_allreduce(const struct call *c)
{
    return dt_allreduce(c->send, c->recv, c->count, c->dtype, c->op,
                        c->job->comm, c->stream);
}

static dt_result_t run_reduce(const struct call *c)
{
    return dt_reduce(c->send, c->recv, c->count, c->dtype, c->op, c->root,
                     c->job->comm, c->stream);
}

static dt_result_t run_bcast(const struct call *c)
{
    return dt_bcast(c->recv, c->count, c->dtype, c->root, c->job->comm,
                    c->stream);
}

static dt_result_t run_allgather(const struct call *c)
{
    return dt_allgather(c->send, c->recv, c->count, c->dtype, c->job->comm,
                        c->stream);
}

static dt_result_t run_reduce_scatter(const struct call *c)
{
    return dt_reduce_scatter(c->send, c->recv, c->count, c->dtype, c->op,
                             c->job->comm, c->stream);
}

static dt_result_t run_alltoall(const struct call *c)
{
    return dt_alltoall(c->send, c->recv, c->count, c->dtype, c->job->comm,
                       c->stream);
}

/* Send to the next rank, receive from the previous one. */
static dt_result_t run_sendrecv(const struct call *c)
{
    const struct job *job = c->job;
    int next = (job->rank + 1) % job->size;
    int before = (job->rank + job->size - 1) % job->size;
    dt_result_t rc = dt_group_start();
    if (rc != DT_SUCCESS)
        return rc;
    rc = dt_send(c->send, c->count, c->dtype, next, job->comm, c->stream);
    if (rc == DT_SUCCESS)
        rc = dt_recv(c->recv, c->count, c->dtype, before, job->comm, c->stream);
    dt_result_t end = dt_group_end();
    return rc == DT_SUCCESS ? end : rc;
}

static dt_result_t run_barrier(const struct call *c)
{
    return dt_barrier(c->job->comm, c->stream);
}

static const struct operation operations[] = {
    {.name = "allreduce",
     .data = DATA_REDUCED,
     .inside = true,
     .outside = true,
     .run = run_allreduce},
    {.name = "reduce",
     .data = DATA_REDUCED,
     .rooted = true,
     .inside = true,
     .outside = true,
     .run = run_reduce},
    {.name = "bcast",
     .data = DATA_MOVED,
     .rooted = true,
     .inside = true,
     .run = run_bcast},
    {.name = "allgather",
     .data = DATA_MOVED,
     .inside = true,
     .outside = true,
     .split = true,
     .parts_received = true,
     .run = run_allgather},
    {.name = "reduce_scatter",
     .data = DATA_REDUCED,
     .inside = true,
     .outside = true,
     .split = true,
     .parts_sent = true,
     .run = run_reduce_scatter},
    {.name = "alltoall",
     .data = DATA_MOVED,
     .outside = true,
     .split = true,
     .parts_sent = true,
     .parts_received = true,
     .run = run_alltoall},
    {.name = "sendrecv",
     .data = DATA_MOVED,
     .outside = true,
     .run = run_sendrecv},
    {.name = "barrier", .outside = true, .run = run_barrier},
};

const struct operation *operation_by_name(const char *name)
{
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
        if (!strcmp(name, operations[i].name))
            return &operations[i];
    return NULL;
}

const char *operation_names(void)
{
    return "allreduce, reduce, bcast, allgather, reduce_scatter, alltoall, "
           "sendrecv, barrier";
}

double operation_bus(const struct operation *operation, int ranks)
{
    double others = (double)(ranks - 1) / ranks;
    if (operation->run == run_allreduce)
        return 2 * others;
    return operation->split ? others : 1;
}
