# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# disturb.sh - what happens to trainings, to be sourced after training.sh:
#   training_of SECONDS     sets $args to a training that takes so long on this
#                           machine, and saves every $interval steps
#   start_reference, await_reference   its undisturbed run, in reference/; then
#                           $steps is how many it has taken
#   disturb EVENT...        to the job $job, whose folder is the current one, an
#                           event for each start: preempt; first or last, a node
#                           that loses its power; limit, the time limit
#   is_as_undisturbed EVENT...   what survived these in the current folder has
#                           the weights of the reference, and lost little
# shellcheck shell=bash
# shellcheck disable=SC2154 # those of training.sh and cluster.sh

interval=100 # steps

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

# However busy the machine is while this is found out.
training_of() # SECONDS
{
    local _ epochs
    args=(--data="$cluster_share/data" --batch=16 --hidden=64 --quiet)
    for _ in 1 2 3; do
        sb srun -N2 --ntasks-per-node=2 "$fashion" "${args[@]}" --epochs=20 \
            --metrics=speed >/dev/null 2>&1
    done
    epochs=$(epochs_for "$1" speed 20)
    args+=(--epochs="$epochs" --ckpt-every="$interval" --metrics=m.csv
        --save-weights=w)
    echo "# $epochs epochs"
}

start_reference()
{
    submit reference single "${args[@]}"
    reference=$job
}

await_reference()
{
    ok "the undisturbed training ends" wait_for 120 ended "$reference"
    is "as COMPLETED" "$(state_of "$reference")" COMPLETED
    [ -s reference/w ] || give_up reference/log
    steps=$(sed -n 's/^weights .* after \([0-9]*\) steps/\1/p' reference/log)
}

is_as_undisturbed() # EVENT...
{
    local event lost losses=0
    for event in "$@"; do
        case $event in first | last) losses=$((losses + 1)) ;; esac
    done
    is "it ran once more than it was disturbed" \
        "$(grep -c ,start, m.csv)" $(($# + 1))
    is "and knew the restarts" "$(awk -F, '$3 == "start" { print $2 }' m.csv |
        paste -sd ' ')" "$(seq -s ' ' 0 $#)"
    ok "the digest of its weights is that of the undisturbed one" \
        grep -qx "weights $(digest_of ../reference/log) after $steps steps" log
    ok "and so is every bit" cmp w ../reference/w
    is "a run that got the notice lost no training step" "$(awk -F, '
        $3 == "start" && told != "" && told != $5 { print told " -> " $5 }
        { told = $3 == "preempted" ? $5 : "" }' m.csv)" ""
    is "all got the notice, but for those that lost a node" \
        "$(grep -c ,preempted, m.csv)" $(($# - losses))
    lost=$(awk -F, '$3 == "start" && n++ && !told { print last - $5 }
        { told = $3 == "preempted" } $3 == "loss" { last = $5 }' m.csv)
    echo "# steps lost with a node: ${lost//$'\n'/ }"
    # one checkpoint may be on its way to the disk when the power fails
    is "which lost less than two intervals" \
        "$(awk -v most=$((2 * interval)) '$1 >= most' <<<"$lost")" ""
    is "the log has every start" "$(grep -c '^resumed at step ' log)" $#
    is "and the metrics every step" \
        "$(awk -F, '$3 == "loss" { print $5 }' m.csv | sort -nu |
            paste -sd ' ')" "$(seq -s ' ' 20 20 "$steps")"
}
