#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# survive.t - a training that is pushed out, loses a node and runs into its time
# limit ends with the weights of an undisturbed one; so does a program of
# PyTorch with checkpoints of its own

top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
# shellcheck source=tests/lib/cluster.sh
. "$top/tests/lib/cluster.sh"
# shellcheck source=tests/lib/training.sh
. "$top/tests/lib/training.sh"
# shellcheck source=tests/lib/disturb.sh
. "$top/tests/lib/disturb.sh"

python=/usr/bin/python3 # the distribution's, which has its modules
SECONDS=0

training_up -N 5 --gpus 4
small_data data 2048
# so long that all of this fits into it
training_of 45
start_reference

# ---- a program that knows nothing of libdt, while the reference runs ----

if "$python" -c 'import torch' 2>/dev/null; then
    export OMP_NUM_THREADS=1
    sbatch_args=(--nodes=1 --ntasks-per-node=1)
    for name in torch-reference torch; do
        mkdir "$name"
        script_of preemptible "$python" "$top/tests/cluster/survive.py" \
            >"$name/script"
    done
    submit_script torch-reference
    undisturbed=$job
    submit_script torch
    cd torch || exit 1
    disturb preempt first preempt
    ok "the undisturbed one ends" wait_for 60 ended "$undisturbed"
    ok "its weights are the same" cmp weights ../torch-reference/weights
    is "it ran once more than it was disturbed" "$(grep -c ^start steps)" 4
    cd ..
    unset OMP_NUM_THREADS
    sbatch_args=()
else
    ok "PyTorch # SKIP $python has no module torch"
fi

# ---- a training with libdt ----

await_reference
# the third start has 20 seconds, since Slurm's limits are whole minutes
mkdir survivor
# shellcheck disable=SC2016,SC2154 # the script expands them; of training_of
script_of preemptible "$fashion" "${args[@]}" |
    sed '/^srun/i if [ "$SLURM_RESTART_COUNT" = 2 ]; then\
    scontrol update JobId="$SLURM_JOB_ID" EndTime=now+20\
    echo $(($(date +%s) + 20)) >end\
fi' >survivor/script
submit_script survivor
cd survivor || exit 1
events=(preempt first limit preempt)
disturb "${events[@]}"
is_as_undisturbed "${events[@]}"
is "it left before its time limit, by the clock" "$(awk -F, -v end="$(<end)" '
    $2 == 2 && $3 == "preempted" { print $1 < end }' m.csv)" 1
cd ..

echo "# $SECONDS seconds"
done_testing
