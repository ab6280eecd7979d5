#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# loss.t - a rank is killed or stopped in the middle of each collective, in
# each of its algorithms: the others get an error, and end by themselves.
#   coll-loss.t [LOSSES [RANKS.NODES ...]]
# At least LOSSES kills and as many stops (each algorithm once), on these jobs
# (4.1 4.2), with other ranks, moments, sizes and memory, and a progress thread
# now and then.
top=$(cd "$(dirname "$0")/../../.." && pwd)
. "$top/tests/lib/tap.sh"
. "$top/tests/lib/ucx.sh"
build=${DT_BUILD:-$top/build}
export fork=$build/tests/dt-fork lose=$build/tests/unit/coll/ranks-lose
[ -x "$lose" ] || skip_all "not built: $lose"
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
losses=${1:-1} jobs=("${@:2}")
[ $# -gt 1 ] || jobs=(4.1 4.2)

# A rank that is only stopped is a time-out; of one that dies, the others hear
# long before: theirs is longer than dt-fork waits. Only the lost rank may end
# badly, and the others have to say that they were in this algorithm. Prints one
# line, or what went wrong.
one() # HOW RANKS.NODES CALL ALGORITHM SEED
{
    local n=${2%.*} out patience=600 progress='' from=$EPOCHREALTIME to

    [ "$1" = kill ] || patience=1
    [ $(($5 % 4)) != 0 ] || progress=thread
    out=$(DT_TIMEOUT=$patience DT_PROGRESS=$progress past_ucx timeout -k 5 200 \
        "$fork" -t 180 -n "$n" -N "${2#*.}" "$lose" "$1" "${@:3}")
    to=$EPOCHREALTIME
    if [ "$(grep '^dt-fork' <<<"$out" | sed -E 's/rank [0-9]+:/rank N:/')" = \
        'dt-fork: rank N: killed by signal 9' ] &&
        [ "$(grep -c "^met $3 $4," <<<"$out")" = $((n - 1)) ] &&
        ! grep -q Assertion <<<"$out"; then
        echo "good $1 $2 $3 $4 $(((${to//[!0-9]/} - ${from//[!0-9]/}) / 1000))"
    else
        printf 'bad %s %s %s %s %s: %s\n' "$@" "${out//$'\n'/$'\nbad   '}"
    fi
}
export -f one past_ucx

runs() # HOW RANKS.NODES CALL ALGORITHM SEED of all, as often as wished
{
    local pairs round how job

    for job in "${jobs[@]}"; do
        "$lose" list "${job%.*}" "${job#*.}" | sed "s/^/$job /"
    done >"$tmp/pairs"
    pairs=$(wc -l <"$tmp/pairs")
    for ((round = 0; round * pairs < losses; round++)); do
        for how in kill stop; do
            awk -v how="$how" -v seed=$((round * pairs)) \
                '{ print how, $0, seed + NR }' "$tmp/pairs"
        done
    done
}

# side by side, as most of them wait for the time-out; but UCX takes 10 MB of
# /dev/shm for each rank, of which a container may have little
room=$(df --output=avail -m /dev/shm 2>/dev/null | tail -n 1)
at_once=$((${room:-0} / 60))
[ "$at_once" -le 6 ] || at_once=6
[ "$at_once" -ge 1 ] || at_once=1
runs | xargs -P "$at_once" -L 1 bash -c 'one "$@"' one >"$tmp/out"
for how in kill stop; do
    for job in "${jobs[@]}"; do
        sed -n "s/^good $how \($job .*\) .*/\1/p" "$tmp/out" >"$tmp/met"
        is "a $how in each algorithm, ${job/./ ranks on } nodes" \
            "$(grep -A 20 "^bad $how $job " "$tmp/out" | grep ^bad
            grep -q "^$job " "$tmp/pairs" || echo 'no algorithms'
            grep "^$job " "$tmp/pairs" | grep -vxFf "$tmp/met" |
                sed 's/^/not met: /')" ''
        echo "# $(wc -l <"$tmp/met") runs, at most $(sed -n \
            "s/^good $how $job .* //p" "$tmp/out" | sort -n | tail -n 1) ms"
    done
done

for on in 1 2; do
    like "a rank dies, the others' other threads are busy, $on nodes" \
        "$(past_ucx timeout -k 5 200 "$fork" -t 180 -n 3 -N "$on" \
            "$build/tests/unit/coll/ranks" lose-busy)" \
        '^dt-fork: rank 2: killed by signal 9$'
done

done_testing
