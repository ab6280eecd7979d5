# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# config.sh - the configuration of a sandbox: Slurm's files, munge's key,
# /etc/hosts
# shellcheck shell=bash
# shellcheck disable=SC2154 # $dir, $id, $mode, $nodes ...: see sandbox_load

net_head=10.33.255.254 # the head's address; nobody outside can see it

node_names()
{
    if [ "$nodes" -eq 1 ]; then echo n0; else echo "n[0-$((nodes - 1))]"; fi
}

node_address() # INDEX
{
    echo "10.33.$(($1 / 250)).$(($1 % 250 + 1))"
}

# n consecutive ports nobody listens on, below those the kernel hands out.
# Someone may take one before we do: `up` then tries again with others.
free_ports() # COUNT
{
    local first port try

    for ((try = 0; try < 50; try++)); do
        first=$((20000 + SRANDOM % 11000))
        for ((port = first; port < first + $1; port++)); do
            ! (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || continue 2
        done
        echo "$first"
        return 0
    done
    return 1
}

config_write() # EXTRA-LINES-FILE PLUGIN TOPOLOGY-FILE, each may be empty
{
    local extra=$1 plugin=$2 topology=$3

    mkdir -p "$dir"/{etc,log,run,state,spool,dev,tmp} || return
    (umask 077 && head -c 128 /dev/urandom >"$dir/munge.key") || return
    config_devices || return
    {
        config_slurm_common
        config_partitions
        slurm_is_old || echo MaxBatchRequeue=1000
        mpi_is_users || echo "MpiDefault=$mpi"
        config_slurm_nodes || return
        [ ! "$extra" ] || { echo && cat "$extra"; }
    } >"$dir/etc/slurm.conf" || return
    config_gres >"$dir/etc/gres.conf"
    config_cgroup >"$dir/etc/cgroup.conf"
    config_topology >"$dir/etc/node.topo"
    # of real GPUs the plugin asks the machine
    [ "$topology" ] || [ ${#opt_gpus[@]} -gt 0 ] || topology=$dir/etc/node.topo
    echo "${topology:+Topology=$topology}" >"$dir/etc/dt.conf"
    [ ! "$plugin" ] || config_plugin optional >"$dir/etc/plugstack.conf"
    config_hosts >"$dir/etc/hosts"
    config_bashrc >"$dir/etc/bashrc"
}

# Slurm wants device files and counts any that it can stat.
config_devices()
{
    local i

    for ((i = 0; i < gpus; i++)); do
        ln -s "${opt_gpus[i]:-/dev/null}" "$dir/dev/gpu$i" || return
    done
    for ((i = 0; i < nodes; i++)); do
        mkdir "$dir/spool/n$i" && mkdir -m 1777 "$dir/tmp/n$i" || return
    done
}

# Does one of the lines of --conf begin like this?
conf_has() # REGEX
{
    [ "$opt_conf" ] && grep -Eqi "^[[:space:]]*$1([[:space:]]|\$)" "$opt_conf"
}

# Do the lines of --conf say what ranks meet by?
mpi_is_users()
{
    conf_has 'MpiDefault[[:space:]]*=.*'
}

config_slurm_common()
{
    cat <<END
ClusterName=$id
SlurmUser=$(id -un)
SlurmdUser=$(id -un)

AuthType=auth/munge
CredType=cred/munge
# a requeued job waits for its credential to expire: not the usual 2 minutes,
# but longer than a busy machine needs to launch a job
AuthInfo=socket=$dir/run/munge.sock,cred_expire=15

StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
# not /tmp, where the PMIx servers of two nodes may meet
TmpFS=$dir/tmp/%n
SlurmctldPidFile=$dir/run/slurmctld.pid
SlurmdPidFile=$dir/run/slurmd-%n.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd-%n.log

ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
ReturnToService=2

SlurmctldTimeout=10
# a busy machine's daemons may be that late
SlurmdTimeout=60
MessageTimeout=10
BatchStartTimeout=60
KillWait=3
InactiveLimit=0
MinJobAge=600

SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_min_interval=0,sched_interval=1,bf_interval=1,batch_sched_delay=0
GresTypes=gpu

JobRequeue=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
END
}

# Of two lines for one partition the last one counts in Slurm 22.05; in 24.11
# they are an error.
config_partitions()
{
    conf_has 'PartitionName[[:space:]]*=[[:space:]]*low' ||
        echo PartitionName=low Nodes=ALL Default=YES PriorityTier=1 \
            PreemptMode=REQUEUE GraceTime=30 MaxTime=INFINITE
    conf_has 'PartitionName[[:space:]]*=[[:space:]]*high' ||
        echo PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF \
            MaxTime=INFINITE
}

# Before 24.05?
slurm_is_old()
{
    local release

    release=$(slurmctld -V)
    [[ ${release##* } == 2[0-3].* ]]
}

# No cgroups, unless the lines of --conf want them: the nodes' /sys has none,
# and the default plugin looks there. Slurm 22.05 cannot do without a plugin,
# but has one that does not look before it is used.
config_cgroup()
{
    if slurm_is_old || conf_has '[^#]*/cgroup'; then
        echo CgroupPlugin=cgroup/v1
    else
        echo CgroupPlugin=disabled
    fi
}

config_slurm_nodes()
{
    local shape="CPUs=$cpus RealMemory=1048576"
    local gres='' host i port

    if [ $((cpus % 2)) -eq 0 ]; then
        shape+=" Sockets=2 CoresPerSocket=$((cpus / 2)) ThreadsPerCore=1"
    else
        shape+=" Sockets=1 CoresPerSocket=$cpus ThreadsPerCore=1"
    fi
    [ "$gpus" -eq 0 ] || gres=" Gres=gpu:$gpus"
    if [ "$mode" = namespaces ]; then
        echo "SlurmctldHost=head($net_head)"
        for ((i = 0; i < nodes; i++)); do
            echo "NodeName=n$i NodeAddr=$(node_address "$i") $shape$gres"
        done
        return
    fi
    host=$(uname -n)
    host=${host%%.*}
    port=$(free_ports $((nodes + 1))) || return
    echo "SlurmctldHost=$host(127.0.0.1)"
    echo "SlurmctldPort=$port"
    for ((i = 0; i < nodes; i++)); do
        echo "NodeName=n$i NodeHostname=$host NodeAddr=127.0.0.1" \
            "Port=$((port + 1 + i)) $shape$gres"
    done
}

# Another plugin than ours is not given our arguments unless they were asked
# for. PMIx's clients look for munge at one place only, which nodes without
# namespaces share with this machine.
config_plugin() # required|optional
{
    local conf='' munge=''

    if [[ $opt_plugin == */spank_dt.so ]]; then
        munge=" munge=$dir/run/munge.sock"
        [ "$mode" = namespaces ] || munge+=' auth=native'
    fi
    [[ ! $opt_topology && ! $munge ]] || conf=" conf=$dir/etc/dt.conf"
    echo "$1 $opt_plugin$conf$munge"
}

# The GPUs are not real: they are where we say, and nothing else is known.
config_topology()
{
    local i

    echo 'DtTopology=1 Source=dt-sandbox'
    for ((i = 0; i < gpus; i++)); do
        echo "Gpu=$i File=$dir/dev/gpu$i Minor=$i"
    done
}

config_gres()
{
    local IFS=, files=$dir/dev/gpu[0-$((gpus - 1))]

    [ ${#opt_gpus[@]} -eq 0 ] || files="/dev/nvidia[${opt_gpus[*]#/dev/nvidia}]"
    echo AutoDetect=off
    [ "$gpus" -eq 0 ] || echo "NodeName=$(node_names) Name=gpu File=$files"
}

config_hosts()
{
    local i

    echo 127.0.0.1 localhost
    echo "$net_head head"
    for ((i = 0; i < nodes; i++)); do
        echo "$(node_address "$i") n$i"
    done
}

# The user's own, with a hint in the prompt and our programs first.
config_bashrc()
{
    cat <<END
[ ! -r ~/.bashrc ] || . ~/.bashrc
PATH=$bindir:\$PATH
PS1="(dt-sandbox) \$PS1"
END
}
