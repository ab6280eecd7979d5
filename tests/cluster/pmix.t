#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# pmix.t - the PMIx server of a step: ranks of several nodes connect where Slurm
# has no PMIx, survive the loss of others, and nothing is left at the end
set -u
cd "$(dirname "$0")/../.." || exit
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
# shellcheck source=tests/lib/cluster.sh
. tests/lib/cluster.sh
SB_TIMEOUT=40

build=${DT_BUILD:-$cluster_top/build}
[ -x "$build/tests/cluster/pmix-step" ] ||
    skip_all "$build/tests/cluster/pmix-step is not there: make"
# where every node and every user finds it, under a name of its own
program=$cluster_share/pmix-step
cp "$build/tests/cluster/pmix-step" "$program" && chmod 755 "$program"
echo MpiDefault=none >"$cluster_share/none.conf"
cluster_up -N4 --gpus 2 --conf "$cluster_share/none.conf"
mode=$(sb "$dt_sandbox" status | sed -n 's/^mode *//p')
said=$cluster_share/said
id=$(sed -n 's/^id //p' "$cluster_dir/.dt-sandbox")
gpus='--gpus-per-node=2 --dt-gpus'

step() # SRUN-ARG...: its output sorted in $said, its exit code
{
    local rc

    # shellcheck disable=SC2086 # options
    sb srun -Q $gpus "$@" >"$said.raw" 2>"$said.err"
    rc=$?
    sort -n "$said.raw" >"$said"
    return "$rc"
}

# Ranks and nodes as "0:n0 1:n0 ..." of a step whose ranks have connected.
met() # SRUN-ARG...
{
    step "$@" "$program" meet || echo "exit code $?"
    sed -n 's/^\([0-9]*\) of \([0-9]*\) on \(.*\)/\1:\3/p' "$said" | xargs
    cat "$said.err"
}

# The process ids of dt-pmixd in this sandbox.
servers()
{
    local pid

    for pid in $(pgrep -f "^$DT_PREFIX/libexec/slurm-dt/dt-pmixd"); do
        [ "$mode" = ordinary ] && echo "$pid"
        ! grep -qsF " - sysfs $id " "/proc/$pid/mountinfo" || echo "$pid"
    done
}

# What is left of steps: processes and files of the servers.
left()
{
    servers | sed 's/^/process /'
    if [ "$mode" = namespaces ]; then
        for i in 0 1 2 3; do
            ls -d "/proc/$(<"$cluster_dir/run/n$i")/root/"{tmp,run/slurm-dt/*}/dt-pmix.*
        done 2>/dev/null
    else
        find /tmp -maxdepth 1 -name 'dt-pmix.*' -user "$(id -u)"
    fi
}
nothing_left()
{
    [ ! "$(left)" ]
}
idle()
{
    [ "$(sb sinfo -h -p low -o '%D %T')" = '4 idle' ]
}

# ---- wire-up

is 'two ranks on each of four nodes' "$(met -N4 --ntasks-per-node=2)" \
    '0:n0 1:n0 2:n1 3:n1 4:n2 5:n2 6:n3 7:n3'
is 'cyclic' "$(met -N4 --ntasks-per-node=2 --distribution=cyclic)" \
    '0:n0 1:n1 2:n2 3:n3 4:n0 5:n1 6:n2 7:n3'
is 'plane' "$(met -N2 -n8 --ntasks-per-node=4 --distribution=plane=2)" \
    '0:n0 1:n0 2:n1 3:n1 4:n0 5:n0 6:n1 7:n1'
printf '%s\n' n3 n1 n1 n0 >"$cluster_share/hosts"
is 'arbitrary, uneven' \
    "$(SLURM_HOSTFILE=$cluster_share/hosts met -n4 --distribution=arbitrary)" \
    '0:n3 1:n1 2:n1 3:n0'
is 'three ranks on two nodes' "$(met -N2 -n3)" '0:n0 1:n0 2:n1'
is 'one node' "$(met -N1 -n2)" '0:n0 1:n0'
is 'one rank' "$(met -N1 -n1)" '0:n0'
is '--export=NONE' \
    "$(met -N3 --ntasks-per-node=1 --export=NONE)" '0:n0 1:n1 2:n2'

sb srun -Q -N2 -n2 --gpus-per-node=1 --dt-gpus "$program" meet \
    >"$cluster_share/one" 2>&1 &
sb srun -Q -N2 -n2 --gpus-per-node=1 --dt-gpus "$program" meet \
    >"$cluster_share/two" 2>&1
wait $!
is 'two steps at once keep apart' \
    "$(cat "$cluster_share/one" "$cluster_share/two" | grep -c ' of 2 on ')" 4

is 'on some nodes of an allocation, which -E lets the variables name' \
    "$(sb salloc -Q -N4 --gpus-per-node=1 srun -Q -E -N2 -n2 -w n1,n2 \
        --dt-gpus "$program" meet 2>&1 | sort)" \
    $'0 of 2 on n1\n1 of 2 on n2'

cat >"$cluster_share/job.sh" <<END
#!/bin/bash
#SBATCH -N2 --ntasks-per-node=2 --gpus-per-node=2
for i in 1 2; do
    srun --overlap --dt-gpus $program meet &
done
wait
srun -N1 -n1 --overlap --dt-gpus \
    srun -N2 -n4 --overlap --dt-gpus $program meet
END
sb sbatch -Q -W -o "$cluster_share/job" "$cluster_share/job.sh"
is 'in a batch job, two at once, and a step in a step' \
    "$(grep -c ' of 4 on ' "$cluster_share/job")" 12
[ "$(grep -c ' of 4 on ' "$cluster_share/job")" -eq 12 ] ||
    tap_show job "$(cat "$cluster_share/job")"

# ---- who serves

env_of() # SRUN-ARG...
{
    step -n1 "$@" /usr/bin/env
    grep -E '^(PMIX_NAMESPACE|DT_PMIX|PMI_FD)' "$said" | grep -v CONTROL
    cat "$said.err"
}
like 'auto is ours where nothing is chosen' "$(env_of)" \
    '^PMIX_NAMESPACE=slurm-dt\.'
like '--mpi=none chooses nothing' "$(env_of --mpi=none)" \
    '^PMIX_NAMESPACE=slurm-dt\.'
like 'auto leaves an --mpi alone' "$(env_of --mpi=pmi2)" '^PMI_FD='
is 'and then is none of ours' "$(env_of --mpi=pmi2 | grep -v PMI_FD)" ''
like 'server is ours in any case' "$(env_of --mpi=pmi2 --dt-pmix=server)" \
    '^PMIX_NAMESPACE=slurm-dt\.'
is '--dt-pmix=slurm: no server of ours' "$(env_of --dt-pmix=slurm)" ''
is '--dt-pmix=none: no server' "$(env_of --dt-pmix=none)" ''
is 'SLURM_DT_PMIX=none, too' "$(SLURM_DT_PMIX=none env_of)" ''
is 'nor is a step that did not ask' "$(sb srun -Q -n1 env |
    grep -c -E '^(PMIX|DT_PMIX|SLURM_DT_PMIX_MEET)')" 0
is 'nor one with a server: what srun told the nodes' \
    "$(step -N2 -n2 --export=NONE /usr/bin/env
    grep -c -E '^(SLURM_DT_PMIX_MEET|PMIX_RANK)' "$said")" 2
is "a user's own settings of PMIx stay" \
    "$(PMIX_MCA_psec_base_verbose=1 step -n1 env
    grep '^PMIX_MCA_psec_b' "$said")" PMIX_MCA_psec_base_verbose=1
like 'help' "$(sb srun --dt-pmix=help)" '^  server  slurm-dt'
like 'a bad value' "$(sb srun --dt-gpus --dt-pmix=ours true 2>&1)" \
    'error: dt: --dt-pmix=ours: expected auto, server, slurm, none or help$'
like 'a bad heartbeat' "$(DT_HEARTBEAT=soon env_of)" \
    'no PMIx server .*: DT_HEARTBEAT=soon: expected a whole number from 1 to 3600'

# A program of MPICH, long enough to be looked at.
if type -P mpicc.mpich >/dev/null; then
    cat >"$cluster_share/mpich.c" <<END
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int size = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sleep(5);
    printf("one of %d\n", size);
    return MPI_Finalize();
}
END
    mpicc.mpich -o "$cluster_share/mpich" "$cluster_share/mpich.c"
    step -N2 -n4 "$cluster_share/mpich"
    is 'ranks that need PMI-1 or PMI-2 are alone' \
        "$(grep -c 'one of 1' "$said")" 4
    like 'which is said' "$(cat "$said.err")" \
        'dt: this program uses libmpich.*, which needs PMI-1 or PMI-2'
    is 'once' "$(grep -c 'dt: ' "$said.err")" 1
    step -N2 -n4 --mpi=pmi2 --dt-pmix=none "$cluster_share/mpich"
    is 'as advised they are one world, and nothing is said' \
        "$(grep -c 'one of 4' "$said")$(cat "$said.err")" 4
else
    ok 'ranks that need PMI-1 or PMI-2 # SKIP no mpicc.mpich' true
fi

# ---- losses

goes_on() # COUNT
{
    is "$1 ranks go on" "$(grep -c 'goes on' "$said")" "$1"
    [ "$(grep -c 'goes on' "$said")" -eq "$1" ] ||
        tap_show error "$(cat "$said.err")"
}
step -N4 --ntasks-per-node=2 "$program" lose kill 3
is 'a rank is killed: exit code' $? 137
goes_on 7
DT_HEARTBEAT=5 step -N4 --ntasks-per-node=2 "$program" lose stop 1
is 'a rank is stopped: exit code' $? 137
goes_on 7
like 'which is said' "$(cat "$said.err")" \
    'dt: rank 1 on node n0 was stopped for 5 s \(DT_HEARTBEAT\): it is killed$'
step -N4 --ntasks-per-node=2 "$program" replace 3
is 'a rank is replaced: exit code' $? 0
is 'and all ranks see the replacement' "$(grep -c 'with the new one' "$said")" 8

ok 'nothing is left' wait_for 10 nothing_left
ok 'no node was harmed' wait_for 20 idle

# ---- ends of other kinds

served() # COUNT
{
    [ "$(left | grep -c ^process)" -eq "$1" ] &&
        [ "$(left | grep -c '/dt-pmix\.')" -eq "$1" ]
}
# shellcheck disable=SC2086 # options
sb srun -Q -N2 -n2 $gpus sleep 60 >/dev/null 2>&1 &
ok 'while a step runs, each of its nodes has a server' wait_for 20 served 2
for pid in $(pgrep -f '^slurmstepd: '); do
    # or its parent's, slurmd: its title may cover its own
    parent=$(ps -o ppid= -p "$pid")
    ! grep -qsz "^DT_SANDBOX_DIR=$cluster_dir" "/proc/$pid/environ" \
        "/proc/${parent// /}/environ" || kill -KILL "$pid"
done
ok 'slurmstepd is killed: the servers end' wait_for 10 nothing_left
sb scancel -u "$(id -un)"
wait
wait_for 40 idle

# The heartbeat is longer than the 2 s between Slurm's SIGTSTP, which the server
# does not heed, and its SIGSTOP, which stops the server, too.
# shellcheck disable=SC2086 # options
DT_HEARTBEAT=8 sb srun -Q -N2 -n2 $gpus sleep 10 >"$said" 2>&1 &
suspended=$!
wait_for 20 served 2
job=$(sb squeue -h -t R -o %i)
sb scontrol suspend "$job"
sleep 12
sb scontrol resume "$job"
wait "$suspended"
is 'suspended for longer than a heartbeat: exit code' $? 0
is 'and nothing is printed' "$(cat "$said")" ''
wait_for 40 idle

# shellcheck disable=SC2086 # options
sb srun -Q -N2 -n2 $gpus sleep 3 >/dev/null 2>&1 &
wait_for 20 served 2
servers | xargs kill -STOP
wait
ok 'servers that hang end with the step' wait_for 10 nothing_left
servers | xargs -r kill -KILL

# shellcheck disable=SC2086 # options
sb srun -Q -N2 -n2 $gpus sleep 60 >/dev/null 2>&1 &
wait_for 20 served 2
servers | xargs kill -KILL
sb scancel -u "$(id -un)"
wait
ok 'the servers are killed: their directories are removed' wait_for 10 nothing_left

# shellcheck disable=SC2086 # options
(timeout -s KILL 3 "$dt_sandbox" exec --dir "$cluster_dir" \
    srun -Q -N3 -n2 $gpus sleep 60; :) >/dev/null 2>&1
sb scancel -u "$(id -un)"
ok 'srun is killed: all end' wait_for 20 nothing_left
wait_for 40 idle

if [ "$mode" = namespaces ]; then
    munge=/proc/$(cat "$cluster_dir/run/n1")/root/run/munge/munge.socket.2
    mv "$munge" "$munge.away"
    step -w n1 -n2 true
    is 'without munge on the node: exit code' $? 1
    like 'one line says so' "$(cat "$said.err")" \
        'dt: node n1: no PMIx server .*munge does not answer'
    is 'and only one' "$(grep -c 'dt: ' "$said.err")" 1
    mv "$munge.away" "$munge"

    others_may_read ||
        ok "a step of another user # SKIP nobody may not read $DT_PREFIX" true
    ! others_may_read ||
        is 'a step of another user' "$(sb setpriv --reuid=65534 --regid=65534 \
            --clear-groups env HOME=/ srun -Q --chdir=/ -N2 -n2 \
            --gpus-per-node=1 --dt-gpus "$program" meet 2>&1 |
            grep -c ' of 2 on ')" 2

    # last, as it takes a node
    # shellcheck disable=SC2086 # options
    sb srun -Q --no-kill --kill-on-bad-exit=0 --wait=0 -N4 \
        --ntasks-per-node=2 $gpus "$program" lose wait 2 3 \
        >"$said" 2>"$said.err" &
    waits()
    {
        [ "$(grep -c ' waits as ' "$said")" -eq 2 ]
    }
    wait_for 20 waits
    kill -KILL "$(cat "$cluster_dir/run/n1")"
    go_on()
    {
        [ "$(grep -c 'goes on' "$said")" -eq 6 ]
    }
    ok 'a node dies: the ranks of the others go on' wait_for 30 go_on
    sb scontrol update nodename=n1 state=down reason=test
    sb scancel -u "$(id -un)"
    wait
    ok 'nothing is left on the other nodes' wait_for 10 nothing_left
fi

done_testing
