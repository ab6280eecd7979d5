#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# random-programs.t - random programs give the same on libdt and on Open MPI

# shellcheck source=tests/peers/peer.sh
. "$(dirname "$0")/peer.sh"
build=${DT_BUILD:-$top/build}
ranks=$build/tests/unit/coll/random-ranks
[ -x "$ranks" ] || skip_all "not built: $ranks"
need_command mpicc
[ "$(mpicc --showme:version 2>/dev/null | grep -c 'Open MPI')" -gt 0 ] ||
    skip_all "mpicc is not Open MPI's"
dt_run=${DT_PREFIX:-$top/build/install}/bin/dt-run
[ -x "$dt_run" ] || skip_all "not installed: $dt_run"

tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
export OMPI_MCA_btl_vader_backing_directory=$tmp
ok "mpicc" mpicc -std=gnu11 -o "$tmp/random-mpi" \
    "$top/tests/peers/random-mpi.c"

# seed ranks nodes
while read -r seed n nodes; do
    timeout -k 5 320 "$dt_run" -t 300 -n "$n" "$tmp/random-mpi" "$seed" 60 \
        2>"$tmp/err" | sort >"$tmp/mpi"
    is "seed $seed, $n ranks: Open MPI's part" \
        "$(wc -l <"$tmp/mpi"):$(cat "$tmp/err")" "$((n * 60)):"
    timeout -k 5 620 "$build/tests/dt-fork" -n "$n" -N "$nodes" "$ranks" \
        "$seed" 60 print 2>&1 | sort >"$tmp/dt"
    is "seed $seed, $n ranks on $nodes nodes: the same results" \
        "$(diff "$tmp/mpi" "$tmp/dt" | head -n 10)" ""
done <<'END'
1 1 1
2 2 1
3 3 2
4 4 1
5 5 3
6 8 2
7 7 7
END

done_testing
