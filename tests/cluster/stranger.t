#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# stranger.t - another user of the cluster, from another node, sends to every
# port of a job what he likes: the job computes what it computes without him
set -u
cd "$(dirname "$0")/../.." || exit
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
# shellcheck source=tests/lib/cluster.sh
. tests/lib/cluster.sh
SB_TIMEOUT=50

build=${DT_BUILD:-$cluster_top/build}
[ -x "$build/tests/cluster/sums" ] ||
    skip_all "$build/tests/cluster/sums is not there: make"
python=/usr/bin/python3 # the distribution's, which every user may run
[ -x "$python" ] || skip_all "$python is missing"
program=$cluster_share/sums
cp "$build/tests/cluster/.libs/sums" "$program" && chmod 755 "$program"
export LD_LIBRARY_PATH=$DT_PREFIX/lib
cp tests/cluster/stranger.py "$cluster_share/stranger.py"
echo MpiDefault=none >"$cluster_share/none.conf"
cluster_up -N3 --gpus 0 --conf "$cluster_share/none.conf"
mode=$(sb "$dt_sandbox" status | sed -n 's/^mode *//p')
helpers=() # processes to be ended
finish()
{
    local rc=$?

    kill "${helpers[@]}" 2>/dev/null
    (exit "$rc") # which is the test's
    cluster_down
}
trap finish EXIT

# The stranger is on the third node, and another user, where there are nodes
# with networks of their own; he has nothing of the job's environment. Elsewhere
# the servers of the step cannot be told from those of other clusters.
as_stranger=() host='[0-9a-f.:]+'
at() # NODE ADDRESS: where he is from now on
{
    [ "$mode" = namespaces ] || return
    as_stranger=(nsenter -t "$(<"$cluster_dir/run/$1")" -m -n setpriv
        --reuid=65534 --regid=65534 --clear-groups)
    host=$2
}
at n2 10.33.0.3
[ "$mode" = namespaces ] ||
    echo '# the stranger is this user and this machine: no namespaces here'

# A job of 2 nodes and 4 ranks, on its way; its output is in $files.
begin() # NAME COUNT...
{
    files=$cluster_share/$1
    mkdir "$files"
    sb srun -Q -w n0,n1 -N2 --ntasks-per-node=2 --dt-pmix "$program" \
        "$files" "${@:2}" >"$files/out" 2>"$files/err" &
    job=$!
    wait_for 20 under_way
}

under_way()
{
    [ -e "$files/ready" ] || ! kill -0 "$job" 2>/dev/null
}

# Wait until it has ended; set rc, out and err.
end()
{
    touch "$files/end"
    wait "$job"
    rc=$?
    out=$(sort "$files/out")
    err=$(<"$files/err")
}

done_or_gone()
{
    grep -qs '^done' "$files/stranger" || ! kill -0 "$stranger" 2>/dev/null
}

stranger() # ATTACK ARG...: returns when he has done it, and holds on
{
    "$python" "$cluster_share/stranger.py" ports "$cluster_share" \
        sums dt-pmixd >"$files/ports"
    env -i "${as_stranger[@]}" "$python" "$cluster_share/stranger.py" \
        "$1" "$files/ports" "${@:2}" >"$files/stranger" 2>&1 &
    stranger=$!
    helpers+=("$stranger")
    wait_for 20 done_or_gone
}

let_go()
{
    kill "$stranger" 2>/dev/null
    wait "$stranger" 2>/dev/null
}

counts=(16 2000 20000) # numbers of eight bytes
most_lines=40

# What comes to n1 from now on goes to a file, a connection by line.
record() # FILE
{
    coproc recorder { exec nsenter -t "$(<"$cluster_dir/run/n1")" -n \
        "$python" "$cluster_share/stranger.py" record "$1"; }
    # shellcheck disable=SC2154 # set by coproc
    helpers+=("$recorder_PID")
    read -r _ <&"${recorder[0]}"
}

record_end()
{
    local pid=$recorder_PID

    eval "exec ${recorder[1]}>&-"
    wait "$pid"
}

# ---- without him

[ "$mode" != namespaces ] || record "$cluster_share/earlier"
begin alone "${counts[@]}"
end
[ "$mode" != namespaces ] || record_end
alone=$out
is 'a job without him' "$rc:$err" '0:'
is 'its last lines' "$out" "$(for i in 0 1 2 3; do
    echo "rank $i: 100 last steps, 0 wrong numbers, memory untouched"; done)"

# ---- with him

against() # NAME ATTACK ARG...: the job that has begun
{
    stranger "${@:2}"
    end
    let_go
    is "$1: exit code" "$rc" 0
    is "$1: all numbers and the memory" "$out" "$alone"
    is "$1: no rank gives up" "$(grep -c -e 'given up' -e 'is gone' \
        <<<"$err")" 0
    like "$1: he reached all ranks" "$(<"$files/stranger")" \
        '^reached: sums ([4-9]|[1-9][0-9])'
    is "$1: no rank welcomed him" "$(grep welcomed "$files/stranger")" ""
    # who only keeps silent has half a minute, and the job ends before
    [ "$2" = silence ] || like "$1: he is named" "$err" \
        "dt: .*refused.* from $host,"
    ok "$1: in few lines" test "$(wc -l <"$files/err")" -le "$most_lines"
}

attacked() # NAME ATTACK COUNT...
{
    begin "${@:2}"
    against "$1" "$2"
}

attacked "UCX's put" put "${counts[@]}"
attacked "messages with computed tags" tags 1
attacked "a control message" revoke "${counts[@]}"
attacked "garbage" garbage "${counts[@]}"
attacked "half a greeting and silence" silence "${counts[@]}"
attacked "1,000 connections" flood "${counts[@]}"
at n0 10.33.0.1
attacked "new connections all the time, from a node of the job" storm \
    "${counts[@]}"
at n2 10.33.0.3
attacked "proofs without the secret" prove "${counts[@]}"
# at one address, or at two where the nodes are this machine
like "each rank challenged him" "$(<"$files/stranger")" '^challenged: (4|8)$'
if [ "$mode" = namespaces ]; then
    record "$cluster_share/now"
    begin replay "${counts[@]}"
    record_end
    against "what others sent, earlier and now" replay \
        "$cluster_share/earlier" "$cluster_share/now"
else
    ok "what others sent # SKIP needs root" true
fi

done_testing
