#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# failure.t - a rank of a framework that fails ends its step, and says so
set -u
cd "$(dirname "$0")/../.." || exit
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
# shellcheck source=tests/lib/cluster.sh
. tests/lib/cluster.sh
SB_TIMEOUT=40

cluster_up -N2 --gpus 0

# The rank in $RANK_FAILS does that once all have started, or at once if $EARLY
# is set; each other one waits for longer than this test may take.
cat >"$cluster_share/task" <<'END'
#!/bin/sh
go()
{
    touch "$DIR/go"
}
touch "$DIR/started.$SLURM_PROCID"
until [ -n "$EARLY" ] || [ "$(ls "$DIR" | grep -c started)" = 4 ]; do
    sleep 0.1
done
[ "$SLURM_PROCID" != "$RANK_FAILS" ] || eval "$DOES"
i=0
while [ $i -lt 3000 ] && [ ! -e "$DIR/go" ]; do
    i=$((i + 1))
    sleep 0.1
done
touch "$DIR/survived.$SLURM_PROCID"
END
chmod 755 "$cluster_share/task"

runs() # RANK DOES SRUN-ARG...
{
    DIR=$(mktemp -d "$cluster_share/run.XXXXXX")
    export DIR RANK_FAILS=$1 DOES=$2 EARLY=${EARLY-}
    shift 2
    out=$(sb srun -N2 --ntasks-per-node=2 "$@" "$cluster_share/task" 2>&1)
    rc=$?
    survivors=$(cd "$DIR" && echo survived.*)
}

torch=--dt-rendezvous=torch
for rank in 0 3; do
    runs "$rank" 'exit 3' "$torch"
    ok "rank $rank ends with 3: srun fails" [ "$rc" -ne 0 ]
    like "rank $rank ends with 3: rank, node and code are named" "$out" \
        "dt: rank $rank on node n$((rank / 2)) ended with code 3: the step"
    is "rank $rank ends with 3: no other rank continues" "$survivors" \
        'survived.*'
done
runs 0 'kill -9 $$' "$torch"
like 'a killed rank: the signal is named' "$out" \
    'dt: rank 0 on node n0 was killed by signal 9: the step is ended'
is 'a killed rank: no other rank continues' "$survivors" 'survived.*'
EARLY=1
runs 1 'exit 4' "$torch"
EARLY=
like 'one that fails before all have started' "$out" \
    'dt: rank 1 on node n0 ended with code 4: the step'
is 'then no rank continues either' "$survivors" 'survived.*'

# ---- nobody listens

DT_TIMEOUT=2 runs none 'true' "$torch"
ok 'no program listens within DT_TIMEOUT: srun fails' [ "$rc" -ne 0 ]
like 'the port and the node of rank 0 are named, once' "$out" \
    'dt: --dt-rendezvous: no program listens at port [0-9]+ of node n0, where rank 0 is, within 2 s'
is 'then no rank continues' "$survivors" 'survived.*'

# ---- what is no failure

runs 2 'go; exit 75' "$torch"
is 'a rank that asks to be requeued: the others continue' "$survivors" \
    'survived.0 survived.1 survived.3'
runs 2 'go; exit 0' "$torch"
is 'a rank that ends with 0: the others continue' "$rc $survivors" \
    '0 survived.0 survived.1 survived.3'
runs 2 'go; exit 3' --dt-rendezvous=c
is 'ranks that have PMIx only continue, as survivors may' "$survivors" \
    'survived.0 survived.1 survived.3'

done_testing
