#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# node.t - collectives among GPUs of one node, on the mock driver.
top=$(cd "$(dirname "$0")/../../.." && pwd)
. "$top/tests/lib/tap.sh"
build=${DT_BUILD:-$top/build}
ranks=$build/tests/unit/gpu/node-ranks
fork() { timeout -k 5 620 "$build/tests/dt-fork" "$@"; }

[ -x "$ranks" ] || skip_all "not built: $ranks"
[ -e "$build/tests/mock/.libs/libcuda.so.1" ] || skip_all "no mock driver"
export DT_GPUS=0
export LD_LIBRARY_PATH=$build/lib/.libs:$build/tests/mock/.libs

for n in 1 2 3 5; do
    ok "$n ranks: every collective, type, operation" fork -n "$n" "$ranks" each
done
ok "two ranks, several rounds" fork -n 2 "$ranks" large
ok "three ranks, several rounds" fork -n 3 "$ranks" large
ok "three ranks with a GPU each" \
    env DT_MOCK_GPUS=3 "$build/tests/dt-fork" -n 3 "$ranks" -s each
ok "streams take turns" fork -n 4 "$ranks" streams
ok "also when what is on them is slow" \
    env DT_MOCK_DELAY=cuLaunchKernel=500 "$build/tests/dt-fork" -n 2 "$ranks" \
    streams
ok "a barrier is one" fork -n 3 "$ranks" barrier
ok "graphs record, and replay" fork -n 3 "$ranks" captured

# Each rank prints what it was told; all must be the same.
told() # dt-fork's and gpu-node-ranks' words
{
    fork "$@" 2>&1 | sort | uniq -c | sed 's/^ *//'
}

is "the boards are open" "$(told -n 3 "$ranks" open)" "3 open"
while IFS='|' read -r name where rank variable want; do
    # shellcheck disable=SC2086
    like "$name" "$(told $where "$ranks" -s -r "$rank" "$variable" open)" \
        "^$want"
done <<'END'
one GPU has no memory left|-n 3|2|DT_MOCK_FAIL=cuMemAlloc_v2=2|3 rank 2: [^;]*OUT_OF_MEMORY[^;]*$
one GPU does not reach another|-n 2|1|DT_MOCK_NO_PEER=0-1|2 rank 1: rank 0's memory: GPU 0000:1b:00.0 cannot read GPU 0000:1a:00.0: no peer-to-peer[^;]*$
one rank does not see all GPUs|-n 2|0|DT_MOCK_GPUS=1|2 rank 0: rank 1's memory: GPU 0000:1b:00.0 is not visible here
a kernel cannot be launched|-n 3|1|DT_MOCK_FAIL=cuLaunchKernel=719|3 rank 1: .*719
two nodes|-n 2 -N 2|0|A=B|2 its ranks are on 2 nodes$
too many ranks|-n 17|0|A=B|17 it has 17 ranks, more than 16$
END

# ---- CUDA IPC is refused to any rank ----

while IFS='|' read -r name rank fail want; do
    like "IPC: $name" \
        "$(told -n 3 "$ranks" -s -r "$rank" "DT_MOCK_FAIL=$fail" open)" "^3 $want\$"
done <<'END'
where memory is made|1|cuIpcGetMemHandle=801|rank 1: CUDA: cannot share .* by IPC handle: CUDA_ERROR_NOT_SUPPORTED .801.
where it is mapped|2|cuIpcOpenMemHandle_v2=1|rank 2: it cannot import memory of rank 0 .*IPC handle: CUDA_ERROR_INVALID_VALUE .1.
one maps the first and not the second|0|cuIpcOpenMemHandle_v2=205@2|rank 0: it cannot import memory of rank 2 .*205.
END

for n in 2 4; do
    is "$n ranks, one is killed, and the others are told to give up" \
        "$(fork -n "$n" "$ranks" kill 2>&1)" \
        "dt-fork: rank $((n - 1)): killed by signal 9"
done

done_testing
