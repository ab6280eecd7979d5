#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# sandbox.t - dt-sandbox: a cluster comes up, works, and leaves nothing

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
# shellcheck source=tests/lib/cluster.sh
. tests/lib/cluster.sh

status() # CMD ARG...: print its exit status
{
    "$@" >/dev/null 2>&1
    echo $?
}

# Print what is left of any sandbox below $cluster_share: processes, mounts.
# The pattern comes by stdin, or grep would find itself.
left()
{
    local files=(/proc/[0-9]*/{environ,cmdline,mountinfo})

    grep -lsaF -f - "${files[@]}" <<<"$cluster_share/"
    grep -F "$cluster_share/" /proc/mounts
    [ ! -e "$cluster_dir" ] || ls -la "$cluster_dir"
}

tasks_run() # COUNT
{
    [ "$(pids_of '[^ ]*/sleep 987' | wc -l)" -ge "$1" ]
}

# --- the command line

is "no command is a usage error" "$(status dts)" 64
is "so is an unknown one" "$(status dts upp)" 64
is "so is an unknown option" "$(status dts up --gpu=4)" 64
[ -e /dev/nvidia0 ] ||
    like "real GPUs that are not there are a usage error, which says so" \
        "$(dts up --gpus real 2>&1); $?" 'has no /dev/nvidia0.*;.*64$'
is "--gpus takes a number, or real" "$(status dts up --gpus=all)" 64
is "so are no nodes" "$(status dts up -N 0)" 64
is "so is a command's missing value" "$(status dts status --dir)" 64
is "an option is no value" "$(status dts up --dir --cpus)" 64
is "so is exec without a command" "$(status dts exec)" 64
like "help says what there is" "$(dts --help)" '^  exec CMD ARG'
like "--version" "$(dts --version)" '^dt-sandbox .*[0-9]\.[0-9]'

mkdir "$cluster_dir" && touch "$cluster_dir/precious"
like "a directory with other files is refused" \
    "$(dts up --dir "$cluster_dir" 2>&1)" 'not empty and not a sandbox'
like "also by down" "$(dts down --dir "$cluster_dir" 2>&1)" 'left alone'
ok "and left as it was" test -e "$cluster_dir/precious"
rm -r "$cluster_dir"
ln -s /tmp "$cluster_share/link"
like "a symbolic link is refused" \
    "$(dts up --dir "$cluster_share/link" 2>&1)" 'symbolic link'
like "a long name is refused" \
    "$(dts up --dir "$cluster_share/$(printf 'x%.0s' {1..60})" 2>&1)" 'too long'
other=/root
if [ "$EUID" -eq 0 ]; then
    other=$cluster_share/other
    mkdir "$other" && chown 1 "$other"
fi
like "another user's directory is refused" \
    "$(dts up --dir "$other" 2>&1)" 'belongs to'
is "down of nothing is a success" "$(status dts down --dir "$cluster_dir")" 0
is "status of nothing is none" "$(status dts status --dir "$cluster_dir")" 1
like "exec in nothing says what to do" \
    "$(sb true 2>&1)" 'no sandbox runs in .*dt-sandbox up'

# --- up, and what is in it

echo 'SelectType=select/nonsense' >"$cluster_share/conf"
is "a cluster that does not start is an error" "$(status dts up \
    --dir "$cluster_dir" --conf "$cluster_share/conf")" 1
is "and leaves nothing" "$(left)" ""

cluster_up 2>/dev/null
mode=$(dts status --dir "$cluster_dir" | awk '$1 == "mode" { print $2 }')
is "two nodes are idle" "$(sb sinfo -h -N -p low -o '%N %t')" 'n0 idle
n1 idle'
is "tasks run on both, two each" "$(sb srun -N2 -n4 --ntasks-per-node=2 \
    printenv SLURMD_NODENAME | sort | uniq -c | xargs)" "2 n0 2 n1"
if [ "$mode" = namespaces ]; then
    is "each with its own hostname" "$(sb srun -N2 -n4 hostname |
        sort -u | xargs)" "n0 n1"
    own=({/dev/shm,/run,/tmp}/dt-own.$$)
    sb srun -N1 -w n0 touch "${own[@]}"
    is "and its own /tmp, /dev/shm, /run" "$(sb srun -N1 -w n0 ls "${own[@]}" |
        xargs)$(sb srun -N1 -w n1 ls "${own[@]}" 2>/dev/null)$(ls "${own[@]}" \
        2>/dev/null)" "${own[*]}"
    is "and its own network" \
        "$(sb srun -N1 ls /sys/class/net | xargs)" "eth0 lo"
    [ ! -e /etc/hosts ] || is "nodes know each other by name" \
        "$(sb srun -N1 -w n0 getent hosts n1 | awk '{ print $2 }')" n1
fi
is "all see what is shared" \
    "$(sb srun -N2 -n2 ls -d "$cluster_share/conf" | uniq -c | xargs)" \
    "2 $cluster_share/conf"
is "GPUs are granted" "$(sb srun -N2 -n2 --gpus-per-node=3 \
    printenv CUDA_VISIBLE_DEVICES | uniq -c | xargs)" "2 0,1,2"
# shellcheck disable=SC2016 # for the inner shell
is "and withheld" "$(sb srun -N1 --gpus-per-node=1 \
    sh -c 'echo $CUDA_VISIBLE_DEVICES')" "0"
ok "PMIx is the default" sb srun -N2 -n2 printenv PMIX_RANK

if [ "$EUID" -ne 0 ]; then
    is "no other user can read the sandbox's key or socket" \
        "$(stat -c %a "$cluster_dir")" 700
fi

# --- exec

# shellcheck disable=SC2016 # for the inner shell
is "exec passes arguments unchanged" \
    "$(sb sh -c 'printf "<%s>" "$@"' sh 'a  b' '' '*' -x --dir)" \
    '<a  b><><*><-x><--dir>'
is "and stdin" "$(echo hello | sb cat)" hello
is "and the working directory" "$(cd "$cluster_share" && sb pwd)" \
    "$cluster_share"
is "and the exit status" "$(status sb sh -c 'exit 42')" 42
is "and signals" "$(status sb sh -c 'kill -TERM $$')" 143
# shellcheck disable=SC2016 # for the inner shell
is "and the environment, but not a surrounding job's" "$(
    SLURM_JOB_ID=7 SLURM_CLUSTER_NAME=other FOO=bar sb sh -c \
        'echo ${SLURM_JOB_ID-none} $FOO')" "none bar"
like "exec of what is not there" "$(sb no-such-program 2>&1)" 'not found'
is "down from the inside is refused" "$(status sb "$dt_sandbox" down)" 1
ok "status without --dir means the surrounding one" sb "$dt_sandbox" status

if [ "$mode" = namespaces ]; then
    kill -KILL "$(cat "$cluster_dir/run/n1")"
    wait_for 5 test -s "$cluster_dir/run/failed"
    like "status reports a node that lost its power" \
        "$(dts status --dir "$cluster_dir")" 'failed +n1 ended'
    dts down --dir "$cluster_dir" 2>/dev/null
    cluster_up 2>/dev/null
fi

# --- two at once

like "a second up in the same directory is refused" \
    "$(dts up --dir "$cluster_dir" 2>&1)" 'runs in .* already'
second=$cluster_share/second
dts up --dir "$second" -N 1 --cpus 3 --gpus 0 --plugin none 2>/dev/null &
dts up --dir "$second" -N 1 --cpus 3 --gpus 0 --plugin none 2>/dev/null &
wait -n; first=$?; wait -n
is "of two at the same time one wins" "$((first + $?))" 1
is "a sandbox beside another" "$(dts exec --dir "$second" \
    sinfo -h -N -p low -o '%N %t %c %G')" "n0 idle 3 (null)"
sb sbatch -o /dev/null --wrap 'sleep 300' >/dev/null
is "they share no jobs" "$(dts exec --dir "$second" squeue -h)" ""
is "list shows both" \
    "$(dts list | awk -v top="$cluster_share/" 'index($4, top) == 1' |
        grep -c ^running)" 2
dts down --dir "$second" 2>/dev/null
ok "the end of one leaves the other" sb srun -N2 true

# --- preemption and requeue

cat >"$cluster_share/low.sh" <<'END'
#!/bin/bash
#SBATCH -p low -N 2 --exclusive --requeue --open-mode=append --mem=100G
srun --ntasks-per-node=1 bash -c '
    trap "echo TERM; exit 75" TERM
    echo start ${SLURM_RESTART_COUNT-0}
    [ "$SLURM_RESTART_COUNT" ] || while :; do sleep 0.1; done'
rc=$?
echo "left with $rc"
[ $rc -ne 75 ] || scontrol requeue "$SLURM_JOB_ID"
END
log=$cluster_share/low.log
in_log() # REGEX COUNT
{
    [ "$(grep -cE "$1" "$log" 2>/dev/null)" -ge "$2" ]
}
sb scancel --user "$(id -un)"
sb sbatch -o "$log" "$cluster_share/low.sh" >/dev/null
ok "a low job runs" wait_for 20 in_log 'start 0' 2
ok "a high job gets its nodes" sb srun -p high -N2 --exclusive true
ok "the low job's tasks got SIGTERM" in_log TERM 2
ok "and time to leave by themselves" in_log 'left with 75' 1
ok "it is requeued and starts again" wait_for 30 in_log 'start 1' 2

# --- down

sb sbatch -N2 -o /dev/null --wrap 'srun sleep 987' >/dev/null
wait_for 20 tasks_run 2
if [ "$mode" = namespaces ]; then
    net=$(readlink "/proc/$(cut -d ' ' -f 1 "$cluster_dir/run/head")/ns/net")
fi
# shellcheck disable=SC2046 # numbers
kill -KILL $(pids_of slurmctld) $(pids_of slurmd | head -n 1) \
    $(pids_of '[^ ]*/sleep 987' | tail -n 1) $(pids_of munged)
is "status reports that the controller has ended" \
    "$(status dts status --dir "$cluster_dir")" 1
ok "down after SIGKILL of daemons and a task" dts down --dir "$cluster_dir"
is "leaves no process, mount or file" "$(left)" ""
if [ "$mode" = namespaces ]; then
    is "nor a namespace" \
        "$(readlink /proc/[0-9]*/ns/net | grep -xF "$net")" ""
fi

cluster_up -N 1 --plugin none 2>/dev/null
timeout 300 "$dt_sandbox" exec --dir "$cluster_dir" srun sleep 987 2>/dev/null &
client=$!
disown
wait_for 20 tasks_run 1
read -r head _ <"$cluster_dir/run/head"
kill -KILL "$head"
wait_for 5 test ! -e "/proc/$head"
is "without its head it does not run" \
    "$(status dts status --dir "$cluster_dir")" 1
ok "down after the head was killed, a job running" \
    dts down --dir "$cluster_dir"
wait_for 5 test ! -e "/proc/$client" # which is ours, not the sandbox's
is "leaves nothing" "$(left)" ""

cluster_up -N 1 --plugin none 2>/dev/null
# shellcheck disable=SC2016 # for the inner shell
like "up from inside one whose files are removed is refused" "$(sb sh -c \
    'rm -r "$2"; "$1" up --plugin none; echo survived' sh "$dt_sandbox" \
    "$cluster_dir" 2>&1 | tr '\n' ' ')" 'leave it first.*survived'
ok "down after its files were removed" dts down --dir "$cluster_dir"
is "leaves nothing" "$(left)" ""

cluster_up -N 1 --plugin none 2>/dev/null
rm -r "$cluster_dir"
cluster_up -N 1 --plugin none 2>/dev/null
is "up after its files were removed ends the old one" \
    "$(pids_of slurmctld | wc -l)" 1
# as if the files had gone and another up had just begun
rm -r "$cluster_dir" && mkdir "$cluster_dir" && : >"$cluster_dir/.dt-sandbox"
ok "down where the marker is another's" dts down --dir "$cluster_dir"
is "leaves nothing" "$(left)" ""

cluster_up -N 1 --plugin none 2>/dev/null
dts down --dir "$cluster_dir" 2>"$cluster_share/down1" &
dts down --dir "$cluster_dir" 2>"$cluster_share/down2" &
wait -n; first=$?; wait -n
is "two down at once succeed" "$((first + $?))" 0
is "and say so" "$(cat "$cluster_share"/down[12] |
    grep -c -e 'is gone$' -e 'nothing to take down$')" 2
is "leaves nothing" "$(left)" ""

cluster_up -N 1 --plugin none 2>/dev/null
read -r head _ <"$cluster_dir/run/head"
"$dt_sandbox" down --dir "$cluster_dir" 2>/dev/null &
down=$!
wait_for 20 test ! -e "/proc/$head"
kill -TERM "$down" 2>/dev/null
wait "$down"
is "down finishes what it has begun, whatever the signal" "$?" 0
is "leaves nothing" "$(left)" ""

echo 'PartitionName=low Nodes=ALL Default=YES GraceTime=7' \
    >"$cluster_share/conf"
cluster_up -N 1 --plugin none --conf "$cluster_share/conf" 2>/dev/null
like "--conf may have a partition of ours" \
    "$(sb scontrol -o show partition low)" ' GraceTime=7 '
ok "the other one stays" sb srun -p high true
dts down --dir "$cluster_dir" 2>/dev/null

plugins=$(dirname "$(find /usr/lib*/ -name select_cons_tres.so | head -n 1)")
mkdir "$cluster_share/plugins"
find "$plugins" -name '*.so' ! -name 'mpi_pmix*' \
    -exec ln -s -t "$cluster_share/plugins" {} +
echo "PluginDir=$cluster_share/plugins" >"$cluster_share/conf"
cluster_up -N 1 --plugin none --conf "$cluster_share/conf"
like "without Slurm's mpi/pmix there is another default, which is said" \
    "$(cat "$cluster_share/up")" 'mpi/pmix is missing: the default .* is none'
ok "and tasks run" sb srun -n2 true
dts down --dir "$cluster_dir" 2>/dev/null

like "what is no plugin is refused" \
    "$(dts up --dir "$cluster_dir" --plugin /etc/passwd 2>&1)" \
    '^dt-sandbox: --plugin /etc/passwd is no SPANK plugin'
echo nonsense >"$cluster_share/conf"
like "so is a line that slurm.conf does not take" "$(dts up \
    --dir "$cluster_dir" --conf "$cluster_share/conf" 2>&1)" 'nonsense'
is "leaves nothing" "$(left)" ""

for seconds in 0.02 0.05 0.1 0.15 0.2 0.3 0.4; do
    # the moment differs from run to run; whatever it is, it is all or nothing
    timeout --preserve-status -s INT -k 120 "$seconds" \
        "$dt_sandbox" up --dir "$cluster_dir" >/dev/null 2>&1 &&
        dts down --dir "$cluster_dir" 2>/dev/null
    is "Ctrl-C after $seconds s leaves nothing" "$(left)" ""
done

if [ "$EUID" -eq 0 ] && unshare -m true 2>/dev/null; then
    # shellcheck disable=SC2016 # for the inner shell
    like "a missing program is named, with its package" \
        "$(unshare -m bash -c 'mount -t tmpfs none /usr/sbin &&
            "$1" up --dir "$2"' bash "$dt_sandbox" "$cluster_dir" 2>&1)" \
        '(ip|slurmctld) is missing.*apt-get install .*(iproute2|slurmctld)'
fi
if [ "$EUID" -eq 0 ]; then
    no_admin=(setpriv --bounding-set -sys_admin --inh-caps -sys_admin)
    like "root without namespaces gets the ordinary mode" \
        "$("${no_admin[@]}" "$dt_sandbox" up --dir "$cluster_dir" 2>&1)" \
        'no namespaces here'
    is "and it works" "$("${no_admin[@]}" "$dt_sandbox" exec --dir \
        "$cluster_dir" srun -N2 -n2 printenv SLURMD_NODENAME | sort | xargs)" \
        "n0 n1"
    dts down --dir "$cluster_dir" 2>/dev/null
    is "and leaves nothing" "$(left)" ""
fi

done_testing
