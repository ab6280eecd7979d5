# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# gpu-ranks.sh - for tests of ranks on the mock driver, to be sourced after
# tap.sh, with the checkout in $top:
#   $build, $ranks, $program  gpu-ranks; the second as libtool does not wrap it,
#                             which would bring the mocks back
#   fork ARG...               dt-fork, for a limited time
#   with N VARIABLE=VALUE... ARG...  the same, with N variables
#   on_rank, lose, below
# shellcheck shell=bash disable=SC2154

build=${DT_BUILD:-$top/build}
ranks=$build/tests/unit/gpu/ranks
[ -x "$ranks" ] || skip_all "not built: $ranks"
program=$build/tests/unit/gpu/.libs/ranks
[ -x "$program" ] || program=$ranks
export DT_TIMEOUT=300
# the ranks share GPU 0 of the mock, unless GPU_OF_ITS_OWN says otherwise
export DT_GPU_WAY=ipc

fork() { timeout -k 5 620 "$build/tests/dt-fork" "$@"; }
with() { (export "${@:2:$1}" && shift $(($1 + 1)) && fork "$@"); }

on_rank() # RANK VARIABLE MODE [ARG...], of three; the variable is for it alone
{
    # shellcheck disable=SC2016
    fork -n 3 bash -c '
        case $DT_FORK in "$1 "*) export "$2" ;; esac
        exec "$3" "${@:4}"' - "$1" "$2" "$program" "${@:3}"
}

lose() # HOW CALL MICROSECONDS RANKS NODES; with ucx.sh
{
    local out

    out=$(past_ucx fork -n "$4" -N "$5" "$ranks" lost "$1" "$2" "$3")
    [ "$(grep '^dt-fork' <<<"$out" | sed -E 's/rank [0-9]+:/rank N:/')" = \
        'dt-fork: rank N: killed by signal 9' ] && return
    echo "$*: $out"
    return 1
}
