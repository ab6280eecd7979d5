#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# direct.t - GPU memory that is handed to the network where it is, on the
# mock driver and a UCX that takes the mock's memory (tests/mock/ucx.h).
top=$(cd "$(dirname "$0")/../../.." && pwd)
. "$top/tests/lib/tap.sh"
. "$top/tests/lib/ucx.sh"
. "$top/tests/lib/gpu-ranks.sh"
export DT_MOCK_UCX=1 DT_GPU_DIRECT=1
over_ucx

# each rank alone on its node
for n in 2 3; do
    on="$n ranks, each on a node of its own"
    ok "$on: no copy on the host, and the right bytes" \
        fork -n "$n" -N "$n" "$ranks" direct yes
    first=$(fork -n "$n" -N "$n" "$ranks" all 2>&1)
    is "$on: every collective, type, operation" "$?" 0
    like "$on: the same bits on all ranks" "$first" '^digest [0-9a-f]{16}$'
done
for mode in messages order two steady end; do
    ok "3 ranks: $mode" fork -n 3 -N 3 "$ranks" $mode
done
ok "the same on a stream" fork -n 3 -N 3 "$ranks" stream
ok "slow copies, and the order is kept" \
    with 1 DT_MOCK_DELAY=cuMemcpyAsync=3000 -n 2 -N 2 "$ranks" direct yes
ok "slow flags, too" \
    with 1 DT_MOCK_DELAY=cuStreamWriteValue32_v2=3000 -n 2 -N 2 "$ranks" \
    direct yes

# two of them on one node: messages between nodes only
for mode in all messages order; do
    ok "3 ranks on 2 nodes: $mode" fork -n 3 -N 2 "$ranks" $mode
done

# who does not, or cannot
one_without() # NODES MODE...
{
    # shellcheck disable=SC2016
    fork -n "$1" -N "$1" bash -c '
        case $DT_FORK in "1 "*) export DT_GPU_DIRECT=0 ;; esac
        exec "$@"' - "$ranks" "${@:2}"
}
ok "one of two ranks does not: all is staged" one_without 2 direct no
ok "one of three does not: every collective is right" one_without 3 all
ok "and every message" one_without 3 messages
ok "DT_GPU_DIRECT=0: all is staged" \
    with 1 DT_GPU_DIRECT=0 -n 2 -N 2 "$ranks" direct no
ok "unset, without RDMA: all is staged" \
    with 1 DT_GPU_DIRECT= -n 2 -N 2 "$ranks" direct no
ok "a UCX without CUDA: all is staged" \
    with 1 DT_MOCK_UCX=0 -n 2 -N 2 "$ranks" direct no
out=$(with 1 DT_GPU_DIRECT=yes -n 2 -N 2 "$ranks" direct no 2>&1)
like "another value is refused" "$out" 'DT_GPU_DIRECT=yes: expected a whole'

# ranks that go away
after=20000
for call in alltoallv sendrecv; do
    after=$((after * 5 / 2))
    ok "a rank dies in $call" lose kill $call $after 3 3
    DT_TIMEOUT=2 ok "a rank is stopped in $call" lose stop $call $after 2 2
done
done_testing
