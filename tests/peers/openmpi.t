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
#include <string.h>

enum { COUNT = 100000 };

int main(int argc, char **argv)
{
    static double in[COUNT], out[COUNT];
    int rank, size, wrong = 0, window = -1, second = -1;
    MPI_Win win;
    if (argc > 1 && !strcmp(argv[1], "never") &&
        !strcmp(getenv("PMIX_RANK"), "1"))
        return 3;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1 && !strcmp(argv[1], "abort") && rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 9);
    for (int i = 0; i < COUNT; i++)
        in[i] = (rank + 1.0) * i;
    MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++)
        wrong += out[i] != size * (size + 1) / 2 * (double)i;
    MPI_Win_create(&window, sizeof(int), sizeof(int), MPI_INFO_NULL,
                   MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Get(&second, 1, MPI_INT, (rank + 3) % size, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    printf("rank %d of %d, %d wrong, put %d, got %d, GPUs %s\n", rank, size,
           wrong, window, second, getenv("CUDA_VISIBLE_DEVICES"));
    MPI_Finalize();
    return wrong != 0;
}
END
ok "mpicc" mpicc -std=c99 -o "$cluster_share/sum" "$cluster_share/sum.c"

wanted="rank 0 of 4, 0 wrong, put 3, got 2, GPUs 0,1,2,3
rank 1 of 4, 0 wrong, put 0, got 3, GPUs 2,3,0,1
rank 2 of 4, 0 wrong, put 1, got 0, GPUs 0,1,2,3
rank 3 of 4, 0 wrong, put 2, got 1, GPUs 2,3,0,1"
for server in --dt-pmix=auto --mpi=pmix; do
    out=$(peer "$server" "$cluster_share/sum" 2>&1)
    is "$server: allreduce, put and get: exit code" "$?" 0
    is "$server: every rank has the sum, and its own GPUs first" \
        "$(sort <<<"$out")" "$wanted"
done

# the tasks that are ended by a signal have the higher code
out=$(peer "$cluster_share/sum" abort 2>&1)
is "MPI_Abort: exit code" "$?" 143
like "MPI_Abort: all ranks end, and the code is said" "$out" \
    'dt: rank 1 aborted the step with code 9'
out=$(peer "$cluster_share/sum" never 2>&1)
is "a rank that ends before MPI_Init: nobody waits for it" \
    "$(grep -c 'task 1: Exited with exit code 3$' <<<"$out")" 1

done_testing
