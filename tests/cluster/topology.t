#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# topology.t - nodes configured as an HGX H100: each task gets the GPUs,
# CPUs, memory and NICs that belong together, however Slurm binds tasks; what
# the user set stays; without a topology jobs run all the same
set -u
cd "$(dirname "$0")/../.." || exit
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
# shellcheck source=tests/lib/cluster.sh
. tests/lib/cluster.sh
SB_TIMEOUT=60

[[ $(cat /sys/devices/system/cpu/online) =~ ^0-([0-9]+)$ ]] ||
    skip_all "the CPUs here are not two or more, numbered from 0"
ncpus=$((BASH_REMATCH[1] + 1))
[ "$(nproc)" -ge "$ncpus" ] || skip_all "some of the CPUs are not for us"
ncpus=$((ncpus - ncpus % 2)) half=$((ncpus / 2))

range() # FIRST LAST
{
    if [ "$1" -eq "$2" ]; then echo "$1"; else echo "$1-$2"; fi
}
all=$(range 0 $((ncpus - 1))) near=$(range 0 $((half - 1)))
far=$(range "$half" $((ncpus - 1)))

# The first half of the real CPUs is package 0. Each GPU shares a switch with
# its NIC; NVSwitch joins all GPUs.
hgx() # FOLDER-OF-DEVICE-FILES
{
    local i j numa links
    echo 'DtTopology=1 Source="an HGX H100"'
    echo "Numa=0 Package=0 Cpus=$near Memory=1024G"
    echo "Numa=1 Package=1 Cpus=$far Memory=1024G"
    for ((i = 0; i < 8; i++)); do echo "Switch=plx$i Numa=$((i / 4))"; done
    for ((i = 0; i < 8; i++)); do
        numa=$((i / 4)) links=
        for ((j = 0; j < 8; j++)); do links+=,$((i == j ? -1 : 18)); done
        echo "Gpu=$i Bus=0000:${i}0:00.0 Vendor=nvidia File=$1/gpu$i Minor=$i" \
            "Numa=$numa Under=plx$i NvSwitch=yes Links=${links#,}"
    done
    for ((i = 0; i < 8; i++)); do
        echo "Nic=mlx5_$i Names=mlx5_$i/ib$i Net=ib$i Bus=0000:${i}1:00.0" \
            "Type=ib State=up Port=1 Gbps=400 Numa=$((i / 4)) Under=plx$i"
    done
}
hgx "$cluster_dir/dev" >"$cluster_share/hgx.topo"

# What a task says of itself, in the columns of the table but for numa.
cat >"$cluster_share/say" <<'END'
#!/bin/bash
cpus=$(sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status)
echo "$SLURM_PROCID $SLURMD_NODENAME $SLURM_LOCALID ${DT_GPUS-nothing}" \
    "$CUDA_VISIBLE_DEVICES $cpus ${DT_NICS--}"
END
# Its variables whose names match.
cat >"$cluster_share/env" <<'END'
#!/bin/bash
env | grep -E "^($1)=" | sort
END
chmod 755 "$cluster_share"/{say,env}
say=$cluster_share/say get=$cluster_share/env

# Before slurmd, in a node: its cgroups, the device files that they can tell
# from each other, and Slurm's configuration of them.
mkdir "$cluster_share/bin"
cat >"$cluster_share/slurmd" <<END
#!/bin/bash
etc=\${SLURM_CONF%/*}
new=\$etc/../dev/new-\$(uname -n)
mount -t tmpfs -o mode=755 cgroup /sys/fs/cgroup || exit
for name in cpuset devices freezer memory cpuacct; do
    mkdir "/sys/fs/cgroup/\$name" &&
        mount -t cgroup -o "\$name" cgroup "/sys/fs/cgroup/\$name" || exit
done
for ((i = 0; i < 8; i++)); do
    mknod -m 666 "\$new" c 195 "\$i" &&
        mv -f "\$new" "\$etc/../dev/gpu\$i" || exit
done
cp "$cluster_share/cgroup.conf" "\$new" &&
    mv "\$new" "\$etc/cgroup.conf" || exit
exec "$(type -P slurmd)" "\$@"
END
chmod 755 "$cluster_share/slurmd"

cgroups_why_not() # the reason why Slurm's cgroups cannot be tried, if so
{
    [ "$EUID" -eq 0 ] || { echo "only root may"; return; }
    # shellcheck disable=SC2016 # for the inner shell
    unshare --mount --propagation private bash -c '
        mount -t tmpfs x /mnt || exit
        for name in cpuset devices freezer; do
            mkdir "/mnt/$name" && mount -t cgroup -o "$name" x "/mnt/$name" ||
                exit
        done' 2>/dev/null || echo "no cgroup v1 to mount"
}

cgroups_clean() # Slurm leaves its directories
{
    # shellcheck disable=SC2016 # for the inner shell
    unshare --mount --propagation private bash -c '
        for name in cpuset devices freezer memory cpuacct; do
            mount -t cgroup -o "$name" x /mnt || continue
            find /mnt/slurm_n[01] -depth -type d -exec rmdir {} \;
            umount /mnt
        done' 2>/dev/null
}

up() # TASK-PLUGIN [CGROUP-CONF-LINE...]
{
    local path=$PATH
    dts down --dir "$cluster_dir" >/dev/null 2>&1
    echo "TaskPlugin=$1" >"$cluster_share/conf"
    shift
    printf '%s\n' CgroupPlugin=cgroup/v1 "$@" >"$cluster_share/cgroup.conf"
    rm -f "$cluster_share/bin/slurmd"
    [ $# -eq 0 ] || ln -s ../slurmd "$cluster_share/bin/slurmd"
    PATH=$cluster_share/bin:$PATH
    cluster_up -N2 --cpus "$ncpus" --gpus 8 \
        --topology "$cluster_share/hgx.topo" --conf "$cluster_share/conf"
    PATH=$path
}

# ---- the table, and that it is true

# All of both nodes: eight tasks each, which share the CPUs there are.
on_all() # SRUN-ARG...
{
    sb salloc -Q -N2 --exclusive --gpus-per-node=8 \
        srun -Q --overcommit -n16 --ntasks-per-node=8 "$@"
}

on_its_package() # fails with those rows of stdin whose CPUs are elsewhere
{
    local rank node task gpus sees cpus rest wrong=0
    while read -r rank node task gpus sees cpus rest; do
        if [ "$((task / 4))" -eq 0 ]; then
            [ "${cpus##*[-,]}" -lt "$half" ]
        else
            [ "${cpus%%[-,]*}" -ge "$half" ]
        fi && continue
        echo "$rank $node $task $gpus $sees $cpus $rest" && wrong=1
    done
    return "$wrong"
}

table() # NAME: after up
{
    local rows wanted='' i
    on_all --dt-gpus=verbose "$say" 2>"$cluster_share/table" |
        sort -n >"$cluster_share/said"
    like "$1: the header" "$(head -n 1 "$cluster_share/table")" \
        '^dt: rank  node  local  gpus +sees +cpus +numa  nics$'
    rows=$(sed -nE '/^dt: +[0-9]/s/^dt: +//p' "$cluster_share/table" | sort -n)
    for ((i = 0; i < 16; i++)); do
        wanted+="$i n$((i / 8)) $((i % 8)) $((i % 8)) 0,1,2,3,4,5,6,7"
        wanted+=" $((i % 8 / 4)) mlx5_$((i % 8))"$'\n'
    done
    is "$1: each task has its GPU, and the memory and the NIC nearest to it" \
        "$(awk '{ print $1, $2, $3, $4, $5, $7, $8 }' <<<"$rows")" \
        "${wanted%$'\n'}"
    is "$1: each task is what its row says" "$(cat "$cluster_share/said")" \
        "$(awk '{ print $1, $2, $3, $4, $5, $6, $8 }' <<<"$rows")"
    ok "$1: its CPUs are of the package of its GPU" \
        on_its_package <<<"$rows"
}

# While another job has GPUs 0 and 1. Where cgroups hide them, Slurm calls the
# rest 0 and 1, too.
beside_another() # NAME CUDA_VISIBLE_DEVICES
{
    local got
    sb srun -Q -w n0 -n1 --gpus-per-node=2 sleep 350 >/dev/null 2>&1 &
    wait_for 10 two_are_taken || echo "# there is no other job"
    got=$(sb srun -Q -w n0 -n1 --gpus-per-node=2 --dt-gpus "$say" 2>/dev/null)
    is "$1: beside another job, the NICs of the GPUs that were granted" \
        "$(awk '{ print $5, $7 }' <<<"$got")" "$2 mlx5_2,mlx5_3"
    sb scancel -u "$(id -un)"
    wait
}

two_are_taken()
{
    [ "$(sb squeue -h -t R -o %i | wc -l)" -eq 1 ]
}

bound() # NAME: GPUs that Slurm binds to a task
{
    local got
    got=$(sb srun -Q -w n0 -n2 --gpus-per-task=1 --dt-gpus "$say" 2>&1)
    is "$1: bound GPUs, the NIC of each" \
        "$(sed '/^dt: /d' <<<"$got" | sort | cut -d' ' -f1,7)" \
        $'0 mlx5_0\n1 mlx5_1'
    is "$1: bound GPUs, what to write instead is said once" \
        "$(grep -- --gpus-per-task <<<"$got")" \
        'dt: note: --gpus-per-task and --gpu-bind hide the GPUs of other '\
'tasks, which takes peer-to-peer access away: use --gpus-per-node=<n> and '\
'--dt-gpus=auto'
}

up task/affinity
table task/affinity
beside_another task/affinity 2,3
bound task/affinity

# ---- what the user set stays (here, where Slurm can bind)

is 'the networks of a task' "$(sb srun -Q -w n0 -n2 --gpus-per-node=2 \
    --dt-gpus -l "$get" 'UCX_NET_DEVICES|NCCL_IB_HCA' 2>/dev/null | sort)" \
'0: NCCL_IB_HCA==mlx5_0:1,mlx5_1:1
0: UCX_NET_DEVICES=mlx5_0:1
1: NCCL_IB_HCA==mlx5_0:1,mlx5_1:1
1: UCX_NET_DEVICES=mlx5_1:1'
if [ "$(dts status --dir "$cluster_dir" | awk '$1 == "mode" { print $2 }')" \
    = namespaces ]; then
    interfaces=$'GLOO_SOCKET_IFNAME=eth0\nNCCL_SOCKET_IFNAME==eth0'
else
    interfaces='' # the nodes talk over the loopback
fi
is 'the interface by which ranks connect' "$(sb srun -Q -w n0 -n1 \
    --gpus-per-node=1 --dt-gpus "$get" '.*_SOCKET_IFNAME' 2>/dev/null)" \
    "$interfaces"

mine=(UCX_NET_DEVICES=eth0 NCCL_IB_HCA=mlx5_7 NCCL_SOCKET_IFNAME=ib0
    GLOO_SOCKET_IFNAME=ib1 CUDA_DEVICE_ORDER=FASTEST_FIRST)
names='UCX_NET_DEVICES|NCCL_.*|.*_IFNAME|CUDA_DEVICE_ORDER'
is 'variables that the user set are kept' "$(sb env "${mine[@]}" srun -Q \
    -w n0 -n1 --gpus-per-node=2 --dt-gpus "$get" "$names" 2>/dev/null)" \
    "$(printf '%s\n' "${mine[@]}" | sort)"
is 'also those of --export=LIST' "$(sb srun -Q -w n0 -n1 --gpus-per-node=2 \
    --export=PATH,UCX_NET_DEVICES=eth7 --dt-gpus "$get" UCX_NET_DEVICES \
    2>/dev/null)" UCX_NET_DEVICES=eth7

visible() # CUDA_VISIBLE_DEVICES SRUN-ARG...: what two tasks own and see
{
    sb env CUDA_VISIBLE_DEVICES="$1" srun -Q -w n0 -n2 "${@:2}" "$say" 2>&1 |
        cut -d' ' -f1,4,5 | grep -v ^dt | sort
}
is "a user's CUDA_VISIBLE_DEVICES: its order stays, its GPUs are dealt out" \
    "$(visible 5,2 --gpus-per-node=8 --dt-gpus)" $'0 5 5,2\n1 2 5,2'
is 'also with single' "$(visible 5,2 --gpus-per-node=8 --dt-gpus=single)" \
    $'0 5 5,2\n1 2 5,2'
is 'of GPUs that were not granted: as without it' \
    "$(visible 5,2 --gpus-per-node=2 --dt-gpus)" $'0 0 0,1\n1 1 0,1'
is 'and one line' "$(sb env CUDA_VISIBLE_DEVICES=5,2 srun -Q -w n0 -n2 \
    --gpus-per-node=2 --dt-gpus true 2>&1 | grep CUDA)" \
    'dt: note: CUDA_VISIBLE_DEVICES names GPUs that Slurm did not grant: it '\
'is not heeded'
is 'it does not leak into the task' "$(sb env CUDA_VISIBLE_DEVICES=1,0 \
    srun -Q -w n0 -n1 --gpus-per-node=2 --dt-gpus "$get" 'DT_USER.*' \
    2>/dev/null)" ''
cat >"$cluster_share/batch" <<END
#!/bin/bash
#SBATCH -w n0 -n2 --gpus-per-node=4
srun -Q --dt-gpus=rotate $say | sort
CUDA_VISIBLE_DEVICES=3,1 srun -Q --dt-gpus $say | sort
srun -Q -n1 --dt-gpus=rotate srun -Q -n2 --overlap --dt-gpus $say | sort
END
is 'in a batch job and in a step, what Slurm or we set there is no wish' \
    "$(sb sbatch -Q -W -o "$cluster_share/out" -e /dev/null \
        "$cluster_share/batch" >/dev/null 2>&1
        cut -d' ' -f4,5 "$cluster_share/out")" \
    $'0,1 0,1,2,3\n2,3 2,3,0,1\n3 3,1\n1 3,1\n0,1 0,2,1,3\n2,3 0,2,1,3'

on_node=(salloc -Q -w n0 -n1 --exclusive --gpus-per-node=8
    srun -Q --overcommit -n1)
cpus_of() # SRUN-ARG...: where one task may run
{
    sb "${on_node[@]}" "$@" 2>/dev/null | cut -d' ' -f6
}
is 'a task near GPU 7' "$(cpus_of --dt-gpus=map:7 "$say")" "$far"
is '--cpu-bind is the last word' \
    "$(cpus_of --dt-gpus=map:7 --cpu-bind=none "$say")" "$all"
is 'also in --export=NONE' \
    "$(cpus_of --dt-gpus=map:7 --cpu-bind=none --export=NONE "$say")" "$all"
is 'but not --cpu-bind=verbose' \
    "$(cpus_of --dt-gpus=map:7 --cpu-bind=verbose "$say")" "$far"
is '--dt-cpu-bind=none leaves the CPUs to Slurm' \
    "$(cpus_of --dt-gpus=map:7 --dt-cpu-bind=none "$say")" "$all"
is 'taskset works' "$(cpus_of --dt-gpus=map:0 taskset -c 0 "$say")" 0
policy=$(sb "${on_node[@]}" --dt-gpus=map:0 head -n 1 /proc/self/numa_maps \
    2>/dev/null)
if [ "$policy" ]; then
    like 'memory of the NUMA node of its GPU is preferred' "$policy" 'prefer'
    is 'but --mem-bind is the last word' "$(sb "${on_node[@]}" \
        --mem-bind=local --dt-gpus=map:0 head -n 1 /proc/self/numa_maps \
        2>/dev/null | grep -o prefer)" ''
else
    ok 'memory # SKIP this kernel has no NUMA' true
fi

# ---- the other types, and how they travel

got() # SRUN-ARG...: GPUs, what they see, NICs of two tasks
{
    sb srun -Q -w n0 -n2 --gpus-per-node=8 "$@" "$say" 2>&1 |
        grep -v '^dt: note: ' | sort | cut -d' ' -f4,5,7-
}
is 'map:' "$(got --dt-gpus=map:7,2)" $'7 7 mlx5_7\n2 2 mlx5_2'
is 'a short map: starts again' "$(got --dt-gpus=map:3)" \
    $'3 3 mlx5_3\n3 3 mlx5_3'
is 'mask:' "$(got --dt-gpus=mask:0xc,81)" \
    $'2,3 2,3 mlx5_2,mlx5_3\n0,7 0,7 mlx5_0,mlx5_7'
is '--dt-nics=map:, by any name' \
    "$(got --dt-gpus=1 --dt-nics=map:ib6,mlx5_5)" $'0 0 mlx5_6\n1 1 mlx5_5'
is '--dt-nics=rail' "$(got --dt-gpus=1 --dt-nics=rail)" \
    $'0 0 mlx5_0\n1 1 mlx5_1'
is '--dt-nics=none: no variable about networks' "$(sb srun -Q -w n0 -n1 \
    --gpus-per-node=1 --dt-gpus --dt-nics=none "$get" \
    'UCX_NET.*|NCCL_.*|GLOO_.*|DT_NICS' 2>/dev/null)" ''

fails() # NAME EXIT-CODE LINE-AS-REGEX CMD ARG...
{
    local name=$1 wanted=$2 line=$3 rc err
    shift 3
    err=$(sb "$@" 2>&1)
    rc=$?
    is "$name: exit code" "$rc" "$wanted"
    is "$name: one line of ours" "$(grep -c 'dt: ' <<<"$err")" 1
    like "$name: what it says" "$err" "error: dt: $line\$"
}
on_n0=(srun -Q -w n0 -n2 --gpus-per-node=4)
fails 'a map: beyond the grant' 1 '--dt-gpus=map:0,4: node n0: .*granted 4.*' \
    "${on_n0[@]}" --dt-gpus=map:0,4 true
fails 'a mask: beyond the grant' 1 \
    '--dt-gpus=mask:0x10: node n0: .*granted 4.*' \
    "${on_n0[@]}" --dt-gpus=mask:0x10 true
fails 'an unknown NIC' 1 \
    '--dt-gpus=auto: node n0: --dt-nics names mlx5_9, .* are mlx5_0,.*mlx5_7' \
    "${on_n0[@]}" --dt-gpus --dt-nics=map:mlx5_9 true
fails '--dt-nics alone' 255 '--dt-nics needs --dt-gpus: .*' \
    "${on_n0[@]}" --dt-nics=rail true
fails '--dt-cpu-bind alone' 255 \
    '--dt-cpu-bind needs --dt-gpus: .*' \
    "${on_n0[@]}" --dt-cpu-bind=gpu true
fails 'a bad --dt-nics' 255 \
    '--dt-nics=far: expected closest, rail, map:<names>, none or help' \
    "${on_n0[@]}" --dt-gpus --dt-nics=far true
fails 'a bad SBATCH_DT_CPU_BIND' 1 \
    'SBATCH_DT_CPU_BIND=x: expected gpu, none or help' \
    env SBATCH_DT_CPU_BIND=x sbatch --wrap true
like '--dt-nics=help' "$(sb srun --dt-nics=help true)" '^  rail '
like '--dt-cpu-bind=help' "$(sb salloc --dt-cpu-bind=help)" '^  none '

is 'SLURM_DT_NICS without --dt-gpus changes nothing' \
    "$(sb env SLURM_DT_NICS=rail srun -Q -w n0 -n1 --gpus-per-node=1 "$say" \
        2>&1 | cut -d' ' -f4,7)" 'nothing -'
is 'SLURM_DT_NICS' "$(sb env SLURM_DT_NICS=map:mlx5_4 srun -Q -w n0 -n1 \
    --gpus-per-node=1 --dt-gpus "$say" 2>&1 | grep -v '^dt: ' |
    cut -d' ' -f7)" mlx5_4
cat >"$cluster_share/batch" <<END
#!/bin/bash
#SBATCH -w n0 -n1 --exclusive --gpus-per-node=4 --dt-gpus=map:0
#SBATCH --dt-nics=map:mlx5_3 --dt-cpu-bind=none
srun -Q --overcommit $say
srun -Q --overcommit --dt-nics=map:mlx5_2 --dt-cpu-bind=gpu $say
srun -Q --overcommit --dt-gpus=none $say
srun -Q --overcommit --export=NONE --dt-gpus=map:1 $say
END
batch() # CMD ARG...: the CPUs and NICs of the steps of a batch job
{
    sb "$@" -Q -W -o "$cluster_share/out" -e /dev/null \
        "$cluster_share/batch" >/dev/null 2>&1
    cut -d' ' -f6- "$cluster_share/out"
}
is '#SBATCH lines reach the steps, which may say otherwise' \
    "$(batch sbatch)" \
    "$all mlx5_3"$'\n'"$near mlx5_2"$'\n'"$all -"$'\n'"$all mlx5_3"
is 'SBATCH_DT_NICS wins over #SBATCH, SLURM_DT_NICS does not come in' \
    "$(batch env SBATCH_DT_NICS=map:mlx5_5 SLURM_DT_NICS=map:mlx5_6 sbatch)" \
    "$all mlx5_5"$'\n'"$near mlx5_2"$'\n'"$all -"$'\n'"$all mlx5_5"
is 'sbatch --dt-nics wins over both' "$(batch env SBATCH_DT_NICS=map:mlx5_5 \
    sbatch --dt-nics=map:mlx5_7 | head -n 1)" "$all mlx5_7"
is 'SALLOC_DT_NICS' "$(sb env SALLOC_DT_NICS=map:mlx5_1 salloc -Q -w n0 -n1 \
    --gpus-per-node=1 --dt-gpus srun -Q "$say" 2>/dev/null | cut -d' ' -f7)" \
    mlx5_1

# ---- without Slurm's help, and without a topology

up task/none
table task/none
beside_another task/none 2,3
like 'cores that were not granted are left to others' \
    "$(sb srun -Q -w n0 -n1 --gpus-per-node=1 --dt-gpus "$say" 2>/dev/null |
        cut -d' ' -f6)" '^[0-9]+$'

plugstack=$cluster_dir/etc/plugstack.conf
plugin=$(cut -d' ' -f1,2 "$plugstack")
helper() # BODY: of a script that stands for dt-topo
{
    rm -f "$cluster_share/helper"
    printf '#!/bin/bash\n%s\n' "$1" >"$cluster_share/helper"
    chmod 755 "$cluster_share/helper"
    echo "$plugin helper=$cluster_share/helper" >"$plugstack"
}
falls_back() # NAME REASON-AS-REGEX
{
    local got
    got=$(sb srun -Q -N2 --ntasks-per-node=1 --gpus-per-node=4 --dt-gpus \
        "$say" 2>&1)
    is "$1: the job runs, GPUs in order" \
        "$(grep -v '^dt: ' <<<"$got" | sort | cut -d' ' -f1-5,7)" \
        $'0 n0 0 0,1,2,3 0,1,2,3 -\n1 n1 0 0,1,2,3 0,1,2,3 -'
    is "$1: one line" "$(grep -c 'dt: ' <<<"$got")" 1
    like "$1: which says why" "$got" \
        "^dt: note: node n0: GPUs are dealt out in order, .* not known: .*$2"
}
echo "$plugin helper=$cluster_share/absent" >"$plugstack"
falls_back 'no dt-topo' 'absent: No such file or directory$'
helper 'echo "it is broken" >&2; exit 3'
falls_back 'dt-topo fails' 'helper ended with status 3: it is broken$'
helper 'kill -SEGV $$'
falls_back 'dt-topo crashes' 'helper was ended by signal 11$'
is 'and the table leaves out what is unknown' "$(sb srun -Q -w n0 -n1 \
    --gpus-per-node=2 --dt-gpus=verbose true 2>&1 |
    awk '$2 == "0" { print $5, $7, $8, $9 }')" '0,1 - - -'
helper 'exit 0'
falls_back 'dt-topo prints nothing' 'helper printed nothing$'
helper 'exec head -c 5000 /bin/sh'
falls_back 'dt-topo prints rubbish' '.'
helper 'yes'
falls_back 'dt-topo does not stop to print' 'more than 1048576 bytes$'
helper 'printf "DtTopology=1\nGpu=0\n"'
falls_back 'the topology of another node' 'granted 4 GPUs, the topology has 1$'
nap=321.$$ # other runs of this test may be at it, too
helper "sleep $nap & sleep $nap"
falls_back 'dt-topo hangs' 'helper did not end within 10 s$'
no_nap()
{
    ! pgrep -x -f "sleep $nap"
}
ok 'and nothing is left of it' wait_for 5 no_nap

# ---- what is wrong with one node only, and what the grant costs

# shellcheck disable=SC2016 # for the helper
helper '[ "$3" = n0 ] || { echo "it is broken" >&2; exit 3; }
exec cat '"$cluster_share/hgx.topo"
like 'verbose reports a node that is not that of rank 0' "$(sb srun -Q -N2 \
    --ntasks-per-node=1 --gpus-per-node=4 --dt-gpus=verbose true 2>&1)" \
    'dt: note: node n1: GPUs are dealt out in order, .*: it is broken'
# shellcheck disable=SC2016 # for the helper
helper '[ "$3" = n0 ] || lost="/^Gpu=2 /s/$/ Lost=yes/"
exec sed "$lost" '"$cluster_share/hgx.topo"
is 'a lost GPU is reported without verbose, by node and name' \
    "$(sb srun -Q -N2 --ntasks-per-node=1 --gpus-per-node=4 --dt-gpus true \
        2>&1 | grep lost)" \
    'dt: note: node n1: GPU 2 was granted, but is lost to the node: tell the '\
'administrator'
helper "exec cat $cluster_share/hgx.topo"
crowded()
{
    sb "$@" 2>&1 | grep cores
}
is 'tasks that must leave the cores near their GPUs: reported without verbose' \
    "$(crowded srun -Q -w n0 -n "$ncpus" --gpus-per-node=4 --dt-gpus true)" \
    'dt: note: too few cores near the GPUs of some tasks were granted, they run '\
'on far ones: ask for --gres-flags=enforce-binding, or for more cores with '\
'--cpus-per-task=<n>'
is 'not where more tasks than CPUs were asked for' "$(crowded salloc -Q -w n0 \
    --exclusive --gpus-per-node=8 srun -Q --overcommit -n$((2 * ncpus)) \
    --dt-gpus true)" ''
sed '/^Gpu=/s/$/ Part=0/' "$cluster_share/hgx.topo" >"$cluster_share/mig.topo"
helper "exec cat $cluster_share/mig.topo"
is 'more tasks than MIG instances: reported without verbose' \
    "$(sb srun -Q -w n0 -n2 --gpus-per-node=1 --dt-gpus true 2>&1 | grep MIG)" \
    'dt: note: there are more tasks than MIG instances: tasks share an '\
'instance and its memory: start as many tasks as there are instances, or ask '\
'for more'
helper "exec grep -v ^Nic= $cluster_share/hgx.topo"
is 'without NICs for RDMA, NCCL chooses its interfaces itself' "$(sb srun -Q \
    -w n0 -n1 --gpus-per-node=1 --dt-gpus "$get" 'NCCL_.*' 2>/dev/null)" ''
is 'single without an NVLink: the note does not speak of one' "$(
    sed -E '/^Gpu=/s/ (NvSwitch|Links)=[^ ]*//g' "$cluster_share/hgx.topo" \
        >"$cluster_share/pcie.topo"
    helper "exec cat $cluster_share/pcie.topo"
    sb srun -Q -w n0 -n2 --gpus-per-node=2 --dt-gpus=single true 2>&1 |
        grep peer-to-peer)" \
    'dt: note: tasks do not see GPUs that theirs can reach directly, which '\
'takes peer-to-peer access away: --dt-gpus=auto or rotate keeps it'

# shellcheck disable=SC2016 # for the helper
helper 'exec 2>/dev/null >>'"$cluster_share"'/who
grep -E "^(Uid|Gid|Groups|CapEff)" /proc/$$/status
ls /proc/$$/fd
env | sort
echo "$@"'
: >"$cluster_share/who"
chmod 666 "$cluster_share/who"
as=() other=''
if [ "$EUID" -eq 0 ]; then
    as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    "${as[@]}" test -r "$dt_sandbox" && other=yes || as=()
fi
(cd / && sb "${as[@]}" srun -Q -w n0 -n1 --gpus-per-node=1 --dt-gpus \
    /bin/true 2>/dev/null)
if [ "$EUID" -eq 0 ] && [ ! "$other" ]; then
    ok "dt-topo runs as the user # SKIP nobody may not read $DT_PREFIX" true
elif [ "$EUID" -eq 0 ]; then
    is 'dt-topo runs as the user, for good, out of reach of its processes' \
        "$(sed -n '/^[UGC][a-zE]*:/p' "$cluster_share/who" |
            tr -s '\t ' ' ' | sed 's/ $//')" \
'Uid: 65534 65534 65534 65534
Gid: 65533 65533 65533 65533
Groups: 65534
CapEff: 0000000000000000'
fi
is 'with nothing of the environment, and no descriptor' \
    "$(sed -E '/^[UGC][a-zE]*:/d; /^(_|PWD|SHLVL|OLDPWD)=/d' \
        "$cluster_share/who")" \
'0
1
2
255
HOME=/
LC_ALL=C
PATH=/usr/bin:/bin
--cached --node n0'

# ---- with cgroups

why=$(cgroups_why_not)
if [ "$why" ]; then
    ok "task/cgroup # SKIP $why" true
else
    up task/affinity,task/cgroup ConstrainCores=yes
    table task/affinity+cgroup
    beside_another task/affinity+cgroup 2,3
    up task/cgroup ConstrainDevices=yes
    table 'task/cgroup, devices'
    beside_another 'task/cgroup, devices' 0,1
    up task/affinity,task/cgroup ConstrainCores=yes ConstrainDevices=yes
    table 'task/affinity+cgroup, devices'
    beside_another 'task/affinity+cgroup, devices' 0,1
    bound 'task/affinity+cgroup, devices'
    dts down --dir "$cluster_dir" >/dev/null 2>&1
    cgroups_clean
fi

done_testing
