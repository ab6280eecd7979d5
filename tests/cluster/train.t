#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# train.t - the training program and the batch template: preempted, requeued
# and resumed; cancelled; without good data or a good checkpoint

top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
# shellcheck source=tests/lib/cluster.sh
. "$top/tests/lib/cluster.sh"

fashion=$DT_PREFIX/libexec/slurm-dt/examples/fashion
hello=$DT_PREFIX/libexec/slurm-dt/examples/hello
template=$DT_PREFIX/share/slurm-dt/templates/train.sbatch
script=$template
data=/usr/share/datasets/fashion-mnist
[ -x "$fashion" ] || skip_all "$fashion is not there: built without OpenBLAS"
[ -r "$data/train-images-idx3-ubyte.gz" ] ||
    skip_all "no dataset: apt-get install dataset-fashion-mnist"

cluster_up -N 2 --gpus 4
cd "$cluster_share" || exit 1

# Few data, so that an epoch is short: the first count samples.
small_data() # DIR COUNT
{
    local kind header width name
    mkdir -p "$1"
    for name in train t10k; do
        for kind in images-idx3 labels-idx1; do
            case $kind in
            images*) header='\0\0\10\3' width=784 ;;
            labels*) header='\0\0\10\1' width=1 ;;
            esac
            # shellcheck disable=SC2059 # the formats are made here
            {
                printf "$header"
                printf "\\0\\0\\$(printf %o $(($2 / 256)))"
                printf "\\$(printf %o $(($2 % 256)))"
                [ "$width" = 1 ] || printf '\0\0\0\34\0\0\0\34'
                zcat "$data/$name-$kind-ubyte.gz" |
                    tail -c "+$((width == 1 ? 9 : 17))" |
                    head -c $(($2 * width))
            } | gzip -1 >"$1/$name-$kind-ubyte.gz"
        done
    done
}

submit() # NAME ARG...; sets job, started by $script
{
    local name=$1
    shift
    mkdir -p "$name"
    job=$(sb sbatch --parsable --job-name="$name" --partition=low \
        --chdir="$cluster_share/$name" --output="$cluster_share/$name/log" \
        "$script" "$fashion" --data="$cluster_share/data" "$@")
}

state_of() # JOB
{
    sb squeue -h --states=all -j "$1" -o %T
}

# Poll until COMMAND succeeds; false when that takes too long.
wait_for() # SECONDS COMMAND...
{
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.3
    done
}

ended() # JOB
{
    [[ $(state_of "$1") =~ ^(COMPLETED|FAILED|CANCELLED|TIMEOUT)$ ]]
}

has() # FILE REGEX
{
    grep -qsE -e "$2" "$1"
}

digest_of() # LOG
{
    sed -n 's/^weights \([0-9a-f]\{16\}\) .*/\1/p' "$1"
}

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
args=(--epochs=20 --batch=16 --ckpt=ckpt --metrics=m.csv --save-weights=w)
submit reference "${args[@]}"
ok "the undisturbed training ends" wait_for 90 ended "$job"
is "as COMPLETED" "$(state_of "$job")" COMPLETED

submit preempted "${args[@]}"
job_low=$job
ok "another one is on its way" wait_for 60 has preempted/m.csv ',loss,1,'
ok "a job of high priority gets its nodes" \
    sb srun -N2 --exclusive --partition=high true
ok "the training comes back and ends" wait_for 90 ended "$job_low"
is "as COMPLETED too" "$(state_of "$job_low")" COMPLETED
step=$(sed -n 's/^preempted: checkpoint at step \([0-9]*\), exit 75$/\1/p' \
    preempted/log)
like "it was told to leave in the middle" "$step" '^[1-9][0-9]*$'
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
# script. One that survives it must not requeue the job either.

sed '/^srun/i trap : TERM' "$template" >survives.sbatch
script=$cluster_share/survives.sbatch
submit cancelled --epochs=100000 --ckpt=ckpt --metrics=m.csv
wait_for 60 has cancelled/m.csv ',loss,'
sb scancel "$job"
ok "a cancelled training ends" wait_for 30 ended "$job"
sleep 1 # a requeue would come now
is "and is not requeued" "$(state_of "$job")" CANCELLED
has cancelled/log '^preempted: ' ||
    echo "# it was gone before it could save a checkpoint"

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
