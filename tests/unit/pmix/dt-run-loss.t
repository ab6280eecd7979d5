#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# dt-run-loss.t - the launcher notifies libdt that a rank is lost

top=$(cd "$(dirname "$0")/../../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
build=${DT_BUILD:-$top/build}
ranks=$build/tests/unit/pmix/loss-ranks
[ -x "$build/pmix/dt-run" ] || skip_all "not built: $build/pmix/dt-run"
[ -x "$ranks" ] || skip_all "not built: $ranks"

tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
mkfifo "$tmp/pipe"
# who waits for a time-out does not pass: this one is longer than any run's
export TMPDIR=$tmp DT_LOSS_PIPE=$tmp/pipe DT_TIMEOUT=600

# What the survivors print, and what dt-run prints about the lost ranks.
run() # N MODE
{
    timeout -k 5 320 "$build/pmix/dt-run" --no-kill -t 300 -n "$1" \
        "$ranks" "$2" 2>&1 | sort
}

killed='dt-run: rank 2: killed by signal 9 (Killed)'
failed='process failed: rank 2 has died (exit code 137)'
is "a rank dies before the first message" "$(run 3 die)" \
"$killed
rank 0: $failed
rank 1: $failed"
is "no rank waits for it: the launcher reports it" "$(run 3 elsewhere)" \
"$killed
rank 0: $failed
rank 1: $failed"
is "dt_test returns it, too" "$(run 3 test)" \
"$killed
rank 0: $failed
rank 1: $failed"
is "a rank leaves without dt_finalize" "$(run 3 leave)" \
"rank 0: process failed: rank 2 has ended without dt_finalize
rank 1: process failed: rank 2 has ended without dt_finalize"
like "a rank dies before it has come to dt_init" "$(run 3 never)" \
    '^dt_init: the ranks could not .*: rank 2 has died \(exit code 3\)$'
like "the server is gone" "$(run 2 server)" \
    '^rank 0: process failed: the PMIx server of this node is gone$'

# many ranks, so that some leave long before others
out=
for ((i = 0; i < 3; i++)); do
    out+=$(run 16 requeue | grep -v '^dt-run: rank [0-9]*: exit code 75$')
done
is "after dt_finalize no exit code is a failure" "$out" ""

done_testing
