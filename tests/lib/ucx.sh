# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# ucx.sh - for tests of ranks, to be sourced:
#   over_ucx              from here on, dt-fork's nodes are connected by UCX over
#                         shared memory, which libdt takes if it is named
#   past_ucx COMMAND...   prints what COMMAND does, and has its exit code; runs
#                         it once more, a few times, where UCX gave up
# UCX 1.13 can fail an assertion of its own when several connections break at
# once: such a run is no test of slurm-dt.
# shellcheck shell=bash

over_ucx()
{
    export UCX_TLS=posix,cma,self
    # it watches the peers, as over RDMA
    export UCX_POSIX_ERROR_HANDLING=y UCX_KEEPALIVE_INTERVAL=300ms
}

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
