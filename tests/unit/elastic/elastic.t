#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# elastic.t - jobs that go on after losses: dt_reinit, dt_state, dt_elastic_run
top=$(cd "$(dirname "$0")/../../.." && pwd)
. "$top/tests/lib/tap.sh"
build=${DT_BUILD:-$top/build}
ranks=$build/tests/unit/elastic/ranks
[ -x "$ranks" ] || skip_all "not built: $ranks"
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
export TMPDIR=$tmp

# Who waits for a time-out does not pass: this one is longer than any run's.
export DT_TIMEOUT=600

launch() # OPTION... -- MODE [ARG ...]
{
    local opts=()

    while [ "$1" != -- ]; do
        opts+=("$1")
        shift
    done
    timeout -k 5 320 "$build/pmix/dt-run" -t 300 "${opts[@]}" "$ranks" \
        "${@:2}" 2>&1
}

for n in 1 2 3; do
    ok "wrong calls, $n ranks" launch -n $n -- wrong
    ok "dt_init after dt_finalize, $n ranks" launch -n $n -- again
done
ok "a state among ranks" launch -n 3 -- sync
for n in 2 4; do
    ok "begin again when one rank wants to, $n ranks" \
        launch -n $n --elastic $n -- revoke
    ok "begin again when all do, $n ranks" launch -n $n --elastic $n -- calm
done
for n in 2 3 4; do
    ok "memory outlives a loss, $n ranks" launch -n $n --elastic $((n - 1)) -- memory
    ok "the first of $n ranks is lost" launch -n $n --elastic $((n - 1)) -- shrink
done

train() # OPTION... -- LOSS...; the lines of the training, and the exit code
{
    local opts=() dir

    while [ "$1" != -- ]; do
        opts+=("$1")
        shift
    done
    dir=$(mktemp -d "$tmp/train.XXXXXX")
    launch "${opts[@]}" -- train "$dir" "${@:2}" >"$tmp/out"
    echo "exit $?" >>"$tmp/out"
    grep -E '^(trained|ended|exit)' "$tmp/out" | sort | uniq -c |
        sed 's/^ *//'
}

undisturbed=$(train -n 3 -- | sed -n 's/.*: //p')
like "a training" "$undisturbed" '^[0-9a-f]{16}$'

# losses: the job gets smaller, each sample counts once
while read -r name losses; do
    # shellcheck disable=SC2086 # words
    like "smaller after losses: $name" "$(train -n 3 --elastic 1 -- $losses |
        tr '\n' ' ')" '^1 exit 0 [12] trained on [12] ranks: [0-9a-f]{16} $'
done <<'END'
before_a_sum before.1.5
during_a_sum during.0.20
before_a_commit between.2.0
after_a_commit after.1.40
one_after_the_other before.1.5 during.2.30
in_the_same_step before.1.9 before.0.9
while_they_meet before.1.5 again.0.200
by_an_exit exit.2.7
END

# losses: replaced, the training ends with the bits of an undisturbed one
while read -r name losses; do
    # shellcheck disable=SC2086
    is "as if nothing had happened: $name" \
        "$(train -n 3 --elastic 3 --respawn 9 -- $losses)" \
        "1 exit 0
3 trained on 3 ranks: $undisturbed"
done <<'END'
before_a_sum before.1.6
during_a_sum during.0.24
before_a_commit between.2.0
after_a_commit after.1.42
one_after_the_other before.1.6 during.2.30 before.1.60
in_the_same_step before.1.12 before.0.12
all_but_one during.0.12 during.2.12
while_they_meet before.1.6 again.0.100 again.2.5000
by_an_exit exit.2.9
END

is "replaced until none is left, then smaller" \
    "$(train -n 3 --elastic 1 --respawn 1 -- before.0.6 before.1.21 |
        sed 's/: .*//')" "1 exit 0
2 trained on 2 ranks"
is "fewer than the job needs" "$(train -n 3 --elastic 3 -- before.1.6 |
    sed 's/: .*//' | grep exit)" "1 exit 75"
like "  says so" "$(grep ^dt-run "$tmp/out")" \
    'dt-run: 2 ranks are left, fewer than the minimum of 3'

done_testing
