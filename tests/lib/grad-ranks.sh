# SPDX-License-Identifier: BSD-3-Clause
# grad-ranks.sh - the tests of dt_grad.h start their ranks, to be sourced after
# tap.sh; $top is the tree:
#   launch -n N MODE ...       ranks under dt-run
#   nodes -n N -N NODES MODE   ranks on several pretended nodes
#   losses                     for each line of standard input, "PHASE RANK US":
#                              a rank of three is killed, and the others hear it
# shellcheck shell=bash
build=${DT_BUILD:-$top/build}
grad_ranks=$build/tests/unit/grad/ranks
[ -x "$grad_ranks" ] || skip_all "not built: $grad_ranks"

# Who waits for a time-out does not pass: this one is longer than any run's.
export DT_TIMEOUT=600

launch() # [--no-kill] -n N MODE [ARG ...]
{
    local opts=()

    while [ "$1" != -n ]; do
        opts+=("$1")
        shift
    done
    timeout -k 5 320 "$build/pmix/dt-run" -t 300 "${opts[@]}" -n "$2" \
        "$grad_ranks" "${@:3}" 2>&1
}

nodes() # -n N -N NODES MODE [ARG ...]
{
    timeout -k 5 320 "$build/tests/dt-fork" -t 300 "${@:1:4}" "$grad_ranks" \
        "${@:5}" 2>&1
}

losses()
{
    local phase lost us out

    while read -r phase lost us; do
        out=$(launch --no-kill -n 3 lose "$phase" "$lost" "$us" </dev/null)
        is "rank $lost dies, $phase: only it fails" \
            "$(grep '^dt-run' <<<"$out")" \
            "dt-run: rank $lost: killed by signal 9 (Killed)"
        is "  the others are told" \
            "$(grep -c '^rank [0-9]: process failed: ' <<<"$out")" 2
    done
}
