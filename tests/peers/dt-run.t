#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# dt-run.t - programs of others, and libdt's, run unchanged under dt-run

# shellcheck source=tests/peers/peer.sh
. "$(dirname "$0")/peer.sh"
prefix=${DT_PREFIX:-$top/build/install}
dt_run=$prefix/bin/dt-run
[ -x "$dt_run" ] || skip_all "not installed: $dt_run"

tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
# what an aborted Open MPI leaves behind goes with it
export OMPI_MCA_btl_vader_backing_directory=$tmp
run() { timeout -k 5 320 "$dt_run" -t 300 "$@"; }
# absent things are skipped one by one, since libdt's own needs none of them
skip() { ok "$1 # SKIP $2" true; }

hello=$prefix/libexec/slurm-dt/examples/hello
if [ -x "$hello" ]; then
    is "libdt: four ranks" "$(run -n 4 "$hello" | grep -c 'sum 10, ')" 4
else
    skip "libdt: four ranks" "not installed: $hello"
fi

cat >"$tmp/sum.c" <<'END'
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, sum, mine, *base;
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    mine = rank + 1;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (argc > 1 && rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 9);
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                     &base, &window);
    MPI_Win_fence(0, window);
    MPI_Put(&mine, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    printf("rank %d of %d: sum %d, from my left %d\n", rank, size, sum, *base);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
END
if [ "$(mpicc --showme:version 2>/dev/null | grep -c 'Open MPI')" -gt 0 ]; then
    ok "mpicc" mpicc -std=c99 -o "$tmp/sum" "$tmp/sum.c"
    is "Open MPI: allreduce and put" "$(run -n 4 "$tmp/sum" | sort)" \
"rank 0 of 4: sum 10, from my left 4
rank 1 of 4: sum 10, from my left 1
rank 2 of 4: sum 10, from my left 2
rank 3 of 4: sum 10, from my left 3"
    run -n 4 "$tmp/sum" abort >"$tmp/out" 2>&1
    is "Open MPI: MPI_Abort's code" "$?" 9
    is "Open MPI: the same inside a Slurm allocation" \
        "$(SLURM_JOBID=1 SLURM_JOB_ID=1 SLURM_NODELIST=n0 SLURM_STEP_ID=0 \
        SLURM_PROCID=0 run -n 4 "$tmp/sum" | grep -c 'of 4: sum 10')" 4
else
    skip "Open MPI" "mpicc is not Open MPI's"
fi

if "$python" -c 'import mpi4py' 2>/dev/null; then
    # labelled, for whole lines
    is "mpi4py: allreduce" "$(run -l -n 4 "$python" -c '
from mpi4py import MPI
print(MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank + 1))' |
        grep -c '[0-3]: 10$')" 4
else
    skip "mpi4py" "$python has no module mpi4py"
fi

done_testing
