#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# random.t - random programs of operations, plans, sets, joins and disputes
#   random.t [SEEDS [FIRST]]
# SEEDS programs (100) from seed FIRST (1) on, shared out to jobs of 1 to 4
# ranks.
top=$(cd "$(dirname "$0")/../../.." && pwd)
. "$top/tests/lib/tap.sh"
. "$top/tests/lib/grad-ranks.sh"
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
export TMPDIR=$tmp
seeds=${1:-100} seed=${2:-1}

# percent of the seeds, and how they start
while read -r percent how; do
    count=$(((seeds * percent + 99) / 100))
    # shellcheck disable=SC2086
    ok "seeds $seed to $((seed + count - 1)), $how" $how random $seed $count
    seed=$((seed + count))
done <<'END'
5 launch -n 1
25 launch -n 2
35 launch -n 3
20 launch -n 4
15 nodes -n 4 -N 2
END
for n in 1 2 3; do
    ok "all orders of three tensors on $n ranks" launch -n $n orders
done

done_testing
