#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# pmix-cpu.t - --dt-pmix on nodes without GPUs: the PMIx server alone, in a
# Slurm without PMIx
set -u
cd "$(dirname "$0")/../.." || exit
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
# shellcheck source=tests/lib/cluster.sh
. tests/lib/cluster.sh
SB_TIMEOUT=40

hello=$DT_PREFIX/libexec/slurm-dt/examples/hello
[ -x "$hello" ] || skip_all "$hello is not there: make install"
echo MpiDefault=none >"$cluster_share/none.conf"
cluster_up -N2 --gpus 0 --conf "$cluster_share/none.conf"

four='rank 0 of 4
rank 1 of 4
rank 2 of 4
rank 3 of 4'

ranks() # COMMAND ARG...
{
    sb "$@" 2>"$cluster_share/err" | grep -o 'rank [0-9]* of [0-9]*' | sort
    cat "$cluster_share/err"
}
is 'four ranks on two nodes' "$(ranks srun -Q --dt-pmix -N2 -n4 "$hello")" \
    "$four"
is '--dt-pmix=server' "$(ranks srun -Q --dt-pmix=server -N2 -n4 "$hello")" \
    "$four"
is '--dt-pmix=auto' "$(ranks srun -Q --dt-pmix=auto -N2 -n4 "$hello")" "$four"
is '--export=NONE' \
    "$(ranks srun -Q --dt-pmix --export=NONE -N2 -n4 "$hello")" "$four"
is 'SLURM_DT_PMIX' \
    "$(ranks env SLURM_DT_PMIX=server srun -Q -N2 -n4 "$hello")" "$four"
is 'salloc hands it to the sruns of the job' \
    "$(ranks salloc -Q -N2 -n4 --dt-pmix srun -Q "$hello")" "$four"
is 'SALLOC_DT_PMIX' "$(ranks env SALLOC_DT_PMIX=server \
    salloc -Q -N2 -n4 srun -Q "$hello")" "$four"
printf '#!/bin/sh\nsrun -Q %s\n' "$hello" >"$cluster_share/job.sh"
sb sbatch -Q -W -N2 -n4 --dt-pmix -o "$cluster_share/job" \
    "$cluster_share/job.sh"
is 'sbatch hands it on, too' "$(ranks cat "$cluster_share/job")" "$four"
sb env SBATCH_DT_PMIX=server sbatch -Q -W -N2 -n4 -o "$cluster_share/job" \
    "$cluster_share/job.sh"
is 'SBATCH_DT_PMIX' "$(ranks cat "$cluster_share/job")" "$four"

# ---- what the tasks get

sb srun -Q -n1 env | sed 's/=.*//' | sort >"$cluster_share/without"
sb srun -Q -n1 --dt-pmix env | sed 's/=.*//' | sort >"$cluster_share/with"
is 'the variables of the PMIx server, and no other' \
    "$(comm -13 "$cluster_share/without" "$cluster_share/with" |
        grep -vE '^(PMIX_|DT_PMIX_CONTROL$)')" ''
like 'the namespace is ours' "$(sb srun -Q -n1 --dt-pmix env)" \
    'PMIX_NAMESPACE=slurm-dt\.'
cpus='Cpus_allowed_list:'
is 'the CPUs are those that Slurm binds' \
    "$(sb srun -Q -n1 --dt-pmix grep "$cpus" /proc/self/status)" \
    "$(sb srun -Q -n1 grep "$cpus" /proc/self/status)"
is '--dt-pmix=none: no server' \
    "$(sb srun -Q -n1 --dt-pmix=none env | grep '^PMIX_')" ''
is '--dt-pmix=slurm: not ours' \
    "$(sb srun -Q -n1 --dt-pmix=slurm env | grep '^PMIX_')" ''
like '--dt-pmix=auto leaves an --mpi alone' \
    "$(sb srun -Q -n1 --mpi=pmi2 --dt-pmix=auto env)" 'PMI_FD='

# ---- errors

fails() # NAME LINE-AS-REGEX CMD ARG...
{
    local name=$1 line=$2 err rc=0

    shift 2
    err=$(sb "$@" 2>&1) || rc=$?
    is "$name: exit code" "$rc" 1
    is "$name: one line" "$(grep -c 'dt: ' <<<"$err")" 1
    like "$name: what it says" "$err" "error: dt: $line\$"
}
fails '--dt-gpus' '--dt-gpus=auto: node n0: Slurm granted no GPU to this step: '\
'ask for them with --gpus-per-node=<n> \(or --gres=gpu:<n>\), or use --dt-pmix '\
'in place of --dt-gpus' srun -Q -w n0 -n2 --dt-gpus "$hello"
fails 'a bad heartbeat' 'node n0: no PMIx server .*: DT_HEARTBEAT=soon: '\
'expected a whole number from 1 to 3600' \
    env DT_HEARTBEAT=soon srun -Q -n2 --dt-pmix true
fails 'a value put past srun' '--dt-pmix=evil: expected auto, server, slurm, '\
'none or help' env _SLURM_SPANK_OPTION_dt_dt_pmix=evil srun -Q -n2 true
like 'libdt without any server names the option' \
    "$(sb srun -Q -n2 "$hello" 2>&1)" \
    'hello: this step has 2 tasks, but no PMIx server: .*srun --dt-pmix'

done_testing
