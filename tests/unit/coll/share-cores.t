#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# share-cores.t - ranks that share a core while another idles say so, once

top=$(cd "$(dirname "$0")/../../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
build=${DT_BUILD:-$top/build}
ranks=$build/tests/unit/coll/ranks
[ -x "$build/pmix/dt-run" ] || skip_all "not built: $build/pmix/dt-run"
[ -x "$ranks" ] || skip_all "not built: $ranks"
[ "$(nproc)" -ge 2 ] || skip_all "it needs two CPUs"

tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
export TMPDIR=$tmp
unset SLURM_CPUS_ON_NODE
first=$(sed -n 's/^Cpus_allowed_list:\t\([0-9]*\).*/\1/p' /proc/self/status)
others=$(($(nproc) - 1))

# What the ranks print. run RANKS COMMAND... (before the program of the ranks)
run()
{
    timeout -k 5 320 "$build/pmix/dt-run" -t 300 -n "$1" --bind none \
        "${@:2}" "$ranks" create 2>&1
    echo "exit $?"
}

idle="$others others are idle"
[ "$others" -gt 1 ] || idle="1 other is idle"
is "two ranks on one core" "$(run 2 taskset -c "$first")" \
"dt: ranks 0, 1 share CPU $first while $idle: start each on a core of its own \
(dt-run --bind core; srun --cpus-per-task --cpu-bind=cores)
exit 0"
is "ranks that are not bound" "$(run 2)" "exit 0"
is "more ranks than cores" "$(run $((2 * $(nproc) + 1)))" "exit 0"
is "the launcher has one core" \
    "$(taskset -c "$first" "$build/pmix/dt-run" -t 300 -n 2 "$ranks" create \
        2>&1; echo "exit $?")" "exit 0"
is "Slurm has granted one core" \
    "$(SLURM_CPUS_ON_NODE=1 run 2 taskset -c "$first")" "exit 0"
done_testing
