#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# doctor.t - dt-doctor finds faults of a real Slurm, and what it prints mends
# them
set -u
cd "$(dirname "$0")/../.." || exit
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
# shellcheck source=tests/lib/cluster.sh
. tests/lib/cluster.sh
SB_TIMEOUT=60

cluster_up -N1 --cpus 2 --gpus 2
etc=$cluster_dir/etc
doctor()
{
    sb dt-doctor "$@" >"$cluster_share/found"
}
has() # RULE: was it found?
{
    grep -Fxq "$1" "$cluster_share/found"
}
# The command that mends it, up to the first remark.
mend() # RULE
{
    sed -n "/^$1\$/,/^\$/s/^  to mend: //p" "$cluster_share/found" |
        sed 's/; .*//; s/  (.*//'
}
fires() # RULE WHAT [OPTION...]
{
    doctor "${@:3}"
    is "$1: $2" "$? $(has "$1" && echo found)" '1 found'
}
mended() # RULE [OPTION...]
{
    doctor "${@:2}"
    ok "$1: mended, and silent" test "$(has "$1" || echo silent)" = silent
}

knows_options()
{
    sb srun --help 2>&1 | grep -q -e --dt-gpus
}

# ---- Slurm's configuration ----

fires kill-wait-short "the sandbox's KillWait=3" --node
is 'nothing else is wrong with its Slurm' "$(grep -E \
    '^(controller|munge|plugin|requeue|preempt|slurmd)-[a-z-]*$|^not looked' \
    "$cluster_share/found")" ''

cp "$etc/plugstack.conf" "$etc/as-it-was"
: >"$etc/plugstack.conf"
fires plugin-missing 'the plugin is in no file'
ok 'as srun shows' eval '! knows_options'
ok 'the command that was printed runs' bash -c "$(mend plugin-missing)"
mended plugin-missing
ok 'and srun knows its options' knows_options

sed 's,/spank_dt.so,/gone/spank_dt.so,' "$etc/as-it-was" >"$etc/plugstack.conf"
fires plugin-file 'its file is gone'
ok 'which srun itself does not report' sb srun true
mkdir "$cluster_share/gone"
echo 'const unsigned plugin_version = 0x130500;' |
    cc -shared -nostdlib -x c -o "$cluster_share/gone/spank_dt.so" -
echo "optional $cluster_share/gone/spank_dt.so" >"$etc/plugstack.conf"
fires plugin-version 'it is of Slurm 19.05'
ok 'as srun shows, too' eval '! knows_options'
cp "$etc/as-it-was" "$etc/plugstack.conf"
mended plugin-version
ok 'of all rules, the other ones are silent, too' eval '! has plugin-file'

sed -i 's/^JobRequeue=1/JobRequeue=0/' "$etc/slurm.conf"
sb scontrol reconfigure
fires requeue-off 'no job is requeued'
sed -i 's/^JobRequeue=0/JobRequeue=1/' "$etc/slurm.conf"
sb scontrol reconfigure
mended requeue-off

sb scontrol update PartitionName=low GraceTime=0
fires preempt-no-grace 'a partition without grace'
# shellcheck disable=SC2046 # its words
ok 'the command that was printed runs' sb $(mend preempt-no-grace)
mended preempt-no-grace

# ---- a job ----

cat >"$cluster_share/job" <<'END'
#!/bin/bash
#SBATCH --signal=B:USR1@60
trap 'touch saved' USR1
srun sleep 1000
END
job=$(sb sbatch --parsable -o /dev/null -H --no-requeue "$cluster_share/job")
fires job-held 'it was submitted with --hold' -j "$job"
ok 'its script is looked at' has script-trap-waits
for rule in job-requeue-off job-held; do
    # shellcheck disable=SC2046 # its words
    ok "the command of $rule that was printed runs" sb $(mend "$rule")
    mended "$rule" -j "$job"
done
sb scancel "$job"
sb dt-doctor -j 4711 >"$cluster_share/found" 2>&1
is 'a job that does not exist' "$? $(<"$cluster_share/found")" \
    '2 dt-doctor: job 4711: Invalid job id specified'

# ---- munge ----

socket=$cluster_dir/run/munge.sock
mv "$socket" "$socket.away"
fires munge-silent 'munge has no socket'
ok 'and so Slurm gives no answer' has controller-silent
mv "$socket.away" "$socket"
mended munge-silent
ok 'and Slurm answers' eval '! has controller-silent'
done_testing
