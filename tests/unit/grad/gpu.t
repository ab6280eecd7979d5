#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# gpu.t - tensors on a GPU, that of the test driver
top=$(cd "$(dirname "$0")/../../.." && pwd)
. "$top/tests/lib/tap.sh"
. "$top/tests/lib/grad-ranks.sh"
grad_ranks=$build/tests/unit/grad/gpu-ranks
[ -x "$grad_ranks" ] || skip_all "not built: $grad_ranks"
# the ranks share one GPU
export DT_GPU_WAY=ipc

for n in 1 2 3; do
    ok "the bits are those of the host, $n ranks" launch -n $n same-bits
    ok "in the order of the program's stream, $n ranks" launch -n $n streams
    ok "tensors in the wrong place are refused, $n ranks" launch -n $n places
    ok "a model that moves, $n ranks" launch -n $n moves
    ok "steps neither wait nor allocate, $n ranks" launch -n $n steady
    first=$(launch -n $n plan 1)
    is "40 tensors, in any order, $n ranks" $? 0
    is "  the same bits in another run" "$(launch -n $n plan 2)" "$first"
    is "  and on the host" \
        "$(grad_ranks=$build/tests/unit/grad/ranks launch -n $n plan 3)" \
        "$first"
    ok "steps that change, $n ranks" launch -n $n breaks
    ok "several plans, $n ranks" launch -n $n plans
    ok "several threads, $n ranks" launch -n $n plan-threads
    ok "every operation, $n ranks" launch -n $n ops
    ok "groups of them, $n ranks" launch -n $n groups
    ok "joined ranks, $n ranks" launch -n $n join
done
for mode in same-bits breaks plans; do
    DT_GPU_WAY='' ok "$mode, staged" launch -n 3 $mode 3
done
ok "Adasum" launch -n 2 adasum
ok "gradients in eight bits" launch -n 2 int8-odd
ok "several GPUs of one rank" launch -n 2 devices
for mode in breaks plans streams same-bits; do
    ok "$mode on two nodes" nodes -n 3 -N 2 $mode 3
done

# phase, lost rank of 3, microseconds until it is killed
losses <<'END'
bucket 2 100
bucket 0 9000
bucket 1 40000
plan 1 0
END

broken() # FUNCTION; the driver fails on rank 0 when it is called so often
{
    # shellcheck disable=SC2016
    timeout -k 5 320 "$build/tests/dt-fork" -t 300 -n 3 bash -c '
        case $DT_FORK in "0 "*) export DT_MOCK_FAIL=$1 ;; esac
        exec "$2" lose bucket 9 0' - "$1" "$grad_ranks" 2>&1
}
for fail in cuLaunchKernel=719@40 cuEventRecord=719@90 \
    cuStreamWriteValue32_v2=719@99 cuStreamWaitEvent=719@50; do
    out=$(broken $fail)
    like "$fail: the rank fails" "$out" '^rank 0: system error'
    is "  and so do the others" \
        "$(grep -c '^rank [12]: process failed: ' <<<"$out")" 2
done

done_testing
