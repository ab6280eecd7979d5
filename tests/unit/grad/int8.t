#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# int8.t - gradients of a plan go in 8 bits per element, with error feedback
top=$(cd "$(dirname "$0")/../../.." && pwd)
. "$top/tests/lib/tap.sh"
. "$top/tests/lib/grad-ranks.sh"
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
export TMPDIR=$tmp

for n in 1 2 3 4; do
    ok "what 8 bits can hold is exact, $n ranks" launch -n $n int8
    first=$(launch -n $n int8-bits 1)
    is "what they cannot, $n ranks" $? 0
    like "  has a digest" "$first" '^digest [0-9a-f]{16}$'
    is "  and the same bits in other orders" "$(launch -n $n int8-bits 2)" \
        "$first"
    is "  and with the residuals restored in a new plan" \
        "$(launch -n $n int8-bits 3 restart)" "$first"
    is "  and with a step that is negotiated" \
        "$(launch -n $n int8-bits 4 break)" "$first"
    ok "zero, infinity and nan, $n ranks" launch -n $n int8-odd
    ok "calls that are wrong, $n ranks" launch -n $n int8-wrong
done
for n in 2 3; do
    ok "the mean over many steps is right, $n ranks" \
        launch -n $n int8-feedback
done
ok "exact on two nodes" nodes -n 4 -N 2 int8
is "the same bits on two nodes" "$(nodes -n 4 -N 2 int8-bits 2)" \
    "$(launch -n 4 int8-bits 5)"

done_testing
