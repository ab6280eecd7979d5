#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# ops.t - operations on named tensors, which ranks start in any order
top=$(cd "$(dirname "$0")/../../.." && pwd)
. "$top/tests/lib/tap.sh"
. "$top/tests/lib/grad-ranks.sh"
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
export TMPDIR=$tmp

for n in 1 2 3 4; do
    ok "every kind, type, shape, reduction and factor, $n ranks" \
        launch -n $n ops
    ok "several in one call, $n ranks" launch -n $n groups
    ok "what is under way, and what was forgotten, $n ranks" launch -n $n poll
    ok "process sets, $n ranks" launch -n $n sets
    ok "ranks that have no more data, $n ranks" launch -n $n join
    ok "long vectors and limits, $n ranks" launch -n $n long
    ok "adaptive summation, $n ranks" launch -n $n adasum
done
for mode in ops groups long join adasum; do
    ok "$mode on two nodes" nodes -n 4 -N 2 $mode
done
ok "process sets on three nodes" nodes -n 3 -N 3 sets

done_testing
