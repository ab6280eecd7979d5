#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# names.t - the files of a job while another user takes names, its environment
# lies, its tasks have a /tmp and a /dev/shm of their own, and its processes
# write into slurmd's log
set -u
cd "$(dirname "$0")/../.." || exit
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
# shellcheck source=tests/lib/cluster.sh
. tests/lib/cluster.sh
SB_TIMEOUT=50
[ "$EUID" -eq 0 ] || skip_all "needs root, for jobs of several users"

build=${DT_BUILD:-$cluster_top/build}
cat >"$cluster_share/epilog" <<'END_EPILOG'
#!/bin/sh
rm -rf "/run/slurm-dt/$SLURM_JOB_UID"/dt-*."$SLURM_JOB_ID".*
END_EPILOG
chmod 755 "$cluster_share/epilog"
echo "Epilog=$cluster_share/epilog" >"$cluster_share/conf"
others_may_read || skip_all "nobody may not read $DT_PREFIX"
cluster_up -N2 --cpus 4 --gpus 0 --conf "$cluster_share/conf"
mode=$(sb "$dt_sandbox" status | sed -n 's/^mode *//p')
[ "$mode" = namespaces ] || skip_all "needs nodes in namespaces"
cluster=$(sb scontrol show config | sed -n 's/^ClusterName *= //p')
user=65534 stranger=65533
out=$cluster_share/out
mkdir -m 777 "$out" && cd "$out" || exit
users() # CMD ARG...: in the sandbox
{
    sb setpriv --reuid="$user" --regid="$user" --clear-groups "$@"
}
in_node() # INDEX CMD ARG...
{
    nsenter -t "$(<"$cluster_dir/run/n$1")" -m -n -u -p "${@:2}"
}
ended() # JOB...
{
    local job left
    for job; do
        left=$(sb squeue -h -j "$job" 2>/dev/null) && [ -z "$left" ] || return 1
    done
}
files() # INDEX: of jobs
{
    in_node "$1" find /run/slurm-dt /dev/shm -name 'dt-*' ! -user "$stranger"
}
no_files()
{
    [ -z "$(files 0)$(files 1)" ]
}

# asks: a task asks for the requeue, and the script does not care.
cat >asks <<'END_ASKS'
#!/bin/bash
srun --dt-requeue sh -c '[ "$SLURM_RESTART_COUNT" ] || exit 75' 2>/dev/null
echo "run ${SLURM_RESTART_COUNT:-0} goes on"
END_ASKS
# waits: its first run lasts until the notice comes.
cat >waits <<'END_WAITS'
#!/bin/bash
[ -z "${SLURM_RESTART_COUNT-}" ] || exit 0
srun --dt-ckpt=here sh -c 'echo listening
    while [ "$(head -c 1 "$DT_NOTICE" | od -An -tu1 | tr -d " ")" = 0 ]; do
        sleep 0.1
    done
    echo "told: $(tail -c +2 "$DT_NOTICE" | tr -d "\0")"'
exit 1
END_WAITS
chmod 755 asks waits
requeued='run 0 goes on
dt: requeued (1 of 100): the program asked for it
run 1 goes on'

# ---- names that a stranger takes

# shellcheck disable=SC2016 # for the inner shell
in_node 0 setpriv --reuid="$stranger" --regid="$stranger" --clear-groups \
    bash -c 'mkdir "/dev/shm/slurm-dt-$1" && cd /dev/shm || exit
        for ((i = 1; i <= 2000; i++)); do
            : >"dt-requeue.$2.$i.n0"
            : >"dt-requeue.$i.n0.$2.0123456789abcdef"
        done' - "$user" "$cluster"
is 'a stranger has taken 4000 names' \
    "$(in_node 0 find /dev/shm -user "$stranger" -type f | wc -l)" 4000
taken=$(users sbatch --parsable -w n0 --open-mode=append -o taken asks)
told=$(users sbatch --parsable -w n0 --open-mode=append -o told waits)

# shellcheck disable=SC2016 # for the task
is 'directories of the user, in those of root' \
    "$(users srun -Q -w n0 -n1 --dt-ckpt=here sh -c 'cd /
        for dir in /run/slurm-dt /dev/shm/slurm-dt; do
            stat -c "%n %a %u" "$dir" "$dir/$(id -u)"
        done
        stat -c "%a %u" "$DT_NOTICE"')" \
"/run/slurm-dt 755 0
/run/slurm-dt/$user 700 $user
/dev/shm/slurm-dt 755 0
/dev/shm/slurm-dt/$user 700 $user
600 $user"
like 'a stranger does not look into them' \
    "$(in_node 0 setpriv --reuid="$stranger" --regid="$stranger" \
        --clear-groups env LC_ALL=C ls "/run/slurm-dt/$user" 2>&1)" 'denied'

wait_for 30 grep -q listening told
is "root notifies another user's job" "$(sb dt-requeue --reason noon "$told")" \
    "job $told is notified; it is requeued when its script ends"
wait_for 60 ended "$taken" "$told"
is 'the job is requeued all the same' "$(grep -E '^(run|dt:)' taken)" "$requeued"
is 'and the other one by root' "$(grep -E '^(told|dt:)' told)" \
'told: noon
dt: requeued: it was requested: noon'
ok 'no file is left' wait_for 10 no_files

# ---- a directory that is not as it should be

in_node 1 rm -rf /run/slurm-dt
in_node 1 mkdir -m 700 /run/slurm-dt "/run/slurm-dt/$user" /run/elsewhere
in_node 1 chown "$stranger" /run/slurm-dt
# shellcheck disable=SC2016 # for the inner shell
in_node 1 setpriv --reuid="$stranger" --regid="$stranger" --clear-groups \
    bash -c 'cd /dev/shm || exit
        for ((i = 1; i <= 2000; i++)); do : >"dt-requeue.$i.n1.$1.0"; done' \
    - "$cluster"
taken=$(users sbatch --parsable -w n1 --open-mode=append -o fallback asks)
wait_for 60 ended "$taken"
is 'refused, and the job is requeued without it' \
    "$(grep -E '^(run|dt:)' fallback)" "$requeued"
log=$cluster_dir/log/slurmd-n1.log
like 'a line in the log says so' "$(cat "$log")" \
    "dt: note: /run/slurm-dt must be a directory of root's that nobody else"
in_node 1 rm -rf /run/slurm-dt
in_node 1 mkdir -m 755 /run/slurm-dt
in_node 1 chown "$user" /run/elsewhere
in_node 1 ln -s /run/elsewhere "/run/slurm-dt/$user"
# shellcheck disable=SC2016 # for the task
like 'nor is a link followed' \
    "$(users srun -Q -w n1 -n1 --dt-ckpt=here sh -c 'echo "$DT_NOTICE"')" \
    "^/dev/shm/dt-notice\.[0-9]+\.n1\.$cluster\.0\.[0-9a-f]{16}$"
in_node 1 rm "/run/slurm-dt/$user"

# ---- tasks with a /tmp and a /dev/shm of their own

if [ -x "$build/tests/cluster/pmix-step" ]; then
    cp "$build/tests/cluster/pmix-step" "$cluster_share/program"
    chmod 755 "$cluster_share/program"
    # shellcheck disable=SC2016 # for the task
    sb srun -Q -N2 -n2 --dt-pmix --dt-ckpt=here unshare -m sh -c '
        exec 3<"$1" 4<"$2" && cd / &&
            mount -t tmpfs own /tmp && mount -t tmpfs own /dev/shm &&
            mkdir -p "$2" && # where munge of the sandbox is
            mount --no-canonicalize --bind /proc/self/fd/4 "$2" &&
            head -c 1 "$DT_NOTICE" | od -An -tu1 &&
            test -S "$DT_PMIX_CONTROL" && /proc/self/fd/3 meet' \
        sh "$cluster_share/program" "$cluster_dir" >private 2>&1
    is 'a private /tmp and /dev/shm: exit code' $? 0
    is 'the notice is readable' "$(grep -cx ' *0' private)" 2
    is 'and the ranks connect' "$(grep -c ' of 2 on ' private)" 2
    [ "$tap_failed" -eq 0 ] || tap_show 'it says' "$(cat private)"
else
    ok 'a private /tmp and /dev/shm # SKIP tests/cluster/pmix-step is not built' \
        true
fi

# ---- what ends the job removes what slurmstepd could not

job=$(users sbatch --parsable -w n0 -o killed --no-requeue --wrap \
    'srun --dt-ckpt=here sh -c "echo up; sleep 1000"')
wait_for 20 test -e killed
wait_for 20 grep -q up killed
like 'a file of the job' "$(files 0)" "dt-notice\.$job\.n0\.$cluster\.0\."
# shellcheck disable=SC2016 # for the inner shell
in_node 0 sh -c 'kill -KILL $(pgrep -f "$1")' sh "slurmstepd: \[$job\."
sb scancel "$job"
ok 'slurmstepd is killed: the Epilog removes it' wait_for 30 no_files

# ---- an environment that lies

mkdir -m 777 victim && in_node 0 mkdir -m 777 /dev/shm/dt-notice.x \
    /dev/shm/dt-requeue.x
echo precious >victim/file
# shellcheck disable=SC2016 # for the task
users env SLURM_CLUSTER_NAME="x/../../..$PWD/victim/f" SLURM_JOB_USER=x \
    srun -Q -w n0 -n1 --dt-ckpt=here \
    --export="ALL,SLURM_CLUSTER_NAME=x/../../..$PWD/victim/f,SLURM_JOB_ID=1" \
    sh -c 'echo "$DT_NOTICE"; ls "$1"; rm "$DT_NOTICE"
        ln -s "$1/file" "$DT_NOTICE"' sh "$PWD/victim" >lies 2>&1
like 'the folder, the job and the node are what they are' "$(head -n 1 lies)" \
    "^/run/slurm-dt/$user/dt-notice\.[0-9]+\.n0\.[A-Za-z0-9_-]+\.0\.[0-9a-f]{16}$"
is 'nothing is made where the lie leads' "$(sed 1d lies)" file
is 'and nothing removed' "$(cat victim/file)" precious
ok 'but for the name in the folder' wait_for 10 test -z "$(files 0 |
    grep 'dt-notice.[0-9]')"
in_node 0 rmdir /dev/shm/dt-notice.x /dev/shm/dt-requeue.x

# ---- many arguments

# shellcheck disable=SC2016,SC2046 # for the task; numbers
is '70000 arguments' "$(sb srun -Q -w n0 -n1 --dt-pmix sh -c 'echo $#' sh \
    $(seq 70000) 2>&1)" 70000

# ---- slurmd's log

cat >"$cluster_share/liar" <<END_LIAR
#!/usr/bin/perl
use POSIX;
exit if @ARGV;
pipe(my \$in, my \$out);
if (fork) { close \$out; sysread(\$in, my \$none, 1); exit }
setsid;
close \$out;
open(my \$slurmstepd, '+<&=', 0);
syswrite(\$slurmstepd, "ready\n");
syswrite(\$slurmstepd, "say x\nlaunch task 9.9 request from UID:0\e[2J");
syswrite(\$slurmstepd, 'say ' . 'long' x 5000);
syswrite(\$slurmstepd, "say line \$_") for 1 .. 300;
while (sysread(\$slurmstepd, my \$any, 65536)) {}
syswrite(\$slurmstepd, "bye");
END_LIAR
chmod 755 "$cluster_share/liar"
echo "$(cat "$cluster_dir/etc/plugstack.conf") pmixd=$cluster_share/liar" \
    >"$cluster_dir/etc/plugstack.conf"
log=$cluster_dir/log/slurmd-n0.log
users srun -Q -w n0 -n1 --dt-pmix true 2>said
is 'a daemon that says anything: exit code' $? 0
wait_for 10 grep -q 'further lines' "$log"
is 'no line is forged' "$(grep -ac '^launch task 9.9' "$log")" 0
is 'it is escaped' "$(grep -acF \
    'dt: x\x0alaunch task 9.9 request from UID:0\x1b[2J' "$log")" 1
is 'no control character is left' \
    "$(LC_ALL=C grep -acP '[\x01-\x08\x0b-\x1f\x7f-\x9f]' "$log")" 0
is 'no line is longer than others' \
    "$(awk 'length > 1200 && /longlong/' "$log" | wc -l)" 0
is 'at most a hundred of them' "$(grep -ac 'error: dt: ' "$log")" 101

# ---- Slurm's own private /tmp and /dev/shm

# Before slurmd, in a node. Slurm binds the file of a namespace, which Linux
# allows for a younger one only, and some number them by processor: one is used.
mkdir "$cluster_share/bin"
cat >"$cluster_share/bin/slurmd" <<END_SLURMD
#!/bin/bash
if [ "\$1" != --inside ]; then
    first=\$(taskset -cp \$\$ | sed 's/.*: //; s/[-,].*//')
    exec taskset -c "\$first" unshare -m --propagation private \
        "\$0" --inside "\$@"
fi
shift
mkdir /run/container && printf '%s\n' AutoBasePath=true \
    BasePath=/run/container >/run/container.conf &&
    mv /run/container.conf "\${SLURM_CONF%/*}/job_container.conf" || exit
cp "$cluster_share/program" /run/program
exec "$(type -P slurmd)" "\$@"
END_SLURMD
chmod 755 "$cluster_share/bin/slurmd"
printf '%s\n' JobContainerType=job_container/tmpfs PrologFlags=Contain \
    >"$cluster_share/conf"
by_slurm()
{
    local path=$PATH

    dts down --dir "$cluster_dir" >/dev/null 2>&1
    PATH=$cluster_share/bin:$PATH
    cluster_up -N2 --cpus 4 --gpus 0 --conf "$cluster_share/conf"
    PATH=$path
    # munge of the sandbox is in /tmp
    echo "$(cat "$cluster_dir/etc/plugstack.conf") auth=native" \
        >"$cluster_dir/etc/plugstack.conf"
    # shellcheck disable=SC2016 # for the task
    sb srun -Q -N2 -n2 --dt-pmix --dt-ckpt=here sh -c 'echo "own: $(ls /tmp /dev/shm | wc -w)"
        head -c 1 "$DT_NOTICE" | od -An -tu1
        test -S "$DT_PMIX_CONTROL" && exec /run/program meet' \
        >by-slurm 2>&1
    is 'job_container/tmpfs: exit code' $? 0
    is 'the notice is readable' "$(grep -cx ' *0' by-slurm)" 2
    is 'and the ranks connect' "$(grep -c ' of 2 on ' by-slurm)" 2
    is 'their /tmp and /dev/shm are private' "$(grep -cx 'own: 2' by-slurm)" 2
    [ "$tap_failed" -eq 0 ] || tap_show 'it says' \
        "$(cat by-slurm; tail "$cluster_dir/log/slurmd-n0.log")"
}
plugins=$(sb scontrol show config | sed -n 's/^PluginDir *= //p')
if [ -e "$plugins/job_container_tmpfs.so" ] && [ -e "$cluster_share/program" ]
then
    by_slurm
else
    ok 'job_container/tmpfs # SKIP Slurm does not have it' true
fi

done_testing
