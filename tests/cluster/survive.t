#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# survive.t - one training that is pushed out ten times, loses two nodes and
# runs into its time limit ends with the weights of an undisturbed one; so does
# a program of PyTorch with checkpoints of its own

top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
# shellcheck source=tests/lib/cluster.sh
. "$top/tests/lib/cluster.sh"
# shellcheck source=tests/lib/training.sh
. "$top/tests/lib/training.sh"

python=/usr/bin/python3 # the distribution's, which has its modules
interval=100            # steps
SECONDS=0

training_up -N 5 --gpus 4
small_data data 2048

# ---- what happens to a job ----

# Has the RUNth start of the training in the current folder taken steps?
under_way() # RUN
{
    [ ! -e steps ] || { awk -v run="$1" '$1 == "start" { n++ }
        n == run && $1 == "step" && ++steps >= 3 { found = 1 }
        END { exit !found }' steps && return; }
    [ -e m.csv ] && awk -F, -v run="$1" '$3 == "start" { n++ }
        n == run && $3 == "loss" { found = 1 }
        END { exit !found }' m.csv
}

# A job of high priority wants just its nodes.
push_out()
{
    local nodes
    mapfile -t nodes < <(nodes_of "$job")
    sb srun -p high --exclusive -N "${#nodes[@]}" \
        -w "$(IFS=, && echo "${nodes[*]}")" true 2>&1
}

# As root a node is a namespace, which dies with its first process; else the
# processes that say they run on it. Slurm would wait for its answer.
cut_power() # first | last
{
    local nodes node file
    mapfile -t nodes < <(nodes_of "$job")
    node=${nodes[0]}
    [ "$1" = first ] || node=${nodes[-1]}
    if [ -s "$cluster_dir/run/$node" ]; then
        kill -KILL "$(<"$cluster_dir/run/$node")" || return
    else
        kill -KILL "$(<"$cluster_dir/run/slurmd-$node.pid")" || return
        grep -lszF "$cluster_dir" /proc/[0-9]*/environ |
            xargs grep -lszx "SLURMD_NODENAME=$node" | while read -r file; do
            file=${file#/proc/}
            kill -KILL "${file%/*}"
        done
    fi
    sb scontrol update nodename="$node" state=down reason=power
}

# Each event comes when the run before it has got on; the last run ends.
disturb() # EVENT...
{
    local event run=0
    for event in "$@"; do
        run=$((run + 1))
        if ! wait_for 60 under_way "$run"; then
            ok "start $run takes steps" false
            tap_show log "$(tail -n 20 log)"
            sb scancel "$job"
            return 1
        fi
        case $event in
        preempt) ok "start $run is pushed out" push_out ;;
        first | last) ok "start $run loses its $event node" cut_power "$event" ;;
        limit) ok "start $run may run for 20 seconds" wait_for 60 has end . &&
            ok "it leaves before they are over" wait_for 60 under_way \
                $((run + 1)) &&
            ok "and the limit is no more" \
                sb scontrol update JobId="$job" TimeLimit=60 ;;
        esac
    done
    ok "start $((run + 1)) ends" wait_for 120 ended "$job"
    is "as COMPLETED" "$(state_of "$job")" COMPLETED
}

# ---- a training with libdt ----

# so long that all of this fits into it: about 50 seconds on this machine,
# however busy it is while this is found out
args=(--data="$cluster_share/data" --batch=16 --hidden=64 --quiet)
for _ in 1 2 3; do
    sb srun -N2 --ntasks-per-node=2 "$fashion" "${args[@]}" --epochs=20 \
        --metrics=speed >/dev/null 2>&1
done
epochs=$(epochs_for 50 speed 20)
args+=(--epochs="$epochs" --ckpt-every="$interval" --metrics=m.csv
    --save-weights=w)
echo "# $epochs epochs"

submit reference single "${args[@]}"
ok "the undisturbed training ends" wait_for 120 ended "$job"
is "as COMPLETED" "$(state_of "$job")" COMPLETED
[ -s reference/w ] || give_up reference/log
steps=$(sed -n 's/^weights .* after \([0-9]*\) steps/\1/p' reference/log)

# the fifth start has 20 seconds, since Slurm's limits are whole minutes
mkdir survivor
# shellcheck disable=SC2016 # the script expands them
script_of preemptible "$fashion" "${args[@]}" |
    sed '/^srun/i if [ "$SLURM_RESTART_COUNT" = 4 ]; then\
    scontrol update JobId="$SLURM_JOB_ID" EndTime=now+20\
    echo $(($(date +%s) + 20)) >end\
fi' >survivor/script
submit_script survivor
cd survivor || exit 1
events=(preempt preempt preempt first limit preempt preempt preempt preempt
    last preempt preempt preempt)
disturb "${events[@]}"

is "it ran once more than it was disturbed" "$(grep -c ,start, m.csv)" \
    $((${#events[@]} + 1))
is "and knew the restarts" "$(awk -F, '$3 == "start" { print $2 }' m.csv |
    paste -sd ' ')" "$(seq -s ' ' 0 ${#events[@]})"
ok "the digest of its weights is that of the undisturbed one" \
    grep -qx "weights $(digest_of ../reference/log) after $steps steps" log
ok "and so is every bit" cmp w ../reference/w
is "a run that got the notice lost no training step" "$(awk -F, '
    $3 == "start" && told != "" && told != $5 { print told " -> " $5 }
    { told = $3 == "preempted" ? $5 : "" }' m.csv)" ""
is "all got the notice, but for those that lost a node" \
    "$(grep -c ,preempted, m.csv)" 11
lost=$(awk -F, '$3 == "start" && n++ && !told { print last - $5 }
    { told = $3 == "preempted" } $3 == "loss" { last = $5 }' m.csv |
    paste -sd ' ')
echo "# steps lost with the nodes: $lost"
# one checkpoint may be on its way to the disk when the power fails
is "which lost less than two intervals" \
    "$(awk -v most=$((2 * interval)) '$1 >= most || $2 >= most' <<<"$lost")" ""
is "the log has every start" "$(grep -c '^resumed at step ' log)" \
    ${#events[@]}
is "and the metrics every step" \
    "$(awk -F, '$3 == "loss" { print $5 }' m.csv | sort -nu | paste -sd ' ')" \
    "$(seq -s ' ' 20 20 "$steps")"
is "it left before its time limit, by the clock" "$(awk -F, -v end="$(<end)" '
    $2 == 4 && $3 == "preempted" { print $1 < end }' m.csv)" 1
cd ..

# ---- a program that knows nothing of libdt ----

if "$python" -c 'import torch' 2>/dev/null; then
    export OMP_NUM_THREADS=1
    sbatch_args=(--nodes=1 --ntasks-per-node=1)
    for name in torch-reference torch; do
        mkdir "$name"
        script_of preemptible "$python" "$top/tests/cluster/survive.py" \
            >"$name/script"
    done
    submit_script torch-reference
    reference=$job
    submit_script torch
    cd torch || exit 1
    disturb preempt first preempt
    ok "the undisturbed one ends" wait_for 60 ended "$reference"
    ok "its weights are the same" cmp weights ../torch-reference/weights
    is "it ran once more than it was disturbed" "$(grep -c ^start steps)" 4
    cd ..
else
    ok "PyTorch # SKIP $python has no module torch"
fi

echo "# $SECONDS seconds"
done_testing
