#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# seeds.t - many more random programs in the simulator than sim-seeds.t tries by
# itself: DT_SEEDS of them (100000), by two processes
top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
seeds=${DT_BUILD:-$top/build}/tests/unit/coll/sim-seeds.t
[ -x "$seeds" ] || skip_all "not built: $seeds"

many=${DT_SEEDS:-100000} half=$((${DT_SEEDS:-100000} / 2))
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
timeout 4500 "$seeds" 1 "$half" >"$tmp/first" 2>&1 &
first=$!
timeout 4500 "$seeds" "$((half + 1))" "$many" >"$tmp/second" 2>&1
is "seeds $((half + 1)) to $many" "$?:$(grep '^#' "$tmp/second")" 0:
wait "$first"
is "seeds 1 to $half" "$?:$(grep '^#' "$tmp/first")" 0:

done_testing
