# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# ucx.sh - for tests that kill ranks, to be sourced:
#   past_ucx COMMAND...   prints what COMMAND does, and has its exit code; runs
#                         it once more, a few times, where UCX gave up
# UCX 1.13 can fail an assertion of its own when several connections break at
# once: such a run is no test of slurm-dt.
# shellcheck shell=bash

past_ucx() # COMMAND...
{
    local out rc=0 try

    for ((try = 0; try < 8; try++)); do
        out=$("$@" 2>&1) && rc=0 || rc=$?
        grep -q '^\[.*[a-z_]*\.c:[0-9]* *Assertion' <<<"$out" || break
        rc=1
    done
    printf '%s\n' "$out"
    return "$rc"
}
