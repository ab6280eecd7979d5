#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# mpi4py.t - MPI in Python runs unchanged under srun --dt-gpus

# shellcheck source=tests/peers/peer.sh
. "$(dirname "$0")/peer.sh"
need_module mpi4py
peer_up

out=$(peer --mpi=pmix "$python" -c '
from mpi4py import MPI
world = MPI.COMM_WORLD
print("rank", world.rank, "of", world.size, "sum",
      world.allreduce(world.rank + 1), "ranks", world.allgather(world.rank))
' 2>&1)
is "allreduce and allgather, 2 nodes of 2 ranks: exit code" "$?" 0
is "every rank has the results" "$(sort <<<"$out")" \
"rank 0 of 4 sum 10 ranks [0, 1, 2, 3]
rank 1 of 4 sum 10 ranks [0, 1, 2, 3]
rank 2 of 4 sum 10 ranks [0, 1, 2, 3]
rank 3 of 4 sum 10 ranks [0, 1, 2, 3]"

done_testing
