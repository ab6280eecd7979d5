#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# coll.t - collectives on GPU memory, on the mock driver.
top=$(cd "$(dirname "$0")/../../.." && pwd)
. "$top/tests/lib/tap.sh"
. "$top/tests/lib/ucx.sh"
. "$top/tests/lib/gpu-ranks.sh"

# ranks nodes
while read -r n nodes; do
    on="$n ranks on $nodes nodes"
    first=$(fork -n "$n" -N "$nodes" "$ranks" all 2>&1)
    is "$on: every collective, type, operation" "$?" 0
    like "$on: the same bits on all ranks" "$first" '^digest [0-9a-f]{16}$'
    ok "$on: no call waits for a stream, which keeps its order" \
        fork -n "$n" -N "$nodes" "$ranks" order
    ok "$on: two communicators on two streams, crosswise" \
        fork -n "$n" -N "$nodes" "$ranks" two
    ok "$on: the end with things under way" \
        fork -n "$n" -N "$nodes" "$ranks" end
    [ "$n" -gt 1 ] || continue
    ok "$on: messages and groups" fork -n "$n" -N "$nodes" "$ranks" messages
    ok "$on: steps neither wait nor allocate" \
        fork -n "$n" -N "$nodes" "$ranks" steady
done <<'END'
1 1
2 1
3 2
4 2
END
is "CUDA IPC is refused: every collective, staged, with the same bits" \
    "$(with 1 DT_MOCK_FAIL=cuIpcGetMemHandle=801 -n 3 "$ranks" all 2>&1)" \
    "$(fork -n 3 "$ranks" all)"
ok "the same on a stream" fork -n 3 -N 2 "$ranks" stream
ok "many at once" fork -n 2 "$ranks" many
ok "many at once, between nodes" fork -n 3 -N 2 "$ranks" many
ok "slow copies, and the order is kept" \
    with 1 DT_MOCK_DELAY=cuMemcpyAsync=3000 -n 2 -N 2 "$ranks" order
ok "slow flags, too" \
    with 1 DT_MOCK_DELAY=cuStreamWriteValue32_v2=3000 -n 2 "$ranks" order 300000
ok "with DT_PROGRESS=thread and DT_CHECK=1" \
    with 2 DT_PROGRESS=thread DT_CHECK=1 -n 3 -N 2 "$ranks" order
for n in 1 2; do
    ok "buffers where they should not be, $n ranks" \
        fork -n "$n" "$ranks" places
done

for n in 2 3; do
    ok "DT_CHECK=1 tells memory of GPUs from that of the host, $n ranks" \
        with 1 DT_CHECK=1 -n "$n" -N 2 "$ranks" disagree
done

after=10000
for call in allreduce alltoallv barrier sendrecv; do
    for nodes in 1 2; do
        after=$((after * 5 / 3))
        ok "a rank dies in $call, $nodes nodes" lose kill $call $after 3 $nodes
        DT_TIMEOUT=2 ok "a rank is stopped in $call, $nodes nodes" \
            lose stop $call $after 2 $nodes
    done
done

# a driver that fails on rank 0
break_driver() # FAIL MINE THEIRS NODES
{
    # shellcheck disable=SC2016
    fork -n 3 -N "$4" bash -c '
        case $DT_FORK in "0 "*) export DT_MOCK_FAIL=$1 ;; esac
        exec "$2" broken "$3" "$4"' - "$1" "$ranks" "$2" "$3"
}
while read -r nodes fail mine theirs; do
    ok "rank 0: $fail, $nodes nodes" \
        break_driver "$fail" "$mine" "$theirs" "$nodes"
done <<'END'
1 cuLaunchKernel=719@9 -62 -40
1 cuPointerGetAttributes=719@5 -62 -40
1 cuMemHostAlloc=2@1 -4 -4
2 cuMemcpyAsync=719@9 -62 -40
2 cuStreamWaitValue32_v2=719@9 -62 -40
2 cuStreamWriteValue32_v2=719@9 -62 -40
2 cuEventRecord=719@4 -62 -40
2 cuPointerGetAttributes=719@5 -62 -40
2 cuMemHostAlloc=2@1 -4 -4
2 cuStreamCreateWithPriority=2@2 -4 -4
END

out=$(DT_MOCK_GPUS=0 fork -n 1 "$ranks" order 2>&1)
like "a driver without a GPU" "$out" 'code 10[01] of the mock'
done_testing
