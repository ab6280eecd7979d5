# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# node.sh - the head and the nodes of a sandbox: what runs inside
#
#   head         first process of the sandbox's pid namespace
#     munged, slurmctld
#     node n0    first process of its own pid namespace
#       slurmd
#     node n1 ...
#
# In ordinary mode there are no namespaces: the head runs munged, slurmctld
# and one slurmd for each node.
# shellcheck shell=bash
# shellcheck disable=SC2154 # $dir, $id, $mode, $nodes ...: see sandbox_load

# Enter new namespaces. Mounts made by the host later are seen inside, ours
# never outside: mounts_detach sees to that.
namespaces_enter=(unshare --net --uts --ipc --mount --propagation unchanged
    --pid --fork --kill-child)

# "unshare --propagation slave" fails in a plain chroot, whose / is no mount
# point. Entering our own mount namespace anew leaves the chroot.
mounts_detach()
{
    mount --make-rslave / 2>/dev/null ||
        nsenter --mount=/proc/self/ns/mnt mount --make-rslave /
}

# Can this user make such nodes? To be run inside fresh namespaces.
node_probe()
{
    mounts_detach &&
        mount -t sysfs probe /sys &&
        mount -t tmpfs probe /tmp &&
        mount -t proc proc /proc &&
        ip link add br0 type bridge &&
        ip link add eth0 type veth peer name eth1
}

fail() # REASON: the head gives up; `up` prints the reason
{
    echo "$*" >"$dir/run/failed"
    echo "dt-sandbox: $*" >&2
    exit 1
}

# Become CMD with nothing of the caller's environment. slurmstepd writes its
# title over the environment up to SLURM_CONF, so the marks come after it.
# PMIx in slurmstepd asks hwloc, whose gl component looks for ten X servers:
# 5 s for each step where there is no /etc/hosts.
environment_clean() # CMD ARG...
{
    exec env -i SLURM_CONF="$dir/etc/slurm.conf" DT_SANDBOX_DIR="$dir" \
        DT_SANDBOX_ID="$id" PATH="$PATH" HOME=/ HWLOC_COMPONENTS=-gl "$@"
}

head_main()
{
    local pid rc i
    local -A child=()

    cd / || exit
    # /proc is still the host's, so this is the host's number of this process
    read -r pid _ </proc/self/stat
    [ "$mode" = ordinary ] || head_network ||
        fail "head: its network could not be set up"
    echo "$pid $(process_start_time "$pid")" >"$dir/run/head"

    munged --foreground --force --socket="$dir/run/munge.sock" \
        --key-file="$dir/munge.key" --pid-file="$dir/run/munged.pid" \
        --log-file="$dir/log/munged.log" --seed-file="$dir/run/munge.seed" &
    child[$!]=munged
    slurmctld -D -c >>"$dir/log/slurmctld.out" 2>&1 &
    child[$!]=slurmctld
    for ((i = 0; i < nodes; i++)); do
        if [ "$mode" = ordinary ]; then
            node_slurmd "$i" &
        else
            "${namespaces_enter[@]}" "$BASH" "$self" _node "$i" "$pid" &
        fi
        child[$!]=n$i
    done
    while wait -n -p pid; rc=$?; [ "${pid-}" ]; do
        echo "${child[$pid]-a child} ended with status $rc" |
            tee "$dir/run/failed"
    done
}

head_network()
{
    mounts_detach &&
        mount -t sysfs "$id" /sys &&
        { [ ! -e /etc/hosts ] || mount --bind "$dir/etc/hosts" /etc/hosts; } &&
        echo head >/proc/sys/kernel/hostname &&
        ip link set lo up &&
        ip link add br0 type bridge &&
        ip addr add "$net_head/16" dev br0 &&
        ip link set br0 up
}

node_main() # INDEX HEAD-PID
{
    local i=$1 head=$2 pid

    read -r pid _ </proc/self/stat
    echo "$pid" >"$dir/run/n$i"
    node_network "$i" "/proc/$head/ns/net" || fail "n$i: no network"
    node_mounts || fail "n$i: mounts failed"
    # If slurmd dies, the node lives on, as a real one would.
    node_slurmd "$i" &
    sleep infinity &
    wait
}

node_slurmd() # INDEX
{
    environment_clean slurmd -D -N "n$1" >>"$dir/log/slurmd-n$1.out" 2>&1
}

node_network() # INDEX HEAD-NETWORK
{
    echo "n$1" >/proc/sys/kernel/hostname &&
        ip link set lo up &&
        ip link add eth0 type veth peer name "n$1" netns "$2" &&
        ip addr add "$(node_address "$1")/16" dev eth0 &&
        ip link set eth0 up &&
        nsenter --net="$2" ip link set "n$1" master br0 up
}

node_mounts()
{
    mount -t sysfs "$id" /sys &&
        { [ ! -d /dev/shm ] || node_private /dev/shm 1777; } &&
        node_private /run 755 && node_munge &&
        node_private /tmp 1777 &&
        mount -t proc proc /proc
}

# The place where programs look for munge leads to the sandbox's, unless /run is
# the machine's own.
node_munge()
{
    grep -qs " /run .* - tmpfs $id " /proc/self/mountinfo || return 0
    mkdir -p /run/munge && ln -sf "$dir/run/munge.sock" \
        /run/munge/munge.socket.2
}

# A directory of the node's own, but for what is shared of it: a descriptor
# still leads to a shared directory once the new mount covers it.
node_private() # DIR MODE
{
    local path fd
    local -A open=()

    while read -r path; do
        case $path in
        "$1") return 0 ;; # shared as a whole
        "$1"/*) exec {fd}<"$path" && open[$path]=$fd ;;
        esac
    done <"$dir/run/shared"
    mount -t tmpfs -o "mode=$2" "$id" "$1" || return
    for path in "${!open[@]}"; do
        fd=${open[$path]}
        mkdir -p "$path" &&
            mount --no-canonicalize --rbind "/proc/self/fd/$fd" "$path" ||
            return
        exec {fd}<&-
    done
}
