#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# coll.t - the collectives on many shapes of job, without Slurm.
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/tests/lib/tap.sh"
build=${DT_BUILD:-$top/build}
ranks=$build/tests/unit/coll-ranks
fork() { timeout -k 5 150 "$build/tests/dt-fork" "$@"; }

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
    "$(timeout 60 "$ranks" all 2>&1 | cut -c1-6)" digest
ok "misuse is answered, not obeyed" fork -n 2 "$ranks" misuse
ok "one rank's notice is everybody's in the same step, one node" \
    fork -n 3 "$ranks" notice
ok "the same on several nodes" fork -n 5 -N 3 "$ranks" notice

# UCX 1.13 can fail an assertion of its own when several connections break at
# once; such a run tells nothing of us
fork_and_lose() # as fork
{
    local out try

    for ((try = 0; try < 8; try++)); do
        out=$(fork "$@" 2>&1)
        grep -q '^\[.*[a-z_]*\.c:[0-9]* *Assertion' <<<"$out" || break
        echo "# UCX aborted a survivor by an assertion of its own: again" >&2
    done
    printf '%s\n' "$out"
}

for nodes in 1 2 3; do
    out=$(fork_and_lose -n 3 -N "$nodes" "$ranks" die)
    is "a rank dies, $nodes nodes: only it fails" \
        "$(grep '^dt-fork' <<<"$out")" "dt-fork: rank 2: killed by signal 9"
    like "  and the others are told" "$out" 'rank 0: process failed: .+'
done

for nodes in 1 2; do
    out=$(fork_and_lose -n 4 -N "$nodes" "$ranks" amid)
    is "a rank dies amid long messages, $nodes nodes: only it fails" \
        "$(grep '^dt-fork' <<<"$out")" "dt-fork: rank 3: killed by signal 9"
done
ok "more operations than a tag can count, one still open" \
    fork -n 2 "$ranks" wrap
ok "the same between nodes" fork -n 3 -N 3 "$ranks" wrap
ok "dt_finalize with an open request" fork -n 4 -N 2 "$ranks" open
is "dt_finalize tells that an open request failed" \
    "$(fork_and_lose -n 4 -N 2 "$ranks" lose-open | grep '^dt-fork')" \
    "dt-fork: rank 3: killed by signal 9"

out=$(DT_TIMEOUT=2 UCX_KEEPALIVE_INTERVAL=1s fork -n 2 -N 2 "$ranks" stop 2>&1)
like "keepalives of the network do not put a time-out off" "$out" \
    'rank 0: timed out'
out=$(DT_TIMEOUT=2 fork -n 3 -N 2 "$ranks" stop 2>&1)
like "a stopped rank is a time-out, not a hang" "$out" \
    'rank 0: (timed out|process failed): .+'
is "  and the others end by themselves" "$(grep '^dt-fork' <<<"$out")" \
    "dt-fork: rank 2: killed by signal 9"

like "DT_TIMEOUT is checked" "$(DT_TIMEOUT=soon fork -n 1 "$ranks" 2>&1)" \
    'DT_TIMEOUT=soon: expected a whole number from 1'
like "another plugin's version is refused" \
    "$(DT_ENV_VERSION=7 fork -n 1 "$ranks" 2>&1)" 'environment version 7'
like "several tasks of a step without PMIx are refused" \
    "$(SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4 "$ranks" 2>&1)" \
    'this step has 4 tasks, but no PMIx server: start it with srun --mpi=pmix'

done_testing
