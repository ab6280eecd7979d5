#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# openmpi.t - an MPI program runs unchanged under srun --dt-gpus

# shellcheck source=tests/peers/peer.sh
. "$(dirname "$0")/peer.sh"
need_command mpicc
[ "$(mpicc --showme:version 2>/dev/null | grep -c 'Open MPI')" -gt 0 ] ||
    skip_all "mpicc is not Open MPI's"
peer_up

# sum over ranks of (rank + 1) * i, exact in a double
cat >"$cluster_share/sum.c" <<'END'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 100000 };

int main(int argc, char **argv)
{
    static double in[COUNT], out[COUNT];
    int rank, size, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < COUNT; i++)
        in[i] = (rank + 1.0) * i;
    MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++)
        wrong += out[i] != size * (size + 1) / 2 * (double)i;
    printf("rank %d of %d, %d wrong, GPUs %s\n", rank, size, wrong,
           getenv("CUDA_VISIBLE_DEVICES"));
    MPI_Finalize();
    return wrong != 0;
}
END
ok "mpicc" mpicc -std=c99 -o "$cluster_share/sum" "$cluster_share/sum.c"

out=$(peer --mpi=pmix "$cluster_share/sum" 2>&1)
is "allreduce, 2 nodes of 2 ranks: exit code" "$?" 0
is "every rank has the sum, and its own GPUs first" "$(sort <<<"$out")" \
"rank 0 of 4, 0 wrong, GPUs 0,1,2,3
rank 1 of 4, 0 wrong, GPUs 2,3,0,1
rank 2 of 4, 0 wrong, GPUs 0,1,2,3
rank 3 of 4, 0 wrong, GPUs 2,3,0,1"

done_testing
