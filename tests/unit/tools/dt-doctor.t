#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# dt-doctor.t - each rule finds its fault, and nothing without it, on a machine
# of files and of commands in place of Slurm's

top=$(cd "$(dirname "$0")/../../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
tool=${DT_BUILD:-$top/build}/tools/dt-doctor
[ -x "$tool" ] || skip_all "not built: $tool"

tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
# the root has a name that is a pattern, too
root="$tmp/ro*[o]t" && mkdir -p "$tmp/bin" "$tmp/none" "$root" && cd "$tmp" ||
    exit 1

# ---- commands ----

cat >bin/scontrol <<'END'
#!/bin/bash
case $* in
'show config') [ ! -s error ] || { cat error >&2 && exit 1; } && cat config ;;
'--oneliner show partition') cat partitions ;;
'write batch_script 17 -') cat script ;;
*) exit 1 ;;
esac
END
cat >bin/squeue <<'END'
#!/bin/bash
declare -A value=([JobID]=17 [ArrayJobID]=17 [ArrayTaskID]=N/A [State]=RUNNING
    [Reason]=None [Partition]=p [NumNodes]=2 [NodeList]=n0 [BatchHost]=n0
    [RestartCnt]=0 [Requeue]=1 [BatchFlag]=1 [UserID]=1000 [UserName]=me
    [StartTime]=1000 [PreemptTime]=N/A [Comment]='(null)' [NumTasks]=8
    [tres-per-task]=N/A)
. ./job
[[ " $* " == *' 17 '* ]] ||
    { echo 'slurm_load_jobs error: Invalid job id specified' >&2 && exit 1; }
while [ "$1" != --Format ]; do shift; done
IFS=,
for field in $2; do
    printf "%-${field#*:}.${field#*:}s" "${value[${field%:*}]}"
done
echo
END
cat >bin/srun <<'END'
#!/bin/sh
cat release
END
cat >bin/munge <<'END'
#!/bin/sh
echo "$*" >munge-called
[ ! -s munge-error ] || { cat munge-error >&2 && exit 1; }
echo MUNGE:
END
cat >bin/getent <<'END'
#!/bin/sh
echo "$(cat address) STREAM $2"
END
cat >bin/df <<'END'
#!/bin/sh
[ ! "$DF_HANGS" ] || exec sleep 100
[ "$4" != /ckpt/new ] ||
    { echo "df: $4: No such file or directory" >&2 && exit 1; }
printf '   Avail\n%s\n' "$(cat free)"
END
chmod 755 bin/*

# ---- a machine without any fault ----

put() # FILE LINE...
{
    mkdir -p "$root${1%/*}" && printf '%s\n' "${@:2}" >"$root$1"
}
# A library that Slurm 22.05.8 may load.
library=$root/usr/lib/slurm/spank_dt.so
healthy()
{
    rm -rf "$root" && mkdir "$root" || exit
    cat >config <<'END'
Configuration data as of 2026-01-01T00:00:00
AuthInfo                = socket=/run/m.sock,cred_expire=15
AuthType                = auth/munge
JobRequeue              = 1
KillWait                = 30 sec
PlugStackConfig         = (null)
PluginDir               = /nowhere:/usr/lib/slurm
PreemptType             = preempt/partition_prio
SlurmdTimeout           = 300 sec
SLURM_CONF              = /etc/slurm/slurm.conf
TaskPlugin              = task/affinity,task/cgroup

Cgroup Support Configuration:
ConstrainDevices        = yes
END
    cat >partitions <<'END'
PartitionName=low GraceTime=60 PriorityTier=1 PreemptMode=REQUEUE
PartitionName=off GraceTime=0 PriorityTier=1 PreemptMode=OFF
PartitionName=high GraceTime=0 PriorityTier=10 PreemptMode=CANCEL
END
    printf '#!/bin/bash\nsrun ./train\n' >script
    echo 'slurm-wlm 22.05.8' >release
    echo 192.0.2.7 >address
    echo 999999999 >free
    touch error job munge-error && truncate -s 0 error job munge-error
    put /etc/slurm/plugstack.conf '# comment' 'include plugstack.d/*.conf'
    put /etc/slurm/plugstack.d/dt.conf 'optional  spank_dt.so conf=/x # a'
    put /proc/sys/kernel/hostname n17
    put /proc/self/mounts 'proc /proc proc rw 0 0' \
        'tmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0'
    put /proc/self/limits \
        'Max locked memory         unlimited            unlimited bytes'
    put /sys/class/infiniband/mlx5_0/ports/1/state '4: ACTIVE'
    put /sys/class/infiniband/mlx5_0/ports/2/state '1: DOWN'
    mkdir -p "$root/sys/class/net/eth0" "$root/sys/class/net/ib0"
    pci 0000:01:00.0 0x030200 0x10de 16 16
    pci 0000:02:00.0 0x020000 0x15b3 16 16
    mkdir -p "$root/sys/bus/pci/devices/0000:02:00.0/infiniband/mlx5_0"
    pci 0000:03:00.0 0x030000 0x1a03 1 4 # the display of a BMC
    pci 0000:04:00.0 0x020000 0x8086 1 4 # a NIC without RDMA
    pci 0000:05:00.0 0x030200 0x10de 0 16 # a virtual function
    mkdir -p "$root/usr/lib/slurm" && cp "$tmp/good.so" "$library"
}
pci() # BUS CLASS VENDOR LANES MOST
{
    local folder=/sys/bus/pci/devices/$1
    put "$folder/class" "$2"
    put "$folder/vendor" "$3"
    put "$folder/current_link_width" "$4"
    put "$folder/max_link_width" "$5"
}
build_library() # NUMBER FILE
{
    echo "const unsigned plugin_version = $1;" |
        cc -shared -nostdlib -x c -o "$2" -
}
build_library 0x160508 good.so || skip_all "no C compiler"

# Variables of the caller, of CI say, are no facts of this machine.
doctor() # [VARIABLE=VALUE...] [OPTION...]
{
    local set=()
    while [[ $1 == [A-Z]*=* ]]; do
        set+=("$1") && shift
    done
    env -i PATH="$tmp/bin:/usr/bin:/bin" ${ASAN_OPTIONS+"ASAN_OPTIONS=$ASAN_OPTIONS"} \
        "${set[@]}" timeout -k 5 100 "$tool" --root "$root" "$@" 2>&1
    echo "rc $?"
}
ids() # the ids of the findings in what doctor printed, and its status
{
    sed -n 's/^\([a-z]*\(-[a-z]*\)\{1,3\}\)$/\1/p; s/^rc /rc /p' | tr '\n' ' '
}
# The rule finds its fault, alone; then the fault is mended.
fires() # RULE WHAT REGEX [VARIABLE=VALUE...] [OPTION...]
{
    local out
    out=$(doctor "${@:4}")
    is "$1: $2" "$(ids <<<"$out")" "$1 rc 1 "
    like "$1 shows why, and what mends it" "$(tr '\n' ' ' <<<"$out")" "$3"
    healthy
}
silent() # WHAT [VARIABLE=VALUE...] [OPTION...]
{
    is "silent: $1" "$(doctor "${@:2}" | tail -n 2)" $'0 findings\nrc 0'
    healthy
}
healthy

# ---- nothing is wrong ----

# it takes ten seconds, and so runs beside the others, in files of its own
mkdir dead && cp -r config partitions release address error munge-error dead &&
    cp -r "$root" dead/root
(cd dead &&
    doctor DF_HANGS=1 DT_CKPT=/dead --root "$tmp/dead/root" >hangs) &
silent 'a machine without a fault'
is 'munge is asked at its socket' "$(<munge-called)" \
    '--no-input --socket /run/m.sock'
silent 'the same, for an administrator' --node
silent 'a job without a fault' -j 17

# ---- Slurm's configuration ----

echo 'slurm_load_ctl_conf error: Unable to contact slurm controller' >error
fires controller-silent 'slurmctld does not answer' \
    'Unable to contact slurm controller.*systemctl restart slurmctld'
echo 'munge: Error: Failed to access "/run/m.sock"' >munge-error
fires munge-silent 'munged is not there' \
    'Failed to access.*systemctl restart munge'
echo 'slurm_load_ctl_conf error: Unable to contact slurm controller' >error
put /etc/slurm/slurm.conf '#AuthInfo=socket=/no' ' authinfo=a,socket=/run/n.sock'
fires controller-silent 'slurmctld does not answer, munge does' 'Unable'
is 'munge is asked at the socket of slurm.conf' "$(<munge-called)" \
    '--no-input --socket /run/n.sock'
echo 'error: Unable to contact slurm controller' >error
echo no >munge-error
put /home/slurm.conf AuthType=auth/slurm
fires controller-silent 'without munge by slurm.conf' 'Unable' \
    SLURM_CONF=/home/slurm.conf
sed -i s,auth/munge,auth/slurm, config
echo no >munge-error
silent 'munge, where Slurm does not use it'
put /etc/slurm/plugstack.d/dt.conf '# optional spank_dt.so' 'optional other.so'
cp "$library" "${library%/*}/other.so"
fires plugin-missing 'no line loads it' \
    "has no line.*echo 'optional .*spank_dt.so' >> /etc/slurm/plugstack.conf"
rm "$root/etc/slurm/plugstack.conf"
fires plugin-missing 'there is no plugstack.conf' 'plugstack.conf does not exist'
put /etc/slurm/plugstack.conf 'include plugstack.conf' \
    'required /usr/lib/slurm/spank_dt.so'
silent 'a file that includes itself'
sed -i 's,(null),/etc/stack,' config
fires plugin-missing 'a plugstack.conf by another name' '/etc/stack does not'
put /etc/slurm/plugstack.conf 'include deeper.conf'
put /etc/slurm/deeper.conf 'include plugstack.d/*.conf'
silent 'a file that an included one includes'
rm "$library"
fires plugin-file 'an optional plugin does not exist' \
    'optional spank_dt.so: No such file.*without an error.*make install'
put /etc/slurm/plugstack.conf 'include plugstack.d/*.conf' \
    'required /usr/lib/gone.so'
fires plugin-file 'a required plugin of others does not exist' \
    'required /usr/lib/gone.so.*refuse.*remove its line'
echo 'slurm 24.11.5' >release
fires plugin-version 'the plugin is of an older Slurm' \
    'built for Slurm 22.05, srun is of 24.11.*headers of Slurm 24.11'
echo 'slurm 22.05.0-0rc1' >release
silent 'a plugin of another micro release'
sed -i 's/JobRequeue .*/JobRequeue = 0/' config
fires requeue-off 'jobs are not requeued' 'JobRequeue = 0.*JobRequeue=1'
sed -i 's/KillWait .*/KillWait = 5 sec/' config
fires kill-wait-short 'jobs are killed early' 'KillWait = 5 sec.*KillWait=30'
sed -i 's/GraceTime=60/GraceTime=0/' partitions
fires preempt-no-grace 'no time before preemption' \
    'partition low.*scontrol update PartitionName=low GraceTime=120'
sed -i 's/PreemptMode=REQUEUE/PreemptMode=CANCEL/' partitions
fires preempt-cancel 'preempted jobs end' \
    'partition low.*scontrol update PartitionName=low PreemptMode=REQUEUE'
sed -i 's/PreemptType .*/PreemptType = preempt\/none/' config
sed -i 's/GraceTime=60/GraceTime=0/' partitions
silent 'grace, where nothing is preempted'
for timeout in 0 3600; do
    sed -i "s/SlurmdTimeout .*/SlurmdTimeout = $timeout sec/" config
    fires slurmd-timeout-long "a lost node is noticed late: $timeout" \
        "SlurmdTimeout = $timeout.*SlurmdTimeout=300"
done

# ---- the machine ----

limit='Max locked memory         65536                unlimited     bytes'
put /proc/self/limits "$limit"
fires memlock-low 'RDMA may lock 64 KiB' \
    'ulimit -l: 64 KiB.*LimitMEMLOCK=infinity'
put /proc/self/limits "$limit"
rm -r "$root/sys/class/infiniband"
silent 'the limit, where there is no RDMA'
put /proc/self/mounts 'shm /dev/shm tmpfs rw,size=65536k,inode64 0 0'
fires shm-small 'the /dev/shm of a container' '64 MiB.*remount,size=50%'
put /proc/self/mounts 'tmpfs /run tmpfs rw,size=65536k 0 0'
fires shm-small 'no /dev/shm' 'is no tmpfs.*mount -t tmpfs'
echo 127.0.1.1 >address
fires hostname-loopback "Debian's /etc/hosts" \
    'getent ahosts n17: 127.0.1.1.*/etc/hosts: ADDRESS n17'
pci 0000:01:00.0 0x030200 0x10de 8 16
fires pcie-narrow 'a GPU has half its lanes' \
    '8 of 16 lanes.*lspci -s 0000:01:00.0'
pci 0000:02:00.0 0x020000 0x15b3 4 16
fires pcie-narrow 'a NIC has a quarter' '4 of 16 lanes.*lspci -s 0000:02:00.0'
put /sys/class/infiniband/mlx5_0/ports/1/state '1: DOWN'
fires link-down 'a NIC has no link' '1: DOWN.*ibstat mlx5_0'
put /sys/class/infiniband/mlx5_0/ports/1/state '2: INIT'
rm -r "$root/sys/class/infiniband/mlx5_0/ports/2"
fires link-down 'a link without a subnet manager' 'INIT.*opensm'
# Another device, without a link, and the devices of both.
nic() # LAYER BUS [FLAGS]
{
    local rdma=$root/sys/class/infiniband
    put /sys/class/infiniband/mlx5_1/ports/1/state '1: DOWN'
    put /sys/class/infiniband/mlx5_1/ports/1/link_layer "$1"
    mkdir -p "$root/sys/bus/pci/devices/$2"
    ln -s "../../../bus/pci/devices/$2" "$rdma/mlx5_1/device"
    ln -s ../../../bus/pci/devices/0000:02:00.0 "$rdma/mlx5_0/device"
    [ ! "${3-}" ] || put "/sys/bus/pci/devices/$2/net/eth9/flags" "$3"
}
nic InfiniBand 0000:02:00.1
silent 'the second port of a card has no cable'
nic InfiniBand 0000:07:00.0
fires link-down 'another card has no link' 'mlx5_1.*1: DOWN'
nic Ethernet 0000:07:00.0 0x1002
silent 'a port of Ethernet that nobody has set up'
nic Ethernet 0000:07:00.0 0x1003
fires link-down 'a port of Ethernet that is set up' 'mlx5_1.*1: DOWN'

# ---- variables ----

fires mig-several 'two instances for one process' 'names 2 MIG.*srun --dt-gpus' \
    CUDA_VISIBLE_DEVICES=MIG-1111,MIG-2222
silent 'one instance, or GPUs' CUDA_VISIBLE_DEVICES=MIG-1111
for pair in 'NCCL_IB_DISABLE=1 NCCL_IB_HCA=mlx5' \
    'NCCL_IB_DISABLE=1 NCCL_IB_GID_INDEX=3' \
    'NCCL_IB_DISABLE=1 NCCL_NET_GDR_LEVEL=PHB' \
    'NCCL_NET=socket NCCL_IB_HCA=mlx5' \
    'NCCL_NET=Socket NCCL_NET_GDR_LEVEL=PHB' \
    'NCCL_P2P_DISABLE=1 NCCL_P2P_LEVEL=NVL' \
    'NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1'; do
    read -r a b <<<"$pair"
    fires nccl-contradiction "$pair" \
        "$a and $b.*unset ${a%=*}, or else unset ${b%=*}" \
        "$a" "$b" SLURMD_NODENAME=n17
done
silent 'variables of NCCL that agree' NCCL_IB_DISABLE=0 NCCL_IB_HCA=mlx5 \
    NCCL_P2P_DISABLE=1 NCCL_P2P_LEVEL=LOC NCCL_SHM_DISABLE=0 NCCL_NET=IB \
    SLURMD_NODENAME=n17
fires ucx-contradiction 'TCP over ports of RDMA' \
    'other nodes are unreachable.*unset UCX_TLS' \
    UCX_TLS=tcp,sm,self UCX_NET_DEVICES=mlx5_0:1 SLURMD_NODENAME=n17
fires ucx-contradiction 'RDMA over interfaces' \
    'other nodes are unreachable.*unset UCX_TLS' \
    UCX_TLS=rc_x,self UCX_NET_DEVICES=ib0 SLURMD_NODENAME=n17
for tls in tcp,self rc,tcp,self all ^tcp sm,self; do
    silent "UCX_TLS=$tls with one interface" UCX_TLS="$tls" \
        UCX_NET_DEVICES=ib0 SLURMD_NODENAME=n17
done
silent 'UCX with both kinds' UCX_TLS=rc,self UCX_NET_DEVICES=ib0,mlx5_0:1 \
    SLURMD_NODENAME=n17
for set in NCCL_SOCKET_IFNAME=en NCCL_SOCKET_IFNAME==eth \
    GLOO_SOCKET_IFNAME=eth NCCL_IB_HCA=mlx4 NCCL_IB_HCA==mlx5:1 \
    UCX_NET_DEVICES=mlx5_7:1,eth0; do
    fires device-unknown "$set" "${set%%=*} names.*unset ${set%%=*}" \
        SLURMD_NODENAME=n17 "$set"
done
silent 'names of devices that are there' NCCL_SOCKET_IFNAME=eth,ib \
    GLOO_SOCKET_IFNAME=eth0 NCCL_IB_HCA==mlx5_0:1 \
    UCX_NET_DEVICES=mlx5_0:1,ib0 SLURMD_NODENAME=n17
silent 'all devices but some' NCCL_SOCKET_IFNAME=^lo,docker \
    NCCL_IB_HCA=^mlx4 SLURMD_NODENAME=n17
like 'a login node may have other devices' \
    "$(doctor NCCL_SOCKET_IFNAME=en)" \
    'not looked at: NCCL_SOCKET_IFNAME: .*by srun'

# ---- checkpoints ----

for path in /ckpt /ckpt/new; do
    echo ' 4096' >free
    fires checkpoint-full "no room in $path" "$path.* 4 MiB.*dt-ckpt prune" \
        "DT_CKPT=$path"
done
echo 4096 >free
fires checkpoint-full 'no room to flush to' 'DT_CKPT_FLUSH=/far' \
    DT_CKPT_FLUSH=/far
silent 'room for checkpoints' DT_CKPT=/ckpt DT_CKPT_FLUSH=/far

# ---- a job ----

for reason in JobHeldUser JobHeldAdmin JobHoldMaxRequeue \
    launch_failed_requeued_held; do
    echo "value[State]=PENDING value[Reason]=$reason" >job
    fires job-held "$reason" "$reason.*scontrol release 17" -j 17
done
echo 'value[State]=PENDING value[Reason]=Priority' >job
silent 'a job that only waits' -j 17
echo 'value[Requeue]=0' >job
fires job-requeue-off 'it is not requeued' 'scontrol update JobId=17 Requeue=1' \
    -j 17
echo 'value[Requeue]=0 value[State]=COMPLETED' >job
silent 'a job that has ended' -j 17
echo 'value[Requeue]=0 value[BatchFlag]=0' >job
silent 'a job without a script' -j 17
echo 'value[tres-per-task]=gres:gpu:1' >job
fires job-gpus-per-task 'tasks without peer-to-peer' \
    '8 tasks on 2 nodes.*--gpus-per-node' -j 17
echo 'value[tres-per-task]=gres:gpu:1 value[NumTasks]=2' >job
silent 'one task per node' -j 17
echo 'value[tres-per-task]=gres:gpu:1' >job
sed -i 's/^Constrain.*/ConstrainDevices = no/' config
silent 'devices that are not constrained' -j 17
echo 'value[tres-per-task]=gres:gpu:1' >job
sed -i 's/,task.cgroup//' config
silent 'devices that nothing constrains' -j 17
echo 'value[tres-per-task]=gres:gpu:1' >job
sed -i /Constrain/d config
put /etc/slurm/cgroup.conf '#ConstrainDevices=no' ' constraindevices=YES'
fires job-gpus-per-task 'devices that cgroup.conf constrains' 'with --gpus' -j 17

# ---- its script ----

script() # LINE...
{
    printf '%s\n' '#!/bin/bash' "$@" >script
}
script '#SBATCH --signal=B:USR1@60' "trap 'touch save' USR1" \
    "srun \\" '  ./train' 'echo done'
fires script-trap-waits 'the program is in the foreground' \
    'line 3 .*line 4 runs srun.*srun \.\.\. & pid=\$!' -j 17
script '#SBATCH --signal=B:USR1@60' "trap 'touch save' USR1" 'srun ./train &' \
    'wait'
silent 'a program in the background' -j 17
script "trap 'touch save' USR1" 'srun ./train &' wait 'python report.py'
silent 'a program after the one that is waited for' -j 17
script "trap '' TERM" 'srun ./train'
silent 'a signal that is ignored' -j 17
script "trap 'rm -rf \$tmp' EXIT" 'srun ./train'
silent 'a trap at the end' -j 17
script '#SBATCH --signal=B:USR1@60' 'srun ./train'
fires script-signal-untrapped 'no trap' \
    'line 2 .*B:USR1@60.*#SBATCH --dt-requeue' -j 17
script '#SBATCH --signal=B:USR1@60' 'exec python train.py'
silent 'a program in the place of the script' -j 17
script "trap 'touch save' USR1" exec 'exec >log' \
    'exec 2>>log' 'srun ./train |& tee log'
fires script-trap-waits 'a pipe is in the foreground' 'line 6 runs srun' -j 17
script '#SBATCH --signal=USR1@60' 'srun ./train'
silent 'a signal for the steps' -j 17
printf '#!/usr/bin/python3\n#SBATCH --signal=B:USR1\n' >script
silent 'a script of no shell' -j 17

# ---- what cannot be looked at, and bad input ----

rm script
like "another user's script" "$(doctor -j 17)" \
    'not looked at: the batch script of job 17'
healthy
is 'an unknown job' "$(doctor -j 18)" \
    "dt-doctor: job 18: Invalid job id specified"$'\nrc 2'
none=$(PATH=$tmp/none /usr/bin/env -i PATH="$tmp/none" "$tool" --root "$root")
like 'without Slurm it says so' "$none" 'not looked at: .*scontrol cannot be run'
like 'without getent, too' "$none" 'not looked at: the address of n17'
echo 127.0.1.1 >address
echo 'scontrol: fatal: Could not establish a configuration source' >error
fires hostname-loopback 'without slurm.conf it looks at the rest' \
    'not looked at: .*no slurm.conf'
rm -r "$root" && mkdir "$root"
like 'without /proc it looks at the rest' "$(doctor)" \
    'not looked at: the size of /dev/shm'
healthy
size=$(stat -c %s good.so)
for ((at = 0; at < size; at += size / 61)); do
    head -c "$at" good.so >"$library"
    doctor | grep -Fxq 'rc 0' || echo "$at"
done >bad
is 'a plugin that is cut off is no finding, and harmless' "$(<bad)" ''
healthy
for ((at = 16; at < 64; at++)); do # the header of the file
    { head -c "$at" good.so && printf '\377' && tail -c +$((at + 2)) good.so; } \
        >"$library"
    doctor | grep -Eq '^rc [01]$' || echo "$at"
done >bad
is 'a plugin with a damaged header is harmless' "$(<bad)" ''
healthy
printf '\033]0;x\007' >>"$root/etc/slurm/plugstack.d/dt.conf"
printf 'optional /\033[31m.so\n' >>"$root/etc/slurm/plugstack.d/dt.conf"
is 'no control character is printed' "$(doctor | tr -d '\n[:print:]')" ''
healthy
fires checkpoint-full 'names are printable' 'DT_CKPT=/c\\x1b\[31m' \
    "DT_CKPT=$(echo 4096 >free && printf '/c\033[31m')"

is 'JSON without a finding' "$(doctor --json | tr -d ' \n')" \
    '{"findings":[],"not_looked_at":[]}rc0'
echo ' 4096' >free
like 'JSON of a finding' "$(doctor DT_CKPT=$'/a\x80"' --json | tr -d '\n')" \
    '"id": "checkpoint-full", +"seen": "DT_CKPT=/a\\\\x80\\".*rc 1'
healthy

for usage in --what '-j' '-j x' '-j 1_' '-j 17 --node' 'x'; do
    # shellcheck disable=SC2086 # several words
    like "usage: $usage" "$(doctor $usage)" '^rc 64'
done
is 'the help' "$("$tool" --help | head -c 16)" 'Usage: dt-doctor'

# ---- each rule has a page, and a test ----

rules=$(sed -n 's/^ *{"\([a-z-]*\)", [A-Z]*, look.*/\1/p' \
    "$top/tools/doctor/rules.c")
is 'the table of rules is read' "$(wc -l <<<"$rules")" 26
while read -r rule; do
    grep -Fxq ".B ${rule//-/\\-}" "$top/doc/man/dt-doctor.1" ||
        echo "$rule: no page"
    [ "$rule" = checkpoint-silent ] || grep -q "^ *fires $rule " "$top/tests/unit/tools/dt-doctor.t" ||
        echo "$rule: no test"
done <<<"$rules" >lacks
is 'each rule is in the manual and in this test' "$(<lacks)" ''

wait
is 'checkpoint-silent: a dead file system' "$(ids <dead/hangs)" \
    'checkpoint-silent rc 1 '
like 'and it says which' "$(<dead/hangs)" 'DT_CKPT=/dead.*did not answer'

done_testing
