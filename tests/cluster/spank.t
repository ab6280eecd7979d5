#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# spank.t - srun, sbatch and salloc --dt-gpus on a real Slurm: who gets what
set -u
cd "$(dirname "$0")/../.." || exit
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
# shellcheck source=tests/lib/cluster.sh
. tests/lib/cluster.sh
SB_TIMEOUT=40

cluster_up -N2 --gpus 4

# Two tasks on each of two nodes with four GPUs each. A task says its rank,
# its own GPUs, and what it sees.
tasks=(-Q -N2 --ntasks-per-node=2 --gpus-per-node=4)
cat >"$cluster_share/say" <<'END'
#!/bin/sh
echo "$SLURM_PROCID: ${DT_GPUS-nothing} $CUDA_VISIBLE_DEVICES"
END
chmod 755 "$cluster_share/say"
say=$cluster_share/say

on_both_nodes() # TASK0 TASK1: what the four tasks are to say
{
    printf '%s\n' "0: $1" "1: $2" "2: $1" "3: $2"
}
untouched=$(on_both_nodes 'nothing 0,1,2,3' 'nothing 0,1,2,3')
auto=$(on_both_nodes '0,1 0,2,1,3' '2,3 0,2,1,3')
rotate=$(on_both_nodes '0,1 0,1,2,3' '2,3 2,3,0,1')
single=$(on_both_nodes '0,1 0,1' '2,3 2,3')
one=$(on_both_nodes '0 0' '1 1')

srun_says() # SRUN-ARG...
{
    sb srun "${tasks[@]}" "$@" "$say" 2>&1 | sort
}

# ---- each type

is 'without --dt-gpus' "$(srun_says)" "$untouched"
is '--dt-gpus' "$(srun_says --dt-gpus)" "$auto"
is '--dt-gpus=auto' "$(srun_says --dt-gpus=auto)" "$auto"
is '--dt-gpus=rotate' "$(srun_says --dt-gpus=rotate)" "$rotate"
is '--dt-gpus=single' "$(srun_says --dt-gpus=single)" "$single"
is '--dt-gpus=1' "$(srun_says --dt-gpus=1)" "$one"
is '--dt-gpus=2' "$(srun_says --dt-gpus=2)" "$single"
is '--dt-gpus=none' "$(srun_says --dt-gpus=none)" "$untouched"
is 'the last of two options counts' \
    "$(srun_says --dt-gpus=single --dt-gpus=rotate)" "$rotate"
is 'GPUs that Slurm bound to each task are its own' \
    "$(sb srun -Q -w n0 -n2 --gpus-per-task=2 --dt-gpus "$say" 2>/dev/null |
        sort)" \
    $'0: 0,1 0,1\n1: 2,3 2,3'
is 'more tasks than GPUs share them' \
    "$(sb srun -Q -w n0 -n4 --gpus-per-node=2 --dt-gpus "$say" 2>&1 | sort)" \
    $'0: 0 0,1\n1: 0 0,1\n2: 1 0,1\n3: 1 0,1'

help=$(sb srun --dt-gpus=help "$say" 2>&1)
is '--dt-gpus=help ends srun with 0' $? 0
like 'and explains each type' "$(tr '\n' ' ' <<<"$help")" \
    ' auto .* rotate .* single .* <n> .* none .* help '
like 'srun --help knows the option' "$(sb srun --help)" '^ +--dt-gpus='

# ---- verbose

err=$(sb srun "${tasks[@]}" --dt-gpus=verbose,rotate env 2>&1 \
    >"$cluster_share/env")
like 'verbose: the header is the first line' "$(head -n 1 <<<"$err")" \
    '^dt: rank  node  local  gpus     sees             cpus            numa  '\
'nics$'
rows() # the rows of the table on stdin, as far as GPUs go
{
    awk '/^dt: +[0-9r]/ { print $2, $3, $4, $5, $6 }' | sort
}
is 'verbose: one row per task' "$(tail -n +2 <<<"$err" | rows)" \
'0 n0 0 0,1 0,1,2,3
1 n0 1 2,3 2,3,0,1
2 n1 0 0,1 0,1,2,3
3 n1 1 2,3 2,3,0,1'
is 'verbose: the table agrees with the environment' \
    "$(grep ^CUDA_VISIBLE_DEVICES "$cluster_share/env" | sort | uniq -c |
        tr -s ' ')" \
    $' 2 CUDA_VISIBLE_DEVICES=0,1,2,3\n 2 CUDA_VISIBLE_DEVICES=2,3,0,1'
is 'verbose with bound GPUs' "$(sb srun -Q -w n0 -n2 --gpus-per-task=1 \
    --dt-gpus=verbose true 2>&1 | rows)" \
'0 n0 0 0 0
1 n0 1 1 1
rank node local gpus sees'
# As a batch job: srun alone may miss that its heterogeneous job has started,
# with no plugin at all, and wait for ever. So it may when it ends, as each
# component joins the one thread of mpi/pmix.
cat >"$cluster_share/het.sh" <<'END'
#!/bin/bash
#SBATCH -w n0 -n1 --gpus-per-node=1
#SBATCH hetjob
#SBATCH -w n1 -n2 --gpus-per-node=2
srun -Q --mpi=none --het-group=0,1 --dt-gpus=verbose true
END
is 'verbose in a heterogeneous job: one header, ranks over all' \
    "$(sb sbatch -W -o "$cluster_share/het" "$cluster_share/het.sh" \
        >/dev/null 2>&1
        rows <"$cluster_share/het")" \
'0 n0 0 0 0
1 n1 0 0 0,1
2 n1 1 1 0,1
rank node local gpus sees'
# Slurm has one value for all parts.
differs() # NAME OPTION SRUN-ARG...
{
    local err rc
    err=$(sb srun "${@:3}" 2>&1)
    rc=$?
    is "$1" "$rc $(grep -c 'dt: --'"$2"' differs between the parts' <<<"$err")" \
        '255 1'
}
differs 'a part with --dt-gpus and one without it' dt-gpus \
    -w n0 --dt-gpus true : -w n1 true
differs 'parts with other values' dt-gpus \
    -w n0 --dt-gpus=rotate true : -w n1 --dt-gpus=single true
differs 'parts that bind CPUs in another way' dt-cpu-bind \
    -w n0 --dt-gpus true : -w n1 --dt-gpus --dt-cpu-bind=none true
is 'parts with the same value: the step runs' "$(sb srun -Q --mpi=none \
    -w n0 --gpus-per-node=1 --dt-gpus=single printenv CUDA_VISIBLE_DEVICES : \
    -w n1 --gpus-per-node=2 --dt-gpus=single printenv CUDA_VISIBLE_DEVICES \
    2>&1 | sort)" $'0\n0,1'

# ---- the task's environment

get_env() # ENV-ARG... -- SRUN-ARG...: of a single task
{
    local set=()
    while [ "$1" != -- ]; do
        set+=("$1")
        shift
    done
    shift
    sb env "${set[@]}" srun -Q -w n0 -n1 --gpus-per-node=2 "$@" \
        env 2>&1
}
env=$(get_env A=1 -- --dt-gpus=rotate)
job=$(sed -n 's/^SLURM_JOB_ID=//p' <<<"$env")
is 'DT_ENV_VERSION' "$(grep ^DT_ENV_VERSION <<<"$env")" DT_ENV_VERSION=1
is 'CUDA_DEVICE_ORDER' "$(grep ^CUDA_DEVICE_ORDER <<<"$env")" \
    CUDA_DEVICE_ORDER=PCI_BUS_ID
is 'DT_RUN_ID is the job id' "$(grep ^DT_RUN_ID <<<"$env")" "DT_RUN_ID=$job"
env=$(get_env DT_RUN_ID=mine CUDA_DEVICE_ORDER=FASTEST_FIRST -- --dt-gpus)
is "what the user set is kept" \
    "$(grep -E '^(DT_RUN_ID|CUDA_DEVICE_ORDER)' <<<"$env" | sort)" \
    $'CUDA_DEVICE_ORDER=FASTEST_FIRST\nDT_RUN_ID=mine'
is 'the variables of the other runtimes are permuted alike' \
    "$(sb srun -Q -w n0 -n2 --gpus-per-node=2 --dt-gpus=rotate -l env 2>&1 |
        sed -nE 's/^1: (ROCR_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL)=//p')" \
    $'1,0\n1,0'

# ---- variables, batch jobs, allocations

is 'SLURM_DT_GPUS is srun'"'s" \
    "$(sb env SLURM_DT_GPUS=rotate srun "${tasks[@]}" "$say" 2>&1 | sort)" \
    "$rotate"
is 'SLURM_DT_GPUS, --export=NONE' \
    "$(sb env SLURM_DT_GPUS=rotate \
        srun "${tasks[@]}" --export=NONE "$say" 2>&1 | sort)" "$rotate"
is 'SLURM_DT_GPUS, --export=LIST' \
    "$(sb env SLURM_DT_GPUS=1 \
        srun "${tasks[@]}" --export=HOME "$say" 2>&1 | sort)" "$one"
is 'an empty SLURM_DT_GPUS is none' \
    "$(sb env SLURM_DT_GPUS= srun "${tasks[@]}" "$say" 2>&1 | sort)" \
    "$untouched"
is 'the command line wins over SLURM_DT_GPUS' \
    "$(sb env SLURM_DT_GPUS=1 \
        srun "${tasks[@]}" --dt-gpus=single "$say" 2>&1 | sort)" "$single"
is 'SBATCH_DT_GPUS is not srun'"'s" \
    "$(sb env SBATCH_DT_GPUS=1 srun "${tasks[@]}" "$say" 2>&1 | sort)" \
    "$untouched"

# A batch job that prints what its script and its steps get.
batch() # HEADER-LINE FILE
{
    cat >"$2" <<END
#!/bin/bash
#SBATCH -N2 --ntasks-per-node=2 --gpus-per-node=4
$1
echo "script: \${DT_GPUS-nothing} \$CUDA_VISIBLE_DEVICES"
echo "step:"
srun -Q $say | sort
echo "its own option:"
srun -Q --dt-gpus=single $say | sort
echo "its own variable:"
SLURM_DT_GPUS=1 srun -Q --export=NONE $say | sort
echo "its own none:"
srun -Q --dt-gpus=none $say | sort
END
}
batch_wants() # STEP: what the plain srun in it says
{
    printf '%s\n' 'script: nothing 0,1,2,3' step: "$1" \
        'its own option:' "$single" 'its own variable:' "$one" \
        'its own none:' "$untouched"
}
batch '#SBATCH --dt-gpus=rotate' "$cluster_share/header.sh"
batch '' "$cluster_share/plain.sh"

sbatch=(sbatch -Q -W -o "$cluster_share/out")
is '#SBATCH --dt-gpus reaches the steps, which may say otherwise' \
    "$(sb "${sbatch[@]}" "$cluster_share/header.sh" >/dev/null 2>&1
        cat "$cluster_share/out")" "$(batch_wants "$rotate")"
is 'sbatch --dt-gpus wins over #SBATCH and over SLURM_DT_GPUS' \
    "$(sb env SLURM_DT_GPUS=1 "${sbatch[@]}" --dt-gpus \
        "$cluster_share/header.sh" >/dev/null 2>&1
        cat "$cluster_share/out")" "$(batch_wants "$auto")"
is 'SBATCH_DT_GPUS, --export=NONE' \
    "$(sb env SBATCH_DT_GPUS=single "${sbatch[@]}" --export=NONE \
        "$cluster_share/plain.sh" >/dev/null 2>&1
        cat "$cluster_share/out")" "$(batch_wants "$single")"
is 'sbatch --dt-gpus=none' \
    "$(sb env SLURM_DT_GPUS=1 "${sbatch[@]}" --dt-gpus=none \
        "$cluster_share/header.sh" >/dev/null 2>&1
        cat "$cluster_share/out")" "$(batch_wants "$untouched")"

is 'an array job has a run id per element' \
    "$(sb sbatch -Q -W --array=4,7 -o "$cluster_share/run-%a" \
        --gpus-per-node=1 --dt-gpus --wrap \
        "srun sh -c 'echo \$SLURM_ARRAY_JOB_ID \$DT_RUN_ID'" >/dev/null 2>&1
        cat "$cluster_share/run-4" "$cluster_share/run-7" |
        sed -E 's/^([0-9]+) \1_/the job, element /')" \
    $'the job, element 4\nthe job, element 7'

cat >"$cluster_share/shell" <<END
echo "shell: \${DT_GPUS-nothing}"
srun -Q --export=NONE $say | sort
END
alloc=(salloc -Q -N2 --ntasks-per-node=2 --gpus-per-node=4)
is 'salloc --dt-gpus reaches the steps' \
    "$(sb env SLURM_DT_GPUS=1 "${alloc[@]}" --dt-gpus=rotate \
        bash "$cluster_share/shell" 2>&1)" $'shell: nothing\n'"$rotate"
is 'SALLOC_DT_GPUS' \
    "$(sb env SALLOC_DT_GPUS=single "${alloc[@]}" \
        bash "$cluster_share/shell" 2>&1)" $'shell: nothing\n'"$single"
is 'salloc --dt-gpus=none' \
    "$(sb env SALLOC_DT_GPUS=single SLURM_DT_GPUS=1 "${alloc[@]}" \
        --dt-gpus=none bash "$cluster_share/shell" 2>&1)" \
    $'shell: nothing\n'"$untouched"
cat >"$cluster_share/two" <<END
srun -Q --overlap --dt-gpus=1 $say >"$cluster_share/step1" &
srun -Q --overlap --dt-gpus=rotate $say >"$cluster_share/step2" &
wait
sort "$cluster_share/step1"
sort "$cluster_share/step2"
END
is 'two steps at once, each with its own option' \
    "$(sb salloc -Q -w n0 -n2 --gpus-per-node=2 \
        bash "$cluster_share/two" 2>&1)" \
    $'0: 0 0\n1: 1 1\n0: 0 0,1\n1: 1 1,0'

# At the end of its input script writes "^@", anywhere in the output: this input
# has no end.
if type -P script >/dev/null && mkfifo "$cluster_share/keys"; then
    pty=$(sb script -qec "srun -Q -w n0 -n1 --gpus-per-node=2 \
        --dt-gpus=verbose --pty $say" /dev/null 2>&1 <>"$cluster_share/keys" |
        tr -d '\r')
    like 'srun --pty' "$pty" '^0: 0,1 0,1$'
fi

conf=$DT_PREFIX/share/slurm-dt/plugstack.d/dt.conf
if [ -f "$conf" ]; then
    echo "include $conf" >"$cluster_dir/etc/plugstack.conf"
    is 'the installed dt.conf, included' \
        "$(srun_says --dt-gpus=single --dt-pmix=none | grep -v '^dt: note: ')" "$single"
fi

done_testing
