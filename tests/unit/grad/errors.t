#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# errors.t - ranks that disagree, calls that are wrong, ranks that are lost
top=$(cd "$(dirname "$0")/../../.." && pwd)
. "$top/tests/lib/tap.sh"
. "$top/tests/lib/grad-ranks.sh"
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
export TMPDIR=$tmp

for n in 2 3 4; do
    ok "ranks that disagree are told about what, $n ranks" launch -n $n mismatch
done
for n in 1 2 3; do
    ok "a wrong call is an error on its rank alone, $n ranks" launch -n $n local
    ok "wrong calls of plans, $n ranks" launch -n $n plan-local
    ok "closed, opened again, opened twice, $n ranks" launch -n $n close
    ok "a process that was forked has no engine, $n ranks" launch -n $n fork
done

ok "a timeline" launch -n 2 timeline "$tmp/timeline"
for r in 0 1; do
    ok "  is JSON on rank $r" python3 -m json.tool "$tmp/timeline.$r"
    like "  and has the names" "$(cat "$tmp/timeline.$r")" 'layer'
done

# phase, lost rank of 3, microseconds until it is killed
losses <<'END'
open 1 0
waiting 2 0
waiting 0 1000
negotiation 2 500
negotiation 1 20000
negotiation 0 7000
bucket 2 100
bucket 0 9000
plan 1 0
join 2 0
set 0 0
close 1 0
END

out=$(DT_TIMEOUT=3 launch --no-kill -n 3 absent)
is "no rank waits for longer than DT_TIMEOUT" "$(grep ^dt-run <<<"$out")" ''
like "  and says for what" "$out" \
    '^rank [0-9]: timed out: .*only [0-9].*rank'
out=$(launch --no-kill -n 3 stall)
is "an end of what is stalled" "$(grep ^dt-run <<<"$out")" ''
like "  is announced, with the name" "$out" '(mine|others).*ranks? [0-9]'

done_testing
