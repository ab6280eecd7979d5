#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# pmix-safe.t - the PMIx server of a step under attack by other users, or when
# its start fails: the step ends soon with the reason, or continues, and nothing
# is left
set -u
cd "$(dirname "$0")/../.." || exit
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
# shellcheck source=tests/lib/cluster.sh
. tests/lib/cluster.sh
SB_TIMEOUT=50

build=${DT_BUILD:-$cluster_top/build}
[ -x "$build/tests/cluster/pmix-step" ] ||
    skip_all "$build/tests/cluster/pmix-step is not there: make"
program=$cluster_share/pmix-step
cp "$build/tests/cluster/pmix-step" "$program" && chmod 755 "$program"
echo MpiDefault=none >"$cluster_share/none.conf"
cluster_up -N4 --gpus 2 --conf "$cluster_share/none.conf"
mode=$(sb "$dt_sandbox" status | sed -n 's/^mode *//p')
plugstack=$cluster_dir/etc/plugstack.conf
with_plugin=$(cat "$plugstack")
pmixd=$DT_PREFIX/libexec/slurm-dt/dt-pmixd
said=$cluster_share/said

step() # SRUN-ARG...: what it prints in $said, its exit code
{
    sb srun -Q --ntasks-per-node=2 --gpus-per-node=2 --dt-gpus "$@" \
        >"$said" 2>&1
}
met()
{
    grep -c ' of [0-9]* on ' "$said"
}
# At most one line of ours for each node.
once_each()
{
    ! grep -o 'dt: node n[0-9]*' "$said" | sort | uniq -d | grep .
}
# A daemon that is not notified waits until its time is over, and says so.
notified()
{
    ! grep -E 'in time|(after|within) [0-9]+ s|timed out' "$said"
}
ends() # NAME LINE-AS-REGEX SRUN-ARG...
{
    local name=$1 line=$2

    shift 2
    step "$@" "$program" meet
    is "$name: exit code" $? 1
    like "$name: what it says" "$(cat "$said")" "error: dt: node .*$line"
    ok "$name: no node prints more than a line" once_each
    ok "$name: no node has waited for its time limit" notified
}

# What is left of steps: processes and files of the servers.
left()
{
    local pid

    for pid in $(pgrep -f "^$pmixd"); do
        ! grep -qs " $cluster_share " "/proc/$pid/mountinfo" || echo "$pid"
    done
    if [ "$mode" = namespaces ]; then
        for i in 0 1 2 3; do
            find "/proc/$(<"$cluster_dir/run/n$i")/root/"{tmp,dev/shm,run} \
                -xdev -name 'dt-*' ! -name "${cluster_share##*/}"
        done
    fi 2>/dev/null
}
nothing_left()
{
    [ ! "$(left)" ]
}

# ---- a daemon that dies, or is another program

wrapper() # CODE: to be run in place of the daemon
{
    {
        echo '#!/bin/bash'
        echo "[ \$# -eq 0 ] || exec $pmixd \"\$@\""
        cat <<<"$1"
        echo "exec $pmixd"
    } >"$cluster_share/wrapper"
    chmod 755 "$cluster_share/wrapper"
    echo "$with_plugin pmixd=$cluster_share/wrapper" >"$plugstack"
}

wrapper 'exit 0'
ends 'it exits at once' '(ended without a message|does not listen)' -N2
wrapper 'exit 3'
ends 'it fails at once' 'cannot be run' -N2
wrapper 'echo garbage >&0; exit 0'
ends 'it says nonsense' '(ended without a message|does not listen)' -N2
wrapper 'kill -KILL $$'
ends 'it is killed at once' 'cannot be run' -N2
echo "$with_plugin pmixd=$cluster_share/absent" >"$plugstack"
ends 'it is not there' 'absent: No such file' -N2

echo "$with_plugin" >"$plugstack"
wait_for 20 nothing_left
ok 'nothing is left of these' nothing_left

if [ "$mode" != namespaces ]; then
    ok 'other users, and nodes in trouble # SKIP needs root' true
else

    in_node() # INDEX CMD ARG...
    {
        local pid

        pid=$(<"$cluster_dir/run/n$1")
        shift
        nsenter -t "$pid" -m -n -u -p "$@"
    }

    # Ranks that wait in DIR until they are told to go.
    cat >"$cluster_share/later.sh" <<END
#!/bin/bash
env -0 | grep -zE '^(PMIX|SLURM_STEP|DT_PMIX)' >\$1/env.\$SLURM_PROCID
touch \$1/there.\$SLURM_PROCID
until [ -e \$1/go ]; do sleep 0.1; done
exec $program meet
END
    chmod 755 "$cluster_share/later.sh"
    mkdir "$cluster_share/one" "$cluster_share/two"
    all_there() # DIR
    {
        [ -e "$1/there.0" ] && [ -e "$1/there.3" ]
    }
    stranger() # NODE DIR CMD ARG...: another user, with all that rank 0 knows
    {
        local node=$1 env

        mapfile -d '' env <"$2/env.0"
        shift 2
        in_node "$node" timeout -k 1 60 setpriv --reuid=65534 --regid=65534 \
            --clear-groups env -i "${env[@]}" "$@" 2>&1
    }

    # ---- a stranger's credential for a place that is not his

    # If it got as far as PMIx 4.2, that would lock itself up when the rank comes.
    sb srun -Q -w n2,n3 -N2 -n4 --gpus-per-node=2 --dt-gpus \
        "$cluster_share/later.sh" "$cluster_share/one" \
        >"$cluster_share/one/said" 2>&1 &
    attacked=$!
    wait_for 20 all_there "$cluster_share/one"
    is 'another user, with a credential of his own, is no rank' \
        "$(stranger 2 "$cluster_share/one" PMIX_RANK=0 "$program" meet |
            grep -c ' of ')" 0
    touch "$cluster_share/one/go"

    # ---- /run

    # in some containers a node has that of the machine, which is not for us
    own_run()
    {
        [ "$(in_node 1 stat -f -c %T /run)" = tmpfs ] &&
            [ "$(in_node 1 stat -c %d /run)" != "$(stat -c %d /run)" ]
    }
    full_run()
    {
        own_run && in_node 1 mount -o remount,size=64k /run &&
            in_node 1 dd if=/dev/zero of=/run/fill bs=4k count=32 2>&1 |
            grep -q 'No space left'
    }
    own_run || { echo "Bail out! /run of node n1 is not its own"; exit 1; }
    ok 'the /run of a node is full' full_run
    ends 'a full /run' '(No space left|cannot be made|can be written)' \
        -N1 -w n1
    in_node 1 rm /run/fill
    in_node 1 mount -o remount,size=50% /run
    in_node 1 mount -o remount,ro /run
    ends 'a /run that is read only' 'Read-only file system' -N1 -w n1
    in_node 1 mount -o remount,rw /run
    in_node 1 mount -o remount,noexec /run
    step -N1 -w n1 "$program" meet
    is 'a /run where nothing can be run' "$(met)" 2
    in_node 1 mount -o remount,exec /run

    # ---- strangers on the node

    step -N2 -w n0,n1 "$cluster_share/later.sh" "$cluster_share/two" &
    waiting=$!
    wait_for 20 all_there "$cluster_share/two"
    for times in once twice; do
        is "another user, as rank 0, $times" \
            "$(stranger 0 "$cluster_share/two" PMIX_MCA_psec=native \
                PMIX_RANK=0 "$program" meet | grep -o PMIx_Init)" PMIx_Init
    done
    control=$(tr '\0' '\n' <"$cluster_share/two/env.0" |
        sed -n 's/^DT_PMIX_CONTROL=//p')
    like 'he cannot look into the directory of the server' \
        "$(stranger 0 "$cluster_share/two" LC_ALL=C /bin/ls "${control%/*}")" 'Permission denied'
    like 'nor reach its socket' \
        "$(stranger 0 "$cluster_share/two" LC_ALL=C /bin/ls "$control")" 'Permission denied'
    touch "$cluster_share/two/go"
    wait "$waiting"
    is 'the step continues: exit code' $? 0
    is 'with all its ranks' "$(met)" 4

    # ---- strangers at all ports that job and step could determine

    # shellcheck disable=SC2016 # perl's variables
    squat='use Socket; for (20000 .. 31999) {
        socket(my $s, AF_INET6, SOCK_STREAM, 0) or die;
        push @s, $s if bind($s, pack_sockaddr_in6($_, "\0" x 16)) &&
            listen($s, 5) }
        open(my $f, ">", $ARGV[0]); print $f scalar @s; close $f; sleep 120'
    touch "$cluster_share/squat" && chmod 666 "$cluster_share/squat"
    in_node 0 bash -c 'ulimit -n 13000; exec "$@"' bash setpriv --reuid=65534 \
        --regid=65534 --clear-groups perl -e "$squat" "$cluster_share/squat" &
    squatter=$!
    ok 'a stranger listens at all these ports' \
        wait_for 20 test -s "$cluster_share/squat"
    step -N2 -w n0,n1 --export=NONE "$program" meet
    is '--export=NONE: the servers find each other' "$(met)" 4
    kill "$squatter" && wait "$squatter" 2>/dev/null

    # ---- the attacked step

    wait "$attacked"
    attacked=$?
    cp "$cluster_share/one/said" "$said"
    is 'the attacked step continues' "$attacked:$(met)" 0:4

    # ---- killed during the rendezvous

    # The second node comes last, so the daemon of the third has told where it
    # is and waits.
    wrapper "[ \$(</proc/sys/kernel/hostname) != n1 ] ||
        until [ -e $cluster_share/come ]; do sleep 0.1; done"
    sb srun -Q -w n0,n1,n2 -n3 --gpus-per-node=2 --dt-gpus "$program" meet \
        >"$said" 2>&1 &
    waiting=$!
    runs()
    {
        third=$(pgrep -f "^$pmixd\$" --ns "$(<"$cluster_dir/run/n2")" \
            --nslist pid)
    }
    wait_for 10 runs
    sleep 1
    kill -KILL "$third"
    touch "$cluster_share/come"
    wait "$waiting"
    is 'killed while it waits for the others: exit code' $? 1
    is 'each node prints a line' "$(grep -c 'error: dt: node' "$said")" 3
    is 'two of them which node was lost' \
        "$(grep -c 'the daemon of node n2 was lost' "$said")" 2
    ok 'notified, and also the late one' notified
    wrapper "[ \$(</proc/sys/kernel/hostname) != n1 ] || sleep 3"
    DT_HEARTBEAT=2 step -N2 -w n0,n1 "$program" meet
    is 'a short heartbeat and a late node' "$(met)" 4
    echo "$with_plugin" >"$plugstack"
fi

# ---- many in a row

cat >"$cluster_share/many.sh" <<END
#!/bin/bash
for ((i = 0; i < 20; i++)); do
    srun -Q -N4 -n8 --gpus-per-node=2 --dt-gpus $program meet
done
END
chmod 755 "$cluster_share/many.sh"
descriptors()
{
    local pid

    for pid in $(pgrep -x slurmd); do
        ! grep -qsz "^DT_SANDBOX_DIR=$cluster_dir$" "/proc/$pid/environ" ||
            find "/proc/$pid/fd" -type l
    done 2>/dev/null | wc -l
}
same_descriptors()
{
    [ "$(descriptors)" -le "$before" ]
}
before=$(descriptors)
sb salloc -Q -N4 --ntasks-per-node=2 --gpus-per-node=2 \
    "$cluster_share/many.sh" >"$said" 2>&1
is '20 steps in a row' "$(met)" 160
ok 'leave no process and no file' wait_for 10 nothing_left
ok 'and no descriptor in slurmd' wait_for 10 same_descriptors
idle()
{
    [ "$(sb sinfo -h -p low -o '%D %T')" = '4 idle' ]
}
ok 'no node was harmed' wait_for 20 idle

done_testing
