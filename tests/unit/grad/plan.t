#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# plan.t - the gradients of training steps go by a plan
top=$(cd "$(dirname "$0")/../../.." && pwd)
. "$top/tests/lib/tap.sh"
. "$top/tests/lib/grad-ranks.sh"
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
export TMPDIR=$tmp

for n in 1 2 3 4; do
    first=$(launch -n $n plan 1)
    is "40 tensors, in any order, $n ranks" $? 0
    like "  have a digest" "$first" '^digest [0-9a-f]{16}$'
    is "  and the same bits in another run and other orders" \
        "$(launch -n $n plan 2)" "$first"
    ok "steps that change, $n ranks" launch -n $n breaks
    ok "several plans, $n ranks" launch -n $n plans
    ok "several threads, $n ranks" launch -n $n plan-threads
done
for mode in breaks plans plan-threads; do
    ok "$mode on two nodes" nodes -n 4 -N 2 $mode 3
done
is "the same bits on two nodes" "$(nodes -n 4 -N 2 plan 2)" \
    "$(nodes -n 4 -N 2 plan 5)"

done_testing
