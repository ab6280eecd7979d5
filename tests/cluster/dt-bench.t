#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# dt-bench.t - dt-bench in steps of a cluster: right results, bad arguments
# reported once, and a link that tc has slowed is found and named

top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
# shellcheck source=tests/lib/cluster.sh
. "$top/tests/lib/cluster.sh"

tool=$DT_PREFIX/bin/dt-bench
[ -x "$tool" ] || skip_all "$tool is not there"

cluster_up -N 4 --gpus 4

# One task per node; a step on which nothing moves ends by itself.
step() # ARG...
{
    sb env DT_TIMEOUT=200 srun -Q -N4 --ntasks-per-node=1 --gpus-per-node=4 \
        --dt-gpus "$@" 2>&1
}

# ---- results ----

out=$(sb srun -Q -N2 --ntasks-per-node=2 --gpus-per-node=4 --dt-gpus \
    "$tool" allreduce -b 4 -e 1M -f 8 -n 5 2>&1)
is "allreduce in a step is right" \
    "$? $(grep -c 'values : 0 OK' <<<"$out")" "0 1"
like "it says who ran where" "$out" '^#  Rank   3 Pid +[0-9]+ on +n1 CPUs '
for operation in reduce bcast allgather reduce_scatter alltoall sendrecv \
    barrier; do
    like "$operation on four nodes is right" \
        "$(step "$tool" "$operation" -b 4 -e 256K -f 64 -n 3)" \
        '^# Out of bounds values : 0 OK$'
done
is "a bad argument: one line" "$(step "$tool" -o plus | grep -c dt-bench:)" 1

# ---- slow links ----

why_no_tc() # the reason why links cannot be slowed
{
    type -P tc >/dev/null || { echo "no tc"; return; }
    [ "$(dts status --dir "$cluster_dir" | awk '$1 == "mode" { print $2 }')" \
        = namespaces ] || { echo "the nodes share a network"; return; }
    slow n3 n2 || echo "tc cannot slow a link here"
    fast n3
}

on() # NODE CMD ARG...
{
    sb srun -Q -w "$1" -N1 -n1 "${@:2}"
}

address_of() # NODE
{
    sb scontrol show node "$1" | sed -n 's/.*NodeAddr=\([0-9.]*\).*/\1/p'
}

slow() # NODE [OTHER]: what it sends, to all or to one, goes by 80 Mbit/s
{
    local class=2 filter=:
    [ $# -eq 1 ] || class=1 filter="tc filter add dev eth0 parent 1: \
        protocol ip prio 1 u32 match ip dst $(address_of "$2")/32 flowid 1:2"
    on "$1" sh -e -c "tc qdisc add dev eth0 root handle 1: htb default $class
        tc class add dev eth0 parent 1: classid 1:1 htb rate 20gbit
        tc class add dev eth0 parent 1: classid 1:2 htb rate 80mbit burst 64kb
        $filter" 2>/dev/null
}

fast() # NODE
{
    on "$1" tc qdisc del dev eth0 root 2>/dev/null
}

PATH=$PATH:/sbin:/usr/sbin
why=$(why_no_tc)
if [ "$why" ]; then
    ok "slow links # SKIP $why" true
else
    slow n1 n2
    out=$(step "$tool" --pairwise)
    like "a slow link is named" "$out" '^n1 to n2 is slow: .* of the usual'
    is "and no node" "$(grep -c '^n[0-9] is slow' <<<"$out")" 0
    fast n1
    slow n3
    out=$(step "$tool" --pairwise --alone)
    like "a slow node is named" "$out" '^n3 is slow to all nodes: .* of the usual'
    fast n3
fi

done_testing
