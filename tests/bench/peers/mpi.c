/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* mpi.c - Open MPI and MPICH: the environment tells their variants apart */
#include <mpi.h>
#include <stdio.h>

#include "contender.h"

enum { REQUESTS = 1024 };

/* one job in a process, and bench_main calls back without an argument */
static struct {
    MPI_Request requests[REQUESTS];
    int n;
} job;

static int start(const char *variant, int *rank, int *size)
{
    (void)variant;
    if (MPI_Init(NULL, NULL))
        return -1;
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, size);
    return 0;
}

/* an error ends the program: MPI's default */
static int allreduce(const void *in, void *out, size_t count, enum element type)
{
    if (type != ELEMENT_F32) {
        fprintf(stderr, "bench: MPI has no 16-bit floating-point type\n");
        return 1;
    }
    MPI_Allreduce(in == out ? MPI_IN_PLACE : in, out, (int)count, MPI_FLOAT,
                  MPI_SUM, MPI_COMM_WORLD);
    return 0;
}

static int begin(void *buf, size_t count, enum element type)
{
    if (type != ELEMENT_F32 || job.n == REQUESTS)
        return 1;
    MPI_Iallreduce(MPI_IN_PLACE, buf, (int)count, MPI_FLOAT, MPI_SUM,
                   MPI_COMM_WORLD, &job.requests[job.n++]);
    return 0;
}

static int finish(void)
{
    MPI_Waitall(job.n, job.requests, MPI_STATUSES_IGNORE);
    job.n = 0;
    return 0;
}

static void stop(void)
{
    MPI_Finalize();
}

int main(int argc, char **argv)
{
    static const struct contender mpi = {.start = start,
                                         .allreduce = allreduce,
                                         .begin = begin,
                                         .finish = finish,
                                         .stop = stop};
    return bench_main(argc, argv, &mpi);
}
