#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# dt-requeue.t - whose job it requeues, and as whom, with commands in place of
# Slurm's

top=$(cd "$(dirname "$0")/../../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
tool=${DT_BUILD:-$top/build}/tools/dt-requeue
[ -x "$tool" ] || skip_all "not built: $tool"

tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
chmod 755 "$tmp" && mkdir "$tmp/bin" && cd "$tmp" || exit 1
# COMMAND: does it fail this time? Its errors are those that the test has listed.
cat >bin/fails <<'END'
#!/bin/bash
errors=${0%/*}/../told/errors.$1
read -r line 2>/dev/null <"$errors" && [ "$line" ] || exit 1
sed -i 1d "$errors"
[ "$line" != warning ] || { echo "$1: warning: something" && exit 1; }
echo "$line"
END
cat >bin/scontrol <<'END'
#!/bin/sh
"${0%/*}/fails" "$2" >&2 && exit 1
case $2 in
config) printf 'Configuration data\nClusterName             = c\n'
    echo "PreemptType             = ${PREEMPT:-preempt/partition_prio}"
    echo "MaxBatchRequeue         = 5"
    echo "JobRequeue              = ${REQUEUES:-1}" ;;
partition) echo "PartitionName=p GraceTime=30 PreemptMode=${MODE:-REQUEUE}" ;;
*) echo "$*" >>"${0%/*}/../told/scontrol" ;;
esac
END
cat >bin/sinfo <<'END'
#!/bin/sh
"${0%/*}/fails" sinfo >&2 && exit 1
node=$(head -n 1 "${0%/*}/../told/nodes" 2>/dev/null) &&
    sed -i 1d "${0%/*}/../told/nodes"
echo "n0 ${node:-${NODE:-idle none}}"
END
# Each field as wide as asked for.
cat >bin/squeue <<'END'
#!/bin/bash
LC_ALL=C
"${0%/*}/fails" squeue >&2 && exit 1
[ ! "$(env | grep ^SQUEUE)" ] || exit 1
declare -A value=([JobID]=17 [ArrayJobID]=17 [ArrayTaskID]=N/A [State]=${STATE:-RUNNING}
    [Reason]=None [Partition]=p [NumNodes]=1 [NodeList]=n0 [BatchHost]=n0
    [RestartCnt]=${RESTARTS:-0} [Requeue]=${REQUEUE:-1} [BatchFlag]=${BATCH:-1}
    [UserID]=${OWNER//[!0-9]/} [UserName]=${OWNER%(*} [StartTime]=1000
    [PreemptTime]=${PREEMPTED:-N/A} [Comment]=${COMMENT:-(null)})
while [ "$1" != --Format ]; do shift; done
IFS=,
for field in $2; do
    printf "%-${field#*:}.${field#*:}s" "${value[${field%:*}]}"
done
echo
END
cat >bin/srun <<'END'
#!/bin/sh
cd "${0%/*}/../told" && exec 3>by && cd "$OLDPWD" || exit
id -u >&3 && id -G >&3 && pwd >&3 && env | grep SECRET >&3
echo 1
END
chmod 755 bin/*
install -m 755 "$tool" bin/dt-requeue
mkdir -m 777 told
told=$tmp/told/by
export PATH=$tmp/bin:$PATH

requeue() # OWNER CMD ARG...: the last are dt-requeue, or run it
{
    rm -f "$told"
    SECRET=x OWNER=$1 timeout -k 5 60 "${@:2}" 2>&1
}
notified='job 17 is notified; it is requeued when its script ends'

is 'one notifies a job of his own' \
    "$(requeue "me($(id -u))" dt-requeue 17)" "$notified"
is 'by a step of his own' "$(head -n 1 "$told")" "$(id -u)"

as=()
[ "$(id -u)" -ne 0 ] ||
    as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
for how in '' --now --hold; do
    is "one leaves a job of another user's alone${how:+, $how}" \
        "$(requeue 'root(0)' "${as[@]}" dt-requeue ${how:+"$how"} 17; echo "$?")" \
        $'dt-requeue: job 17: is root\'s, not yours\n1'
    ok 'and does not touch it' test ! -e "$told"
done
is 'a job whose script has ended is not requeued at once' \
    "$(STATE=COMPLETING requeue "me($(id -u))" dt-requeue --now 17; echo "$?")" \
    $'dt-requeue: job 17: is just ending: squeue shows soon whether it runs again\n1'

user=$(getent passwd 65534 | cut -d: -f1)
if [ "$(id -u)" -eq 0 ] && [ "$user" ]; then
    is "root notifies anybody's job" \
        "$(requeue "$user(65534)" dt-requeue 17)" "$notified"
    is "by a step of the owner's, without root's variables" "$(cat "$told")" \
        "65534"$'\n'"$(id -G "$user")"$'\n/'
    is 'an owner whom this machine does not know' \
        "$(requeue 'x(54321)' dt-requeue 17; echo "$?")" \
        $'dt-requeue: job 17: root cannot become its owner, uid 54321\n1'
else
    ok "root notifies anybody's job # SKIP needs root, and a user 65534" true
fi

# ---- what Slurm's commands answer

errors() # COMMAND LINE...: what it says before it answers
{
    printf '%s\n' "${@:2}" >"told/errors.$1"
}
errors squeue \
    'slurm_load_jobs error: Rate limit exceeded, please retry momentarily' \
    'slurm_load_jobs error: Unable to contact slurm controller (connect failure)'
is 'slurmctld is busy: it is asked again' \
    "$(requeue "me($(id -u))" dt-requeue 17)" "$notified"
errors squeue 'slurm_load_jobs error: Invalid job id specified'
is 'an answer is final' "$(requeue "me($(id -u))" dt-requeue 17)" \
    'dt-requeue: job 17: Slurm says: Invalid job id specified'
errors squeue warning
is 'a warning is not taken for an answer' \
    "$(requeue "me($(id -u))" dt-requeue 17)" "$notified"
is "the user's settings of squeue do not count" \
    "$(SQUEUE_PARTITION=q SQUEUE_STATES=PD \
        requeue "me($(id -u))" dt-requeue 17)" "$notified"

# ---- when the script has ended

# ended STATUS GRACE: prints what the log and scontrol get
ended()
{
    rm -f told/scontrol
    requeue "me($(id -u))" dt-requeue _ended 17 "$1" "${RESTARTS:-0}" \
        9,9,9,9,0 no-record 1 "$2"
    cat told/scontrol 2>/dev/null
}
asked=$((75 << 8)) never=$((93 << 8))
update='update JobId=17'
counted="$update Comment=dt-requeue:preempt=1"
soon="$update StartTime=now+2"
again='dt: requeued (1 of 9): it was preempted'
is 'preempted, and Slurm does not requeue it: we do' \
    "$(PREEMPTED=1001 ended "$asked" 0)" "$again
$counted
requeue 17
$soon"
is 'Slurm requeues what ends within its grace time: we count' \
    "$(PREEMPTED=1001 ended "$asked" 1)" "$again
$counted"
is 'and allow it' "$(REQUEUE=0 PREEMPTED=1001 ended "$asked" 1)" "$again
$counted Requeue=1"
is 'it was an earlier run that was preempted: we requeue' \
    "$(PREEMPTED=999 ended "$asked" 1)" \
    "dt: requeued (1 of 9): the program asked for it
$update Comment=dt-requeue:asked=1
requeue 17
$soon"
is 'the partition cancels what it preempts: we requeue' \
    "$(MODE=CANCEL PREEMPTED=1001 ended "$asked" 1)" "$again
$counted
requeue 17
$soon"
is 'Slurm would requeue it once more' \
    "$(BATCH=4 PREEMPTED=1001 ended "$asked" 1)" "$again
$counted"
is 'Slurm would hold it, as it has requeued it so often: we requeue' \
    "$(BATCH=5 PREEMPTED=1001 ended "$asked" 1)" "$again
$counted
requeue 17
$soon"
is 'the rule of preempt/qos is not known: we requeue' \
    "$(PREEMPT=preempt/qos PREEMPTED=1001 ended "$asked" 1)" "$again
$counted
requeue 17
$soon"
for status in 0 "$never"; do
    is "status $status: Slurm must not requeue it" \
        "$(ended "$status" 1)" "$update Requeue=0"
    is 'nor if it was preempted' \
        "$(PREEMPTED=1001 ended "$status" 1)" "$update Requeue=0"
    is 'where Slurm does not, it stays as it is' \
        "$(PREEMPTED=1001 ended "$status" 0)" ''
    RESTARTS=1 requeue "me($(id -u))" dt-requeue _ended 17 "$status" 0 \
        9,9,9,9,0 no-record 1 1
    ok 'also where Slurm has requeued it meanwhile' test ! -e told/scontrol
done
for state in SIGNALING STOPPED; do
    is "$state: the job runs, and Slurm requeues it" \
        "$(STATE=$state PREEMPTED=1001 ended "$asked" 1)" "$again
$counted"
    is 'or must not' "$(STATE=$state PREEMPTED=1001 ended 0 1)" \
        "$update Requeue=0"
done
is 'Slurm has ended it: it does not run again' \
    "$(STATE=COMPLETING PREEMPTED=1001 ended "$asked" 1)" ''
is 'as often as it may: Slurm must not do so again' \
    "$(COMMENT=dt-requeue:asked=9,on=n0 RESTARTS=9 PREEMPTED=1001 \
        ended "$asked" 1)" \
    "dt: not requeued: it was preempted, and --dt-requeue allows that 9 times
$update Comment=dt-requeue:asked=9 Requeue=0"

# ---- when Slurm has requeued it already

# requeued: prints what scontrol gets
requeued()
{
    rm -f told/scontrol
    RESTARTS=1 COMMENT=dt-requeue:on=n0 requeue "me($(id -u))" \
        dt-requeue _ended 17 "$asked" 0 9,9,9,9,0 no-record 1 1
    cat told/scontrol
}
busy='error: Unable to contact slurm controller (connect failure)'
errors sinfo "$busy" "$busy"
is 'a node has failed, and a busy Slurm says so in the end' \
    "$(NODE='down test' requeued)" \
    "$update Comment=dt-requeue:nodefail=1,bad=n0*1,on=n0
$soon"
printf '%s\n' 'mix test' 'mix test' >told/nodes
is 'also where sinfo shows it as mixed for a moment' \
    "$(NODE='down test' requeued)" \
    "$update Comment=dt-requeue:nodefail=1,bad=n0*1,on=n0
$soon"
rm told/nodes
is 'a node that works has not failed, though it has a reason' \
    "$(NODE='mix to be cleaned' requeued)" \
    "$update Comment=dt-requeue:preempt=1,on=n0
$soon"
errors partition "$busy" "$busy"
is 'no node has failed, and the partition preempts: so does that' \
    "$(NODE='mix none' requeued)" "$update Comment=dt-requeue:preempt=1,on=n0
$soon"
is 'else it was by hand' "$(MODE=OFF requeued)" \
    "$update Comment=dt-requeue:hand=1,on=n0"

# ---- --no-requeue

started() # REQUEUE RESTARTS: prints what the log gets
{
    REQUEUE=$1 RESTARTS=$2 requeue "me($(id -u))" dt-requeue _started 17 \
        "$2" 9,9,9,9,0
}
is '--dt-requeue counts, not --no-requeue: the log says so' "$(started 0 0)" \
    'dt: note: the job has --no-requeue and --dt-requeue: the latter counts, '\
'and it may be requeued'
is 'once' "$(started 0 1)" ''
is 'not without --no-requeue' "$(started 1 0)" ''
is "nor where that is the cluster's default" \
    "$(REQUEUES=0 started 0 0)" ''
done_testing
