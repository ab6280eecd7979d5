#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# coll.t - the collectives on many shapes of job, without Slurm.
top=$(cd "$(dirname "$0")/../../.." && pwd)
. "$top/tests/lib/tap.sh"
. "$top/tests/lib/ucx.sh"
build=${DT_BUILD:-$top/build}
ranks=$build/tests/unit/coll/ranks
random=$build/tests/unit/coll/random-ranks
fork() { timeout -k 5 620 "$build/tests/dt-fork" "$@"; }

tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
[ -x "$ranks" ] || skip_all "not built: $ranks"

# ranks nodes options
while read -r n nodes opts; do
    name="$n ranks on $nodes nodes $opts"
    # shellcheck disable=SC2086
    first=$(fork -n "$n" -N "$nodes" $opts "$ranks" all 2>&1)
    is "$name: every collective, type, operation" "$?" 0
    like "$name: digest" "$first" '^digest [0-9a-f]{16}$'
    case $n.$nodes in
    3.1 | 4.2 | 5.3)
        # shellcheck disable=SC2086
        second=$(fork -n "$n" -N "$nodes" $opts "$ranks" all 2>&1)
        is "$name: the same bits in a second run" "$second" "$first"
        ;;
    esac
done <<'END'
1 1
2 1
3 1
2 2
4 2
4 2 -c
5 2
5 3
6 6
8 4 -c
END

is "a job of one rank needs no launcher" \
    "$(timeout 600 "$ranks" all 2>&1 | cut -c1-6)" digest
while read -r n nodes; do
    on="$n ranks on $nodes nodes"
    ok "$on: misuse is answered, not obeyed" \
        fork -n "$n" -N "$nodes" "$ranks" misuse
    ok "$on: many requests at once" fork -n "$n" -N "$nodes" "$ranks" requests
    ok "$on: communicators of communicators" \
        fork -n "$n" -N "$nodes" "$ranks" comms
    ok "$on: communicators of some ranks, which they make alone" \
        fork -n "$n" -N "$nodes" "$ranks" create
    ok "$on: messages and groups" fork -n "$n" -N "$nodes" "$ranks" groups
    ok "$on: three threads on three communicators" \
        fork -n "$n" -N "$nodes" "$ranks" threads
done <<'END'
2 1
4 1
5 2
END
ok "255 communicators, and one too many" fork -n 3 -N 2 "$ranks" exhaust
with() { (export "${@:2:$1}" && shift $(($1 + 1)) && fork "$@"); }
for nodes in 1 2; do
    ok "DT_CHECK=1 names who differs, $nodes nodes" \
        with 1 DT_CHECK=1 -n 4 -N "$nodes" "$ranks" check
    ok "DT_PROGRESS=thread moves what nobody waits for, $nodes nodes" \
        with 1 DT_PROGRESS=thread -n 3 -N "$nodes" "$ranks" progress \
        "$tmp/progress-$nodes"
done
for mode in requests groups threads; do
    ok "$mode with DT_PROGRESS=thread" \
        with 1 DT_PROGRESS=thread -n 3 "$ranks" "$mode"
done
ok "requests with DT_CHECK=1, too" \
    with 2 DT_CHECK=1 DT_PROGRESS=thread -n 3 "$ranks" requests
ok "one rank's notice is everybody's in the same step, one node" \
    fork -n 3 "$ranks" notice
ok "the same on several nodes" fork -n 5 -N 3 "$ranks" notice

# seed ranks nodes options
while read -r seed n nodes opts; do
    # shellcheck disable=SC2086
    ok "random program $seed, $n ranks on $nodes nodes $opts" \
        fork -n "$n" -N "$nodes" $opts "$random" "$seed" 60
done <<'END'
1 1 1
2 2 1
3 3 1
4 4 2
5 5 3
6 8 2 -c
END
is "a random program with DT_PROGRESS=thread" \
    "$(DT_PROGRESS=thread fork -n 4 -N 2 "$random" 7 60 print 2>&1 | sort)" \
    "$(fork -n 4 -N 2 "$random" 7 60 print 2>&1 | sort)"

for nodes in 1 2 3; do
    out=$(past_ucx fork -n 3 -N "$nodes" "$ranks" die)
    is "a rank dies, $nodes nodes: only it fails" \
        "$(grep '^dt-fork' <<<"$out")" "dt-fork: rank 2: killed by signal 9"
    like "  and the others are told" "$out" 'rank 0: process failed: .+'
done

for nodes in 1 2; do
    out=$(past_ucx fork -n 4 -N "$nodes" "$ranks" amid)
    is "a rank dies amid long messages, $nodes nodes: only it fails" \
        "$(grep '^dt-fork' <<<"$out")" "dt-fork: rank 3: killed by signal 9"
done
ok "more operations than a tag can count, one still open" \
    fork -n 2 "$ranks" wrap
ok "the same between nodes" fork -n 3 -N 3 "$ranks" wrap
ok "dt_finalize with an open request" fork -n 4 -N 2 "$ranks" open
is "dt_finalize tells that an open request failed" \
    "$(past_ucx fork -n 4 -N 2 "$ranks" lose-open | grep '^dt-fork')" \
    "dt-fork: rank 3: killed by signal 9"

# over UCX, as over RDMA
over_it() { (over_ucx && fork "$@"); }
first=$(fork -n 4 -N 2 "$ranks" all 2>&1)
is "the same bits over UCX" "$(over_it -n 4 -N 2 "$ranks" all 2>&1)" "$first"
for mode in groups notice open; do
    ok "$mode over UCX" over_it -n 5 -N 3 "$ranks" "$mode"
done
is "a rank dies over UCX: only it fails" \
    "$(past_ucx over_it -n 3 -N 3 "$ranks" die | grep '^dt-fork')" \
    "dt-fork: rank 2: killed by signal 9"
out=$(DT_TIMEOUT=2 over_it -n 2 -N 2 "$ranks" stop 2>&1)
like "keepalives of the network do not put a time-out off" "$out" \
    'rank 0: timed out'
out=$(DT_TIMEOUT=2 fork -n 3 -N 2 "$ranks" stop 2>&1)
like "a stopped rank is a time-out, not a hang" "$out" \
    'rank 0: (timed out|process failed): .+'
is "  and the others end by themselves" "$(grep '^dt-fork' <<<"$out")" \
    "dt-fork: rank 2: killed by signal 9"

# 8 at once: most of them wait for the time-out
for opts in '-n 2' '-n 3 -N 2'; do
    # shellcheck disable=SC2086
    ok "ranks that disagree come to an end, $opts" env DT_TIMEOUT=2 \
        xargs -P 8 -I '{}' timeout -k 5 200 "$build/tests/dt-fork" -t 180 \
        $opts "$ranks" disagree '{}' < <(seq 0 28)
done
like "  and these were all" "$(fork -n 1 "$ranks" disagree 29 2>&1)" 'code 3'

like "DT_TIMEOUT is checked" "$(DT_TIMEOUT=soon fork -n 1 "$ranks" 2>&1)" \
    'DT_TIMEOUT=soon: expected a whole number from 1'
like "DT_CHECK is checked" "$(DT_CHECK=yes fork -n 1 "$ranks" 2>&1)" \
    'DT_CHECK=yes: expected a whole number from 0 to 1'
like "DT_PROGRESS is checked" "$(DT_PROGRESS=no fork -n 1 "$ranks" 2>&1)" \
    'DT_PROGRESS=no: expected thread'
like "another plugin's version is refused" \
    "$(DT_ENV_VERSION=7 fork -n 1 "$ranks" 2>&1)" 'environment version 7'
like "several tasks of a step without PMIx are refused" \
    "$(SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4 "$ranks" 2>&1)" \
    'this step has 4 tasks, but no PMIx server: start it with srun --dt-pmix'

done_testing
