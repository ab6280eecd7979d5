#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# nodes.t - the PMIx servers of several nodes, which are processes here

top=$(cd "$(dirname "$0")/../../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
build=${DT_BUILD:-$top/build}/tests/unit/pmix
for program in nodes ranks client; do
    [ -x "$build/$program" ] || skip_all "not built: $build/$program"
done

tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
export TMPDIR=$tmp DT_NODES_TEST=$tmp

# Arguments: as of pmix-nodes.
run() { timeout -k 5 320 "$build/nodes" "$@"; }
try() { ok "$1" run "${@:2}"; } # NAME ARG...
ranks=$build/ranks client=$build/client

is "what ranks know of all nodes" "$(run 2 3 "$ranks" map | sort)" \
"0: 0 of 2 nodes, 2 with 0,1, leader 0: pretended0/0 pretended0/1 pretended1/0
1: 0 of 2 nodes, 2 with 0,1, leader 0: pretended0/0 pretended0/1 pretended1/0
2: 1 of 2 nodes, 1 with 2, leader 2: pretended0/0 pretended0/1 pretended1/0"
is "ranks in turns" "$(run -c 2 3 "$ranks" map | sort)" \
"0: 0 of 2 nodes, 2 with 0,2, leader 0: pretended0/0 pretended1/0 pretended0/1
1: 1 of 2 nodes, 1 with 1, leader 1: pretended0/0 pretended1/0 pretended0/1
2: 0 of 2 nodes, 2 with 0,2, leader 0: pretended0/0 pretended1/0 pretended0/1"

# --- without losses ---------------------------------------------------------

for shape in "2 4" "-c 3 7" "4 4" "12 12"; do
    # shellcheck disable=SC2086
    {
        try "$shape: fence with data" $shape "$client" modex
        try "$shape: fence without data" $shape "$ranks" direct
        try "$shape: a fence of some ranks" $shape "$client" subset
        try "$shape: several fences at once" $shape "$client" concurrent
        try "$shape: groups with an id" $shape "$client" group
        try "$shape: connect and disconnect" $shape "$client" together
        try "$shape: publish, lookup, unpublish" $shape "$client" board
        try "$shape: a rank's own event" $shape "$client" notify
    }
done
try "a get waits until the value is there" 2 4 "$ranks" late
try "  but not for longer than it wants to" 2 4 "$ranks" patience
try "a fence does not wait for longer than it wants to" 3 3 "$ranks" absent
out=$(run 3 6 "$client" abort 2>&1)
is "PMIx_Abort: exit code" "$?" 7
# PMIx's library may complain that it cannot answer who is gone by then
is "PMIx_Abort: all nodes are notified" "$(grep -v 'PMIX ERROR' <<<"$out" | sort)" \
"node 0: rank 2 aborts with code 7: enough is enough
node 1: rank 2 aborts with code 7: enough is enough
node 2: rank 2 aborts with code 7: enough is enough"

# --- losses -----------------------------------------------------------------

for shape in "2 4" "-c 2 4" "4 4"; do
    # shellcheck disable=SC2086
    {
        is "$shape: a killed rank: the others are notified and go on" \
            "$(run $shape "$client" die 2>&1 | sort)" \
"rank 0 goes on
rank 2 goes on
rank 3 goes on"
        is "$shape: a rank killed while all others wait for it" \
            "$(run $shape "$client" die-fence 2>&1; echo $?)" 137
        is "$shape: a rank that ends before PMIx_Init" \
            "$(run $shape "$client" never 2>&1; echo $?)" 3
        is "$shape: a rank that ends before the others come to PMIx_Init" \
            "$(run $shape "$client" early 2>&1; echo $?)" 3
        # what PMIx has freed must not be as before
        is "$shape: a rank killed inside PMIx_Init" \
            "$( { MALLOC_PERTURB_=165 run $shape "$client" connecting 2>&1
            echo $?; } | grep -v 'send_msg: write failed')" 137
        is "$shape: a killed rank whose child keeps its connection open" \
            "$(run $shape "$client" orphan 2>&1; echo $?)" 137
        try "$shape: a rank that leaves without PMIx_Finalize" \
            $shape "$client" leave
        try "$shape: a rank that ends well" $shape "$client" finish
        is "$shape: a rank killed while others get its data" \
            "$(run $shape "$ranks" vanish 2>&1; echo $?)" 137
        try "$shape: a rank replaced 50 times" -r 50 $shape "$ranks" replace 50
    }
done
for shape in "2 4" "-c 2 4"; do
    # shellcheck disable=SC2086
    {
        try "$shape: what a rank has put stays when it has finalized" \
            $shape "$ranks" finished
        is "$shape: and when it is killed" \
            "$(run $shape "$ranks" killed 2>&1; echo $?)" 137
    }
done
is "a killed node: the others are notified and go on" \
    "$(run 3 6 "$ranks" node-dies 2>&1 | sort)" \
"rank 0 goes on
rank 1 goes on
rank 2 goes on
rank 3 goes on"

# --- who goes on ------------------------------------------------------------

# What each of these ranks prints in each of these epochs.
answers() # RANKS EPOCHS MEMBER...
{
    local rank epoch
    for rank in $1; do
        for epoch in $2; do echo "rank $rank: epoch $epoch: ${*:3}"; done
    done
}
for shape in "1 4" "2 4" "-c 2 4" "4 4"; do
    # shellcheck disable=SC2086
    {
        is "$shape: all ranks go on, twice" \
            "$(run $shape "$client" meet 2>&1 | sort)" \
            "$(answers "0 1 2 3" "1 2" 0 1 2 3)"
        is "$shape: one is killed" "$(run $shape "$client" meet-die 2>&1 | sort)" \
            "$({ answers "0 1 2 3" 1 0 1 2 3; answers "0 2 3" 2 0 2 3; } | sort)"
        is "$shape: one is replaced" \
            "$(run -e 2 -r 2 $shape "$client" meet-die 2>&1 | sort)" \
            "$({ answers "0 1 2 3" 1 0 1 2 3; answers "0 1 2 3" 2 0 1/1 2 3; } |
                sort)"
        is "$shape: two are killed while others wait for them" \
            "$(run $shape "$client" meet-dying 2>&1 | sort)" \
            "$(answers "0 2" 1 0 2)"
        is "$shape: one does not come" \
            "$(run $shape "$client" meet-late 2>&1 | sort)" \
"rank 0: TIMEOUT: rank 1 did not come within 1 s
rank 2: TIMEOUT: rank 1 did not come within 1 s
rank 3: TIMEOUT: rank 1 did not come within 1 s"
        is "$shape: one ends well" \
            "$(run $shape "$client" meet-finish 2>&1 | sort)" \
            "$({ answers "0 1 2 3" 1 0 1 2 3; answers "0 2 3" 2 0 2 3; } | sort)"
        is "$shape: too few are left" \
            "$(run -e 3 $shape "$client" meet-few 2>&1 | sort | grep -v epoch)" \
"rank 0: PROC-ABORTED: 2 ranks are left, fewer than the minimum of 3 (--elastic)
rank 3: PROC-ABORTED: 2 ranks are left, fewer than the minimum of 3 (--elastic)"
    }
done

# those of a killed node die with it, but not in the same moment
left()
{
    env -u DT_NODES_TEST grep -lsz "^DT_NODES_TEST=$tmp\$" /proc/[0-9]*/environ
}
for ((i = 0; i < 5000; i++)); do
    [ "$(left)" ] || break
    sleep 0.02
done
is "no process is left" "$(left)" ""
done_testing
