#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# spank-safe.t - the plugin does no harm: a job that does not ask for it has
# the environment it had without, and a bad wish ends with one line, an exit
# code, and idle nodes
set -u
cd "$(dirname "$0")/../.." || exit
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
# shellcheck source=tests/lib/cluster.sh
. tests/lib/cluster.sh
SB_TIMEOUT=30

cluster_up -N2 --gpus 4
plugstack=$cluster_dir/etc/plugstack.conf
with_plugin=$(cat "$plugstack")
like 'the sandbox loads the plugin' "$with_plugin" \
    '^optional .*/spank_dt\.so conf=.*/etc/dt\.conf munge=.*/munge\.sock( auth=native)?$'

nodes() # the states of both nodes, once they have settled
{
    local try state
    for ((try = 0; try < 300; try++)); do
        state=$(sb sinfo -h -p high -o '%D %T')
        [ "$state" != '2 idle' ] || break
        sleep 0.1
    done
    echo "$state"
}

# ---- not asked, nothing changed

# Collect the environments of jobs of each kind in directory $1, each job with
# the options that follow.
collect()
{
    local dir=$cluster_share/$1
    shift
    mkdir -m 777 "$dir"
    cat >"$dir/job.sh" <<END
#!/bin/bash
#SBATCH -N2 --ntasks-per-node=2 --gpus-per-node=4
env -0 >$cluster_share/now/batch
srun -o $cluster_share/now/inner-%t env -0
END
    # the same paths each time
    ln -sfn "$dir" "$cluster_share/now"
    sb srun -Q "$@" -N2 -n3 -o "$cluster_share/now/plain-%t" env -0
    sb srun -Q "$@" -N2 --ntasks-per-node=2 --gpus-per-node=4 \
        -o "$cluster_share/now/gpus-%t" env -0
    sb srun -Q "$@" -w n0 -n2 --gpus-per-task=2 \
        -o "$cluster_share/now/bound-%t" env -0
    sb srun -Q "$@" -w n0 --export=NONE -o "$cluster_share/now/none-%t" \
        "$(type -P env)" -0
    sb sbatch -Q -W "$@" -o /dev/null "$cluster_share/now/job.sh"
    sb salloc -Q "$@" -w n0 --gpus-per-node=2 env -0 >"$dir/salloc"
}

# Two runs of a job differ in its numbers, ports, process ids and times; let
# nothing else pass.
volatile='SLURM_JOB_ID|SLURM_JOBID|SLURM_SRUN_COMM_PORT|SLURM_TASK_PID'
volatile+='|SLURM_JOB_(START|END)_TIME|SLURM_STEP_LAUNCHER_PORT'
volatile+='|SLURM_PMIXP_ABORT_AGENT_PORT|OMPI_MCA_orte_precondition_transports'
volatile+='|PMIX_NAMESPACE|PMIX_SERVER_(URI[0-9]*|TMPDIR)|PMIX_DSTORE_.*_PATH'
same() # DIR WANTED: whether all files are there and hold the same
{
    local file other
    diff <(cd "$cluster_share/$1" && ls) <(cd "$cluster_share/$2" && ls) ||
        return
    for file in "$cluster_share/$2"/*; do
        other=$cluster_share/$1/${file##*/}
        [ -s "$other" ] || { echo "${file##*/} is empty"; return 1; }
        cmp <(stable "$other") <(stable "$file") && continue
        diff <(stable "$other" | tr '\0' '\n') \
            <(stable "$file" | tr '\0' '\n')
        return 1
    done
}
stable() # FILE
{
    sort -z "$1" | sed -zE "s/^($volatile)=.*/\1=/"
}

: >"$plugstack"
collect without
echo "$with_plugin" >"$plugstack"
collect unasked
collect none --dt-gpus=none
collect asked --dt-gpus=auto 2>/dev/null # some get no GPU
is 'each kind of job left its environment' \
    "$(find "$cluster_share/without/" -type f -size +100c | wc -l)" 17
ok 'a job that does not ask: not a byte of its environment differs' \
    same unasked without
ok '--dt-gpus=none: not a byte differs' same none without
is 'SLURM_DT_GPUS=none adds nothing either' \
    "$(sb env SLURM_DT_GPUS=none srun -Q -w n0 --gpus-per-node=1 env |
        grep -E 'SPANK|DT_(GPUS|RUN|ENV)|CUDA_DEVICE_ORDER')" SLURM_DT_GPUS=none
is 'the comparison does find a difference' \
    "$(same asked without >/dev/null && echo none)" ''

# ---- bad input: one line, an exit code

fails() # NAME EXIT-CODE LINE-AS-REGEX CMD ARG...
{
    local name=$1 wanted=$2 line=$3 got err
    shift 3
    err=$(sb "$@" 2>&1)
    got=$?
    is "$name: exit code" "$got" "$wanted"
    is "$name: one line of ours" "$(grep -c 'dt: ' <<<"$err")" 1
    like "$name: what it says" "$err" "error: dt: $line\$"
}
syntax='expected \[verbose,\]auto, rotate, single, <number>, map:<list>, '
syntax+='mask:<list>, none or help'

fails 'srun, an unknown type' 255 "--dt-gpus=foo: $syntax" \
    srun -n1 --dt-gpus=foo true
fails 'srun, a variable' 1 "SLURM_DT_GPUS=verbose,: $syntax" \
    env SLURM_DT_GPUS=verbose, srun -n1 true
fails 'srun, too large a number' 255 \
    '--dt-gpus=65: expected 1 to 64 GPUs per task' srun -n1 --dt-gpus=65 true
fails 'sbatch' 255 "--dt-gpus=1x: $syntax" sbatch --dt-gpus=1x --wrap true
fails 'sbatch, a variable' 1 "SBATCH_DT_GPUS=-1: $syntax" \
    env SBATCH_DT_GPUS=-1 sbatch --wrap true
printf '#!/bin/sh\n#SBATCH --dt-gpus=all\n' >"$cluster_share/bad.sh"
fails '#SBATCH' 255 "--dt-gpus=all: $syntax" sbatch "$cluster_share/bad.sh"
fails 'salloc' 255 "--dt-gpus=x: $syntax" salloc --dt-gpus=x true
fails 'salloc, a variable' 1 "SALLOC_DT_GPUS=x: $syntax" \
    env SALLOC_DT_GPUS=x salloc true
is 'nothing was submitted' "$(sb squeue -h)" ''

fails 'no GPU granted' 1 '--dt-gpus=auto: node n0: Slurm granted no GPU to '\
'this step: ask for them with --gpus-per-node=<n> \(or --gres=gpu:<n>\), or '\
'use --dt-pmix in place of --dt-gpus' srun -Q -w n0 -n2 --dt-gpus true
fails 'more asked for than granted' 1 '--dt-gpus=3: node n0: 2 tasks need 6 '\
'GPUs, Slurm granted 4: ask Slurm for more, or --dt-gpus for fewer' \
    srun -Q -w n0 -n2 --gpus-per-node=4 --dt-gpus=3 true
like 'more asked for than bound to the task' \
    "$(sb srun -Q -w n0 -n2 --gpus-per-task=1 --dt-gpus=2 true 2>&1)" \
    'error: dt: --dt-gpus=2: rank 1, node n0: 1 task needs 2 GPUs, Slurm '\
'granted 1: ask Slurm for more, or --dt-gpus for fewer$'
fails 'a value put past srun' 1 "--dt-gpus=evil: $syntax" \
    env _SLURM_SPANK_OPTION_dt_dt_gpus=evil srun -Q -w n0 -n2 true
case $(slurmctld -V) in
*' 22.'*)
    fails 'GPUs that Slurm does not name' 1 '--dt-gpus=auto: node n0: with '\
'--gpu-bind=none, Slurm names no GPU to the tasks: leave --gpu-bind out' \
        srun -Q -w n0 -n2 --gpus-per-node=4 --gpu-bind=none --dt-gpus true ;;
*) # Slurm names them
    is 'GPUs are distributed with --gpu-bind=none, too' \
        "$(sb srun -Q -w n0 -n2 --gpus-per-node=4 --gpu-bind=none --dt-gpus \
            printenv DT_GPUS 2>/dev/null | sort | xargs)" '0,1 2,3' ;;
esac
fails 'no GPU to bind' 1 '--dt-gpus=auto: node n0: Slurm granted no GPU .*' \
    srun -Q -w n0 -n2 --gpu-bind=none --dt-gpus true
is 'the nodes are as they were' "$(nodes)" '2 idle'

# ---- the administrator's mistakes

echo "$with_plugin colour=red" >"$plugstack"
argument='plugstack.conf: unknown argument "colour=red" of spank_dt.so: '
argument+='expected helper=/PATH, conf=/PATH, .*, ask the administrator to '
argument+='mend it'
ok 'a wrong plugin argument: others do not feel it' \
    sb srun -Q -N2 --gpus-per-node=1 true
ok 'nor does --dt-gpus=none' sb srun -Q -N2 --dt-gpus=none true
fails 'a wrong plugin argument, srun' 255 "$argument" \
    srun -Q -w n0 -n2 --gpus-per-node=4 --dt-gpus true
fails 'a wrong plugin argument, sbatch' 255 "$argument" \
    sbatch --gpus-per-node=4 --dt-gpus --wrap true
# now only on the nodes: srun reads another configuration
echo "$with_plugin" >"$cluster_dir/etc/plugstack-good.conf"
sed '/^PlugStackConfig=/d' "$cluster_dir/etc/slurm.conf" \
    >"$cluster_dir/etc/slurm-client.conf"
echo "PlugStackConfig=$cluster_dir/etc/plugstack-good.conf" \
    >>"$cluster_dir/etc/slurm-client.conf"
fails 'a wrong plugin argument on the nodes' 1 "node n0: $argument" \
    env SLURM_CONF="$cluster_dir/etc/slurm-client.conf" \
    srun -Q -w n0 -n2 --gpus-per-node=4 --dt-gpus true
echo "required ${with_plugin#optional }" >"$plugstack"
fails 'the plugin as required' 1 '--dt-gpus=auto: node n0: Slurm granted no .*' \
    srun -Q -w n0 -n2 --dt-gpus true
printf '%s\n' "$with_plugin" "$with_plugin" >"$plugstack"
cat >"$cluster_share/twice" <<'END'
echo "$SLURM_LOCALID owns $DT_GPUS sees $CUDA_VISIBLE_DEVICES"
END
is 'the plugin named twice: as if once' \
    "$(sb srun -Q -w n0 -n2 --gpus-per-node=4 --dt-gpus=verbose,rotate \
        bash "$cluster_share/twice" 2>&1 | grep -v '^dt: note: ' | sort |
        sed -E 's/^(dt: .*,[0-9]) +[^ ]+ +- +-$/\1/; s/ +cpus .*//')" \
    '0 owns 0,1 sees 0,1,2,3
1 owns 2,3 sees 2,3,0,1
dt:    0  n0        0  0,1      0,1,2,3
dt:    1  n0        1  2,3      2,3,0,1
dt: rank  node  local  gpus     sees'
is 'the plugin named twice, a variable' \
    "$(sb env SLURM_DT_GPUS=single srun -Q -w n0 -n2 --gpus-per-node=4 \
        bash "$cluster_share/twice" 2>&1 | sort)" \
    '0 owns 0,1 sees 0,1
1 owns 2,3 sees 2,3'
fails 'the plugin named twice, no GPU granted' 1 \
    '--dt-gpus=auto: node n0: Slurm granted no GPU .*' \
    srun -Q -w n0 -n2 --dt-gpus true
printf '%s\n' "$with_plugin" "$with_plugin colour=red" >"$plugstack"
fails 'the plugin named twice, a wrong argument the second time' 255 \
    "$argument" srun -Q -w n0 -n2 --gpus-per-node=4 --dt-gpus true
echo "optional $cluster_share/not-there.so" >"$plugstack"
ok 'the plugin is gone: jobs that do not ask run' sb srun -Q -N2 true
echo "$with_plugin" >"$plugstack"
is 'the nodes are still as they were' "$(nodes)" '2 idle'

# a table larger than a pipe holds
cat >"$cluster_share/many" <<'END'
srun -Q --overcommit -n150 --dt-gpus=verbose true 2>&1 | grep '^dt:  149 '
END
like 'a table of 150 rows does not hang' \
    "$(sb salloc -Q -w n0 -n16 --gpus-per-node=4 bash "$cluster_share/many" \
        2>&1)" '^dt:  149  n0      149  3 +0,1,2,3 '

# ---- nodes without GPUs, where Slurm leaves the user's variables alone

dts down --dir "$cluster_dir" >/dev/null 2>&1
cluster_up -N1 --gpus 0
fails "no GPU granted, but the user's variable names one" 1 \
    '--dt-gpus=auto: node n0: Slurm granted no GPU .*' \
    env CUDA_VISIBLE_DEVICES=0 srun -Q -w n0 -n2 --dt-gpus true
is 'and without --dt-gpus it stays' \
    "$(sb env CUDA_VISIBLE_DEVICES=0 srun -Q -w n0 env |
        grep ^CUDA_VISIBLE_DEVICES)" CUDA_VISIBLE_DEVICES=0

done_testing
