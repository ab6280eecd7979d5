#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# train.t - the training program and the batch templates: preempted, requeued
# and resumed; cancelled; in an array; over a time limit; without good data or a
# good checkpoint

top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
# shellcheck source=tests/lib/cluster.sh
. "$top/tests/lib/cluster.sh"

# shellcheck source=tests/lib/training.sh
. "$top/tests/lib/training.sh"
hello=$DT_PREFIX/libexec/slurm-dt/examples/hello

training_up -N 2 --gpus 4

in_step() # NAME ARG...: fashion on two ranks; prints what it says and rc N
{
    local rc=0
    sb srun -N2 -n2 --partition=low "$fashion" "$@" 2>&1 || rc=$?
    echo "rc $rc"
}

# ---- two ranks on each of two nodes find each other ----

like "hello from four ranks on two nodes" \
    "$(sb srun -N2 --ntasks-per-node=2 --partition=low "$hello" | sort)" \
    'rank 3 of 4, node 1 of 2: sum 10, expected 10'

# ---- preempted, requeued, resumed: the same weights ----

small_data data 6000
args=(--epochs=20 --batch=16 --metrics=m.csv --save-weights=w)
submit reference single "${args[@]}"
ok "the undisturbed training ends" wait_for 90 ended "$job"
is "as COMPLETED" "$(state_of "$job")" COMPLETED
[ -s reference/w ] || give_up reference/log

submit preempted preemptible "${args[@]}"
job_low=$job
ok "another one is on its way" wait_for 60 has preempted/m.csv ',loss,1,'
ok "a job of high priority gets its nodes" \
    sb srun -N2 --exclusive --partition=high true
ok "the training comes back and ends" wait_for 90 ended "$job_low"
is "as COMPLETED too" "$(state_of "$job_low")" COMPLETED
step=$(sed -n 's/^preempted: checkpoint at step \([0-9]*\), exit 75$/\1/p' \
    preempted/log)
like "it got the notice in the middle" "$step" '^[1-9][0-9]*$'
ok "it resumed at the same step" has preempted/log "^resumed at step $step\$"
is "it ran twice" "$(grep -c ',start,' preempted/m.csv)" 2
is "the digest of its weights is that of the undisturbed one" \
    "$(digest_of preempted/log)" "$(digest_of reference/log)"
ok "and so is every bit" cmp preempted/w reference/w

mkdir again
ok "a bad path for the weights" \
    grep -q 'again: Is a directory' <<<"$(in_step --data=data \
        --save-weights=again --ckpt=again/ckpt)"
ok "is found before the training" test ! -e again/ckpt

# ---- cancelled is not preempted ----
#
# scancel sends SIGTERM to the tasks as a preemption does, but also to the
# script. One that survives it must not be requeued either.

mkdir cancelled
script_of preemptible "$fashion" --data="$cluster_share/data" \
    --epochs=100000 --metrics=m.csv | sed '/^srun/i trap : TERM' \
    >cancelled/script
submit_script cancelled
wait_for 60 has cancelled/m.csv ',loss,'
sb scancel "$job"
ok "a cancelled training ends" wait_for 30 ended "$job"
gone() # nothing of the job runs on a node, which could requeue it
{
    ! compgen -G "$cluster_dir/spool/n?/n?_$job.*" >/dev/null
}
wait_for 30 gone
is "and is not requeued" "$(state_of "$job")" CANCELLED
has cancelled/log '^preempted: ' ||
    echo "# it was gone before it could save a checkpoint"

# ---- the other templates ----

sbatch_args=(--array=0-1)
submit sweep sweep --epochs=2
ok "an array of two learning rates ends" wait_for 60 ended "$job"
is "each in a log of its own, with a result of its own" \
    "$(sb squeue -h --states=all -r -j "$job" -o %T | sort -u)
$(grep -c ^weights sweep/log)
$(digest_of sweep/log | sort -u | wc -l)" "COMPLETED
2
2"
is "and checkpoints of its own" "$(cd sweep && echo ckpt-*)" \
    "ckpt-0.01 ckpt-0.02"
sbatch_args=()

# Slurm's limits are whole minutes: shorten that of the first start, which would
# take for ever. The second has little left to do.
mkdir chain
# shellcheck disable=SC2016 # the script expands them
script_of chain "$fashion" --data="$cluster_share/data" --batch=16 \
    --epochs='$epochs' --metrics=m.csv --quiet |
    sed '/^srun/i epochs=100000\
if [ -e m.csv ]; then\
    epochs=$(($(cut -d , -f 4 m.csv | sort -n | tail -n 1) + 5))\
else\
    scontrol update JobId="$SLURM_JOB_ID" EndTime=now+20\
fi' >chain/script
submit_script chain
ok "a training longer than its time limit is in line again" \
    wait_for 60 has chain/m.csv ',1,start,'
ok "with a longer one" sb scontrol update JobId="$job" TimeLimit=60
ok "it ends" wait_for 120 ended "$job"
is "as COMPLETED" "$(state_of "$job")" COMPLETED
is "and resumed at the step where it left" \
    "$(sed -n 's/^resumed at step //p' chain/log)" \
    "$(sed -n 's/^preempted: checkpoint at step \([0-9]*\), .*/\1/p' chain/log)"

# ---- another world size goes on; another model does not ----

out=$(in_step --data=data --epochs=20 --batch=16 --ckpt=reference/ckpt --quiet)
like "a finished training, started again on 2 ranks: nothing to do" "$out" \
    "weights $(digest_of reference/log)"
steps=$(sed -n 's/^weights .* after \([0-9]*\) steps/\1/p' reference/log)
like "it resumed at its last step" "$out" "^resumed at step $steps\$"

out=$(in_step --data=data --hidden=32 --ckpt=reference/ckpt)
like "a checkpoint of another model: refused" "$out" \
    '^fashion: rank 0: dt_ckpt_load: '
like "with the cure" "$out" \
    'tensor .* there and .* in the program: start the program with'
is "in one line of fashion's" "$(grep -c ^fashion: <<<"$out")" 1
like "with exit code 1" "$out" '^rc 1$'
out=$(in_step --data=data --seed=9 --ckpt=reference/ckpt)
like "a checkpoint of another seed: refused" "$out" 'give --seed=1 or another'

for file in reference/ckpt/step-*/*.safetensors; do
    printf x | dd of="$file" bs=1 seek=5000 conv=notrunc status=none
done
out=$(in_step --data=data --epochs=20 --batch=16 --ckpt=reference/ckpt)
like "damaged checkpoints: no silent start from scratch" "$out" \
    '^fashion: rank 0: dt_ckpt_load: '
like "exit code 1" "$out" '^rc 1$'

# ---- data and options ----

out=$(in_step --data=/nonexistent)
like "no dataset: what to do" "$out" \
    '^fashion: rank 0: /nonexistent/.*apt-get install dataset-fashion-mnist'
is "in one line" "$(grep -c ^fashion: <<<"$out")" 1
like "and exit code 66" "$out" '^rc 66$'
cp -r data torn
truncate -s 100000 torn/train-images-idx3-ubyte.gz
like "a truncated dataset" "$(in_step --data=torn)" 'ends too early'
out=$(in_step --epochs=none)
like "a bad option: one line" "$out" '^fashion: --epochs=none: expected a whole'
like "and exit code 64" "$out" '^rc 64$'

done_testing
