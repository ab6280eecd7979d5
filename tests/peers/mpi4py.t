#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# mpi4py.t - MPI in Python runs unchanged under srun --dt-gpus

# shellcheck source=tests/peers/peer.sh
. "$(dirname "$0")/peer.sh"
need_module mpi4py
peer_up

cat >"$cluster_share/sum.py" <<'END'
import array
import mpi4py
mpi4py.rc.threads = False # MPI.Win over TCP takes no threads
from mpi4py import MPI
world = MPI.COMM_WORLD
mine = array.array("i", [world.rank])
window = MPI.Win.Create(mine, 4, comm=world)
got = array.array("i", [-1])
window.Fence()
window.Get(got, (world.rank + 1) % world.size)
window.Fence()
window.Free()
print("rank", world.rank, "of", world.size, "sum",
      world.allreduce(world.rank + 1), "ranks", world.allgather(world.rank),
      "next", got[0])
END
for server in --dt-pmix=auto --mpi=pmix; do
    out=$(peer "$server" "$python" "$cluster_share/sum.py" 2>&1)
    is "$server: allreduce, allgather, get: exit code" "$?" 0
    is "$server: every rank has the results" "$(sort <<<"$out")" \
"rank 0 of 4 sum 10 ranks [0, 1, 2, 3] next 1
rank 1 of 4 sum 10 ranks [0, 1, 2, 3] next 2
rank 2 of 4 sum 10 ranks [0, 1, 2, 3] next 3
rank 3 of 4 sum 10 ranks [0, 1, 2, 3] next 0"
done
out=$(peer "$python" -c '
from mpi4py import MPI
if MPI.COMM_WORLD.rank == 1:
    MPI.COMM_WORLD.Abort(9)
MPI.COMM_WORLD.barrier()' 2>&1)
is "Abort: exit code" "$?" 143
like "Abort: all ranks end, and the code is said" "$out" \
    'dt: rank 1 aborted the step with code 9'

done_testing
