#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# requeue.t - jobs that go back into the queue: for the right cause, as often
# as they may, by themselves and by hand
set -u
cd "$(dirname "$0")/../.." || exit
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh
# shellcheck source=tests/lib/cluster.sh
. tests/lib/cluster.sh
SB_TIMEOUT=30

cat >"$cluster_share/conf" <<'END_CONF'
PartitionName=short Nodes=ALL PriorityTier=5 PreemptMode=REQUEUE GraceTime=2 MaxTime=INFINITE
PartitionName=long Nodes=ALL PriorityTier=5 PreemptMode=REQUEUE GraceTime=300 MaxTime=INFINITE
ReturnToService=0
SlurmdDebug=debug
END_CONF
cluster_up -N5 --cpus 8 --gpus 0 --conf "$cluster_share/conf"
cluster=$(sb scontrol show config | sed -n 's/^ClusterName *= //p')
out=$cluster_share/out
mkdir -m 777 "$out"
# Since 24.05 Slurm requeues what ends within its grace time.
release=$(slurmctld -V)
release=${release##* }
grace_requeues=
[[ $release == 2[0-3].* || $release == 24.0[0-4].* ]] || grace_requeues=1

# shellcheck disable=SC2016
SLURM_RESTART_COUNT=3 sb sbatch -W -Q -o "$out/count" --dt-requeue \
    --wrap 'echo "${SLURM_RESTART_COUNT-none}"'
is 'a job has not the count of runs of the job that submits it' \
    "$(cat "$out/count")" none

# ---- programs

# codes CODE...: the first run ends with the first of them, and so on.
cat >"$cluster_share/codes" <<'END_CODES'
#!/bin/bash
shift "${SLURM_RESTART_COUNT:-0}"
echo "run ${SLURM_RESTART_COUNT:-0} ends with ${1:-0}"
exit "${1:-0}"
END_CODES
# runs SRUN-ARG...: its first run lasts until something ends it. A task that has
# printed "up" has begun, so that Slurm's signals reach it.
cat >"$cluster_share/runs" <<'END_RUNS'
#!/bin/bash
echo "run ${SLURM_RESTART_COUNT:-0} on $SLURM_JOB_NODELIST"
[ -z "${SLURM_RESTART_COUNT-}" ] || exit 0
srun "$@" sh -c 'echo up; exec sleep 1000'
exit 1 # where a node fails, srun itself may end well
END_RUNS
# stays: its first run does not leave on a notice.
cat >"$cluster_share/stays" <<'END_STAYS'
#!/bin/bash
echo "run ${SLURM_RESTART_COUNT:-0} on $SLURM_JOB_NODELIST"
[ -z "${SLURM_RESTART_COUNT-}" ] || exit 0
srun sh -c 'trap "" TERM; echo up; sleep 1000'
END_STAYS
# leaves CODE...: its first run ends with the first one when Slurm sends SIGTERM,
# the next one by itself.
cat >"$cluster_share/leaves" <<'END_LEAVES'
#!/bin/bash
echo "run ${SLURM_RESTART_COUNT:-0}"
shift "${SLURM_RESTART_COUNT:-0}"
[ -n "${SLURM_RESTART_COUNT-}" ] || srun -N1 -n1 --overlap \
    sh -c 'trap "exit 0" TERM; echo up; while :; do sleep 0.1; done'
exit "${1:-0}"
END_LEAVES
# waits: its first run lasts until the notice comes.
cat >"$cluster_share/waits" <<'END_WAITS'
#!/bin/bash
echo "run ${SLURM_RESTART_COUNT:-0}"
[ -z "${SLURM_RESTART_COUNT-}" ] || exit 0
srun --dt-ckpt=here sh -c 'echo listening
    while [ "$(head -c 1 "$DT_NOTICE" | od -An -tu1 | tr -d " ")" = 0 ]; do
        sleep 0.1
    done
    echo "told: $(tail -c +2 "$DT_NOTICE" | tr -d "\0")"'
exit 1
END_WAITS
# asks: a task asks, and the script does not care.
cat >"$cluster_share/asks" <<'END_ASKS'
#!/bin/bash
srun --dt-requeue sh -c '[ "$SLURM_RESTART_COUNT" ] || exit 75' 2>/dev/null
echo "run ${SLURM_RESTART_COUNT:-0} goes on"
END_ASKS
# refuses: a task says never, and so it is.
cat >"$cluster_share/refuses" <<'END_REFUSES'
#!/bin/bash
srun --dt-requeue=9,error=9 sh -c 'exit 93' 2>/dev/null
exit 75
END_REFUSES
# hears FILE: a task, its child and the child's children say who gets the signal,
# as long as the file is there; FILE.* get longer meanwhile. Slurm's own signal is
# another one.
cat >"$cluster_share/hears" <<'END_HEARS'
#!/bin/bash
trap '' TERM
trap 'echo "leader $SLURM_PROCID: told"' USR1
(
    trap 'echo "child $SLURM_PROCID: told"' USR1
    echo "child $SLURM_PROCID: up"
    while [ -e "$1" ]; do
        echo >>"$1.$SLURM_JOB_ID.$SLURM_PROCID"
        sleep 0.1 || echo "its child $SLURM_PROCID: told"
    done
) &
while kill -0 $! 2>/dev/null; do wait $!; done
END_HEARS
# signalled FILE
cat >"$cluster_share/signalled" <<'END_SIGNALLED'
#!/bin/bash
#SBATCH --dt-notice-signal=USR1
[ -n "${SLURM_RESTART_COUNT-}" ] || srun ./hears "$1"
END_SIGNALLED
# kill/scontrol: ends who runs it.
mkdir "$cluster_share/kill"
cat >"$cluster_share/kill/scontrol" <<'END_KILL'
#!/bin/sh
kill -KILL "$PPID"
END_KILL
chmod 755 "$cluster_share"/[achlrsw]* "$cluster_share/kill/scontrol"

submit() # NAME SBATCH-ARG... SCRIPT ARG...: its log is out/NAME
{
    local name=$1
    shift
    sb sbatch --parsable -o "$out/$name" "$@"
}
has() # NAME LINE-AS-REGEX [COUNT]: the log has so many such lines
{
    [ -e "$out/$1" ] && [ "$(grep -Ec "$2" "$out/$1")" -ge "${3:-1}" ]
}
field() # JOB KEY: what scontrol says of it
{
    sb scontrol show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p" | head -n 1
}
ended() # JOB...: none is in the queue
{
    local job left
    for job; do
        left=$(sb squeue -h -j "$job" 2>/dev/null) && [ -z "$left" ] || return 1
    done
}
left() # NODE JOB: its slurmd has killed the job that ran there
{
    grep -q "completed epilog for jobid $2\$" "$cluster_dir/log/slurmd-$1.log"
}
goes_on() # FILE: all tasks of hears have had time for what should not come
{
    local file
    for file in "$1".*; do
        wait_for 30 grows "$file" $(($(wc -l <"$file") + 10)) || return
    done
}
grows() # FILE LINES: or its job runs no more
{
    local job=${1%.*}
    [ "$(wc -l <"$1")" -ge "$2" ] ||
        [ -z "$(sb squeue -h -t running -j "${job##*.}" 2>/dev/null)" ]
}
at_end() # JOB: its script has ended, and dt-requeue is at work
{
    pgrep -f "dt-requeue _ended $1 " >/dev/null
}
counted() # JOB: that a node failed
{
    [[ $(field "$1" Comment) == *nodefail=1* ]]
}
lines() # NAME: the log without what Slurm itself says
{
    grep -E '^(run|dt:|told|listening)' "$out/$1"
}
cd "$cluster_share" || exit

# ---- everything at once: most take some seconds, as Slurm wants

asked=$(submit asked --dt-requeue=5 codes 75 75 0)
capped=$(submit capped --dt-requeue=1 codes 75 75 0)
failed=$(submit failed --dt-requeue codes 1)
error=$(submit error --dt-requeue=5,error=1 codes 1 1)
never=$(submit never --dt-requeue=5,error=5 codes 93)
plain=$(submit plain codes 75)
task=$(submit task --open-mode=append asks)
refused=$(submit refused refuses)
truncated=$(submit truncated --dt-requeue --open-mode=truncate codes 75 0)
cat >header <<'END_HEADER'
#!/bin/bash
#SBATCH --dt-requeue=1 --comment=mine
echo "run ${SLURM_RESTART_COUNT:-0}"
[ -n "$SLURM_RESTART_COUNT" ] || exit 75
END_HEADER
header=$(submit header header)
killed=$(submit killed --dt-requeue \
    --export="ALL,PATH=$cluster_share/kill:$PATH" codes 75)
# shellcheck disable=SC2016 # for the job
array=$(submit 'array-%a' --dt-requeue --array=1-3%3 --wrap \
    'echo "run ${SLURM_RESTART_COUNT:-0}"
    [ "$SLURM_ARRAY_TASK_ID" != 2 ] || [ "$SLURM_RESTART_COUNT" ] || exit 75')
after=$(submit after -d "afterok:$array" --wrap \
    "cat $out/array-2; echo after")
# shellcheck disable=SC2016 # for the job
variables=$(submit variables --wrap \
    'srun --dt-ckpt=a/b --dt-ckpt-flush=/c --dt-ckpt-interval=10:00 \
        --dt-ckpt-redundancy=rs:4+2 --dt-ckpt-keep=3,every:10 --dt-requeue \
        --export=ALL,MLFLOW_RUN_NAME=mine env
    srun --dt-ckpt=a/b --export=NONE /usr/bin/env' -t 10)
wait_for 25 ended "$asked" "$capped" "$failed" "$error" "$never" "$plain" \
    "$task" "$refused" "$truncated" "$header" "$killed" "$after" \
    "$variables"

is 'exit code 75: again, as often as it asks' "$(lines asked)" \
'run 0 ends with 75
dt: requeued (1 of 5): the program asked for it
run 1 ends with 75
dt: requeued (2 of 5): the program asked for it
run 2 ends with 0'
is 'but no more than allowed' "$(lines capped)" \
'run 0 ends with 75
dt: requeued (1 of 1): the program asked for it
run 1 ends with 75
dt: not requeued: the program asked for it, and --dt-requeue allows that 1 times'
is 'another exit code is a failure' "$(lines failed)" 'run 0 ends with 1'
is 'unless errors are allowed' "$(lines error)" \
'run 0 ends with 1
dt: requeued (1 of 5): it failed
run 1 ends with 1
dt: not requeued: it failed, and --dt-requeue allows that 1 times'
is 'exit code 93: never' "$(lines never)" 'run 0 ends with 93'
is 'a job that did not ask is left alone' "$(lines plain)" \
    'run 0 ends with 75'
is 'srun --dt-requeue: a task asks, whatever the script makes of it' \
    "$(lines task)" \
'run 0 goes on
dt: requeued (1 of 100): the program asked for it
run 1 goes on'
is 'srun --dt-requeue: a task says never' "$(lines refused)" ''
is 'the log that the user wants anew' "$(lines truncated)" 'run 1 ends with 0'
is '#SBATCH --dt-requeue, and the log is kept' "$(lines header)" \
'run 0
dt: requeued (1 of 1): the program asked for it
run 1'
is 'dt-requeue was killed: the log says so' "$(lines killed)" \
"run 0 ends with 75
dt: note: dt-requeue failed: if the job is not in the queue \
now, \`scontrol requeue $killed\` requeues it"
is "the user's comment stays, with the counts" \
    "$(sb squeue -h -t all -j "$header" -o %k)" \
    'mine dt-requeue:asked=1'
is 'an element of an array goes alone' \
    "$(cat "$out"/array-[13])" $'run 0\nrun 0'
is 'what depends on it waits' "$(grep -v slurmstepd "$out/after")" \
'run 0
dt: requeued (1 of 100): the program asked for it
run 1
after'

sb scontrol requeue "$capped" 2>/dev/null

# ---- the variables of the tasks

env=$(grep -E '^(DT_(CKPT|JOB|RUN)|WANDB|MLFLOW)' "$out/variables" |
    grep -v ^DT_JOB_END | sort | uniq -c | tr -s ' ')
is 'the options are variables of the tasks; NONE keeps few' "$env" \
" 2 DT_CKPT=$cluster_share/a/b
 1 DT_CKPT_FLUSH=/c
 1 DT_CKPT_INTERVAL=10:00
 1 DT_CKPT_KEEP=3,every:10
 1 DT_CKPT_REDUNDANCY=rs:4+2
 2 DT_RUN_ID=$variables
 1 MLFLOW_RUN_NAME=mine
 1 WANDB_RESUME=allow
 1 WANDB_RUN_ID=$variables"
end=$(date -d "$(field "$variables" StartTime)" +%s)
is "DT_JOB_END is when the job's time ends" \
    "$(grep ^DT_JOB_END "$out/variables" | uniq)" "DT_JOB_END=$((end + 600))"
is 'no file of a job is left on a node' "$(sb srun -Q -N5 sh -c \
    'ls /dev/shm /run/slurm-dt/*' 2>&1 | grep -E "^dt-.*\.$cluster\.")" ''

# ---- preemption, time limit, scancel, nodes, by hand: all at once again

# Texts of a user's that look like what Slurm prints.
comment=$'mine\n\n   UserId=x(54321) JobState=COMPLETED  é'
hostile=$'x\n   UserId=x(54321) JobState=FAILED Requeue=0 BatchFlag=0\n\nJobId=1'
preempted=$(submit preempted --dt-requeue -p long -w n0 runs)
once=$(submit once --dt-requeue=5,preempt=0 -p long -w n1 --exclusive runs)
saved=$(submit saved --dt-requeue=5 -p long -w n0 leaves 75 0)
finished=$(submit finished --dt-requeue=5 -p long -w n0 leaves 0)
refusing=$(submit refusing --dt-requeue=5 -p long -w n0 leaves 93)
stays=$(submit stays --dt-requeue -p short -w n2 -n8 stays)
timeout=$(submit timeout --dt-requeue -t 1 -w n4 runs)
cancelled=$(submit cancelled --dt-requeue=9,error=9 -w n4 runs)
lost=$(submit lost --dt-requeue -N2 -w n3,n4 -n2 runs)
lost_never=$(submit lost-never --dt-requeue=9,nodefail=0 -w n3 runs)
told=$(submit told -w n4 --open-mode=append -J "$hostile" --comment "$comment" \
    waits)
held=$(submit held -w n4 --open-mode=append waits)
now=$(submit now -w n4 --open-mode=append runs)
deaf=$(submit deaf -w n4 runs)
stubborn=$(submit stubborn --no-requeue -w n4 runs)
for name in preempted saved finished refusing once stays timeout cancelled lost \
    lost-never now deaf stubborn; do
    wait_for 15 has "$name" '^up'
done
wait_for 15 has lost '^up' 2
wait_for 15 has told listening
wait_for 15 has held listening

submit high0 -p high -w n0 --exclusive --wrap 'sleep 1' >/dev/null
submit high2 -p high -w n2 -n8 --wrap 'sleep 1' >/dev/null
submit high1 -p high -w n1 --exclusive --wrap 'sleep 1' >/dev/null
sb scontrol update "JobId=$timeout" EndTime=now+1
sb scancel "$cancelled"
sb scontrol update NodeName=n3 State=down Reason=test
is 'dt-requeue: the job is notified' \
    "$(sb dt-requeue --reason 'at noon' "$told")" \
    "job $told is notified; it is requeued when its script ends"
is 'dt-requeue --hold' "$(sb dt-requeue --hold "$held")" \
    "job $held is notified; it is requeued and held when its script ends"
is 'dt-requeue --now' "$(sb dt-requeue --now "$now")" "job $now is requeued"
refuses() # NAME WANTED-LINE STATUS ARG...
{
    local name=$1 wanted=$2 status=$3 line rc
    shift 3
    line=$(sb dt-requeue "$@" 2>&1)
    rc=$?
    is "dt-requeue: $name" "$line $rc" "dt-requeue: $wanted $status"
}
refuses 'no step to notify' "job $deaf: no step of it can be notified: none has \
--dt-gpus, --dt-ckpt, --dt-requeue or --dt-notice-signal; --now requeues it at once" 1 \
    "$deaf"
refuses 'it must not be requeued' "job $stubborn: must not be requeued: it \
was submitted with --no-requeue; scontrol update JobId=$stubborn Requeue=1 \
allows it" 1 "$stubborn"
refuses 'no such job' 'job 99999: Slurm says: Invalid job id specified' 1 99999
refuses 'it has ended' \
    "job $never: has ended already (FAILED): submit it again" 1 "$never"
refuses 'an array' \
    "job $array: has several elements: name one, as in ${array}_4" 1 "$array"
refuses 'no job' 'which job? There is none around this; see dt-requeue --help' \
    64
refuses 'no number' 'a job is a number, or 123_4 for an element of an array, '\
'not 1x; see dt-requeue --help' 64 1x
refuses 'a reason without a notice' '--now does not notify the job: leave '\
'--reason out; see dt-requeue --help' 64 --now --reason x "$deaf"
wait_for 10 has told requeued
wait_for 10 has held requeued
refuses 'it waits' "job $held: is waiting already" 1 "$held"
is 'and held' "$(field "$held" Priority)" 0
sb scontrol release "$held"
sb scancel "$deaf" "$stubborn"
# Else a node back too early takes the next run for a second copy of the one that
# it is still killing, and drains; and it refuses credentials as old as the kill.
wait_for 20 counted "$lost" && wait_for 20 counted "$lost_never" &&
    wait_for 20 left n3 "$lost" && wait_for 20 left n3 "$lost_never" && sleep 1
sb scontrol update NodeName=n3 State=resume 2>/dev/null
wait_for 60 ended "$preempted" "$saved" "$finished" "$refusing" "$once" "$stays" \
    "$timeout" "$cancelled" "$lost" "$lost_never" "$told" "$held" "$now" ||
    tap_show 'not ended' "$(sb squeue -l; sb sinfo -lR; sb scontrol show job)"

# shellcheck disable=SC2016 # the log has a dollar sign
is 'preempted' "$(lines preempted)" \
'run 0 on n0
dt: requeued (1 of 100): it was preempted
dt: note: SIGTERM ended a task: one that handles it and looks at $DT_NOTICE '\
'can save first
run 1 on n0'
is 'preempted, and left in time with 75: once more' "$(lines saved)" \
'run 0
dt: requeued (1 of 5): it was preempted
run 1'
is 'it has succeeded then' "$(sb squeue -h -t all -j "$saved" -o %T)" COMPLETED
is 'preempted, and done in time: not again' "$(lines finished)" 'run 0'
is 'preempted, and left with 93: not again' "$(lines refusing)" 'run 0'
is 'preempted, and not allowed' "$(lines once)" \
'run 0 on n1
dt: not requeued: it was preempted, and --dt-requeue allows that 0 times'
is 'preempted, and stayed to the end: Slurm requeues, we count' \
    "$(lines stays; field "$stays" Comment)" \
$'run 0 on n2\nrun 1 on n2\ndt-requeue:preempt=1'
like 'at the time limit' "$(lines timeout | tr '\n' ' ')" \
'^run 0 on n4 dt: requeued \(1 of 100\): its time was over (dt: note: SIGTERM ended a task: .*)?run 1 on n4 $'
is 'scancel: never' "$(lines cancelled)" 'run 0 on n4'
is 'a node fails: Slurm requeues, we count' \
    "$(lines lost; field "$lost" Comment)" \
'run 0 on n[3-4]
run 1 on n[3-4]
dt-requeue:nodefail=1,bad=n3*1'
is 'once more than allowed: it does not run' "$(lines lost-never)" \
'run 0 on n3
dt: not run again: Slurm has requeued the job once more than --dt-requeue '\
'allows: a higher nodefail= or preempt= allows more'
is 'notified by dt-requeue' "$(lines told)" \
'run 0
listening
told: at noon
dt: requeued: it was requested: at noon
run 1'
is 'whatever its name, and its comment stays' \
    "$(sb squeue -h -t all -j "$told" -o %k)" "$comment dt-requeue:hand=1"
is 'held by hand' "$(lines held)" \
'run 0
listening
told: 
dt: requeued and held: it was requested
run 1'
is 'at once by hand, and counted' \
    "$(lines now; field "$now" Comment)" \
$'run 0 on n4\nrun 1 on n4\ndt-requeue:hand=1'

if [ "$grace_requeues" ]; then
    is 'a job that has ended does not run again' "$(field "$capped" Requeue)" 0
else
    is 'who requeues a job that has ended may' \
        "$(lines capped | tail -n 1; field "$capped" Comment)" \
        $'run 2 ends with 0\ndt-requeue:asked=1,hand=1'
fi

# ---- nodes that failed twice, slurmctld restarting in the middle

twice=$(submit twice --dt-requeue -w n2,n4 -N2 --comment \
    'dt-requeue:nodefail=1,bad=n0*2,bad=n1*1' codes 75 0)
middle=$(submit middle --dt-requeue --wrap \
    "echo run; [ ! \"\$SLURM_RESTART_COUNT\" ] || exit 0
    touch $out/up; while [ -e $out/up ]; do sleep 0.1; done; exit 75")
wait_for 15 test -e "$out/up"
wait_for 15 has twice requeued
is 'a node that failed twice is left out' "$(field "$twice" ExcNodeList)" n0
sb scontrol shutdown slurmctld
# shellcheck disable=SC2016 # for the inner shell
wait_for 10 sh -c '! "$1" exec --dir "$2" timeout 1 scontrol ping | grep -q UP' \
    sh "$dt_sandbox" "$cluster_dir"
rm "$out/up"
wait_for 15 at_end "$middle" # and slurmctld does not notice
sb slurmctld >/dev/null 2>&1
wait_for 30 has middle '^run' 2
is 'slurmctld restarts in the middle: nothing is lost' "$(lines middle)" \
'run
dt: requeued (1 of 100): the program asked for it
run'
wait_for 15 ended "$middle" "$twice"

# ---- Slurm is still about its signals when the script ends

ending() # JOB...: their scripts have ended
{
    local job
    for job; do
        [ "$(sb squeue -h -j "$job" -o %T)" = COMPLETING ] || return
    done
}
late=$(submit late --dt-requeue=5 -p long -w n0,n1 -N2 leaves 75 0)
late_done=$(submit late-done --dt-requeue=5 -p long -w n0,n1 -N2 leaves 0)
wait_for 15 has late '^up'
wait_for 15 has late-done '^up'
slurmd=$(pids_of '[^ ]*slurmd .*n1')
kill -STOP "$slurmd" # n1 does not answer: it has no task of theirs
submit high4 -p high -w n0 --exclusive --wrap 'sleep 1' >/dev/null
wait_for 7 ending "$late" "$late_done"
kill -CONT "$slurmd"
wait_for 60 ended "$late" "$late_done"
is 'preempted, and a node is slow: once more' "$(lines late)" \
'run 0
dt: requeued (1 of 5): it was preempted
run 1'
is 'preempted, done in time, and a node is slow: not again' \
    "$(lines late-done)" 'run 0'

# ---- a signal for the tasks' own processes only

stay=$cluster_share/stay
touch "$stay"
by_hand=$(submit by-hand -w n0,n1 -N2 -n2 --ntasks-per-node=1 signalled "$stay")
pushed=$(submit pushed --dt-requeue -p long -w n2,n3 -N2 -n2 --exclusive \
    --ntasks-per-node=1 signalled "$stay")
in_time=$(($(date +%s) + 20)) # a tenth of it before that
sb env SLURM_JOB_END_TIME=$in_time SLURM_DT_NOTICE_SIGNAL=sigusr1 \
    srun -w n4 -n2 ./hears "$stay" >"$out/in-time" 2>&1 &
srun=$!
for name in by-hand pushed in-time; do
    wait_for 15 has "$name" '^child .: up' 2
done
submit high3 -p high -w n2 --exclusive --wrap 'sleep 1' >/dev/null
sb dt-requeue "$by_hand" >/dev/null
wait_for 15 has by-hand '^leader .: told' 2
sb dt-requeue "$by_hand" >/dev/null
wait_for 15 has pushed '^leader .: told' 2
wait_for 30 has in-time '^leader .: told' 2
goes_on "$stay"
rm "$stay" "$stay".*
wait "$srun"
heard() # NAME
{
    grep -E '^(leader|child|its)' "$out/$1" | sort
}
leaders=$'child 0: up\nchild 1: up\nleader 0: told\nleader 1: told'
is '#SBATCH --dt-notice-signal: notified by dt-requeue twice, signalled once' \
    "$(heard by-hand)" "$leaders"
is 'preempted: signalled' "$(heard pushed)" "$leaders"
is 'SLURM_DT_NOTICE_SIGNAL: signalled before the time is over' \
    "$(heard in-time)" "$leaders"
wait_for 30 ended "$by_hand" "$pushed"
# shellcheck disable=SC2016 # for the inner shell
is 'no watching process is left' "$(sb sh -c '
    for pid in $(pgrep -f "dt-requeue [_]watch"); do
        ! grep -q "dt-notice\..*\.$1\." "/proc/$pid/environ" || echo "$pid"
    done' sh "$cluster")" ''

# ---- bad values

fails() # OPTION WANTED
{
    like "$1 is refused" "$(sb srun -n1 "$1" true 2>&1)" "error: dt: $1: expected $2"
}
fails --dt-requeue=x '\[<max>\]\[,preempt=<n>\]'
fails --dt-ckpt-keep=0 '<n>, <n>,every:<k>'
fails --dt-ckpt-interval=soon 'auto, a time'
fails --dt-ckpt-redundancy=raid 'none, partner, xor:<k>'
fails --dt-notice-signal=FOO 'a signal that a program can handle, as USR1 or'
fails --dt-notice-signal=KILL 'a signal that a program can handle, as USR1 or'
sb srun -n1 --dt-notice-signal=FOO true 2>/dev/null
is 'and srun says so by its exit code' $? 255
idle()
{
    [ "$(sb sinfo -h -p high -o '%D %T')" = '5 idle' ]
}
ok 'all nodes are in service' wait_for 20 idle

# ---- the signal where Slurm knows a step's processes by their cgroup

# Before slurmd, in a node.
mkdir "$cluster_share/bin"
cat >"$cluster_share/bin/slurmd" <<END_SLURMD
#!/bin/bash
mount -t tmpfs -o mode=755 cgroup /sys/fs/cgroup &&
    mkdir /sys/fs/cgroup/freezer &&
    mount -t cgroup -o freezer cgroup /sys/fs/cgroup/freezer || exit
exec "$(type -P slurmd)" "\$@"
END_SLURMD
chmod 755 "$cluster_share/bin/slurmd"
with_freezer() # COMMAND ARG...: with the host's at /mnt, and nobody else sees it
{
    unshare --mount --propagation private \
        sh -c 'mount -t cgroup -o freezer x /mnt && exec "$@"' sh "$@"
}
by_cgroup()
{
    local path=$PATH
    # the hierarchy is the machine's: one test at a time
    exec 9</sys/fs/cgroup
    flock -w $((30 * patience)) 9
    dts down --dir "$cluster_dir" >/dev/null 2>&1
    echo ProctrackType=proctrack/cgroup >"$cluster_share/conf"
    PATH=$cluster_share/bin:$PATH
    cluster_up -N2 --cpus 2 --gpus 0 --conf "$cluster_share/conf"
    PATH=$path
    touch "$stay"
    sb srun -N2 -n2 --dt-notice-signal=USR1 ./hears "$stay" \
        >"$out/by-cgroup" 2>&1 &
    srun=$!
    wait_for 15 has by-cgroup '^child .: up' 2
    sb scancel -s TERM "$(sb squeue -h -s -o %i)"
    wait_for 15 has by-cgroup '^leader .: told' 2
    goes_on "$stay"
    rm "$stay" "$stay".*
    wait "$srun"
    is "Slurm's SIGTERM, by cgroup: signalled" "$(heard by-cgroup)" "$leaders"
    dts down --dir "$cluster_dir" >/dev/null 2>&1
    # Slurm leaves its directories
    with_freezer find /mnt/slurm_n0 /mnt/slurm_n1 -depth -type d \
        -exec rmdir {} \; 2>/dev/null
    exec 9<&-
}
if [ "$EUID" -eq 0 ] && with_freezer true 2>/dev/null; then
    by_cgroup
else
    ok "Slurm's SIGTERM, by cgroup # SKIP no cgroup v1 to mount" true
fi

if [ "$tap_failed" -ne 0 ]; then
    for log in "$out"/*; do # without environments
        tap_show "log of ${log##*/}" "$(grep -Ev '^[A-Za-z_0-9]+=' "$log")"
    done
fi
done_testing
