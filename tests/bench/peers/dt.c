/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* dt.c - libdt; variant "registered": memory of dt_mem_alloc */
#include <dt.h>
#include <stdio.h>
#include <string.h>

#include "contender.h"

enum { REQUESTS = 1024 };

/* one job in a process, and bench_main calls back without an argument */
static struct {
    bool registered;
    dt_request_t requests[REQUESTS];
    size_t n;
} job;

static int check(dt_result_t rc)
{
    if (rc == DT_SUCCESS)
        return 0;
    fprintf(stderr, "bench: libdt: %s\n", dt_last_error());
    return rc == DT_ERR_UNSUPPORTED ? 1 : -1;
}

static dt_dtype_t dtype(enum element type)
{
    return type == ELEMENT_F32    ? DT_DTYPE_F32
           : type == ELEMENT_BF16 ? DT_DTYPE_BF16
                                  : DT_DTYPE_F16;
}

static int start(const char *variant, int *rank, int *size)
{
    if (check(dt_init()))
        return -1;
    *rank = dt_rank();
    *size = dt_size();
    job.registered = !strcmp(variant, "registered");
    return 0;
}

#pragma weak dt_mem_alloc
static int alloc(size_t bytes, void **ptr)
{
    if (!job.registered)
        return 0;
    if (!dt_mem_alloc) {
        fprintf(stderr, "bench: this libdt has no dt_mem_alloc\n");
        return 1;
    }
    return check(dt_mem_alloc(bytes, ptr));
}

static int allreduce(const void *in, void *out, size_t count, enum element type)
{
    return check(dt_allreduce(in, out, count, dtype(type), DT_OP_SUM,
                              dt_comm_world(), DT_STREAM_NONE));
}

static int begin(void *buf, size_t count, enum element type)
{
    if (job.n == REQUESTS)
        return -1;
    return check(dt_iallreduce(buf, buf, count, dtype(type), DT_OP_SUM,
                               dt_comm_world(), DT_STREAM_NONE,
                               &job.requests[job.n++]));
}

static int finish(void)
{
    int rc = 0;
    for (size_t i = 0; i < job.n && !rc; i++)
        rc = check(dt_wait(&job.requests[i]));
    job.n = 0;
    return rc;
}

static void stop(void)
{
    dt_finalize();
}

int main(int argc, char **argv)
{
    static const struct contender libdt = {.start = start,
                                           .alloc = alloc,
                                           .allreduce = allreduce,
                                           .begin = begin,
                                           .finish = finish,
                                           .stop = stop};
    return bench_main(argc, argv, &libdt);
}
