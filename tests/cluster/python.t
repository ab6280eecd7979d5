#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# python.t - the lines of README.md for Python, as they stand there: a job that
# is preempted or reaches its time limit resumes; what the notice file does when
# a job is cancelled and when slurmstepd is killed
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
# shellcheck source=tests/lib/cluster.sh
. "$top/tests/lib/cluster.sh"
type -P python3 >/dev/null || skip_all "python3 is missing"
cluster_up -N2 --cpus 4 --gpus 0
cd "$cluster_share" || exit

# ---- programs

# The indented block of README.md behind "In Python:".
awk '/In Python:$/ { on = 1; next }
    on && /^[^ ]/ { exit }
    on { sub(/^    /, ""); print }' "$top/README.md" >readme
mapfile -t parts < <(grep -n '^#' readme | cut -d : -f 1)
is "README.md has two parts: one to begin with, one for each training step" \
    "${#parts[@]}" 2
once=$(sed "${parts[1]},\$d" readme)
always=$(sed -n "${parts[1]},\$p" readme)
like "which looks at the notice" "$always" 'DT_NOTICE'

# program NAME ONCE ALWAYS: a training loop of these lines
program()
{
    cat >"$1" <<END_PROGRAM
import multiprocessing, time
$2
def save():
    with open("step.new", "w") as file:
        file.write(str(step))
    os.replace("step.new", "step")

# a process that this one starts can be ended by SIGTERM
def wait(up):
    up.set()
    time.sleep(1000)
fork = multiprocessing.get_context("fork")
up = fork.Event()
child = fork.Process(target=wait, args=(up,))
child.start()
up.wait()
child.terminate()
child.join()
step = int(open("step").read()) if os.path.exists("step") else 0
log = open("log", "a", buffering=1)
print("start", step, file=log)
while not os.path.exists("enough"):
    time.sleep(0.02)
    step += 1
    print("step", step, file=log)
    ${3//$'\n'/$'\n    '}
print("finished", file=log)
END_PROGRAM
}
program as-it-stands "$once" "$always"
program no-handler 'import os, sys' "$always"
program no-look "$once" ''
for name in as-it-stands no-handler no-look; do
    ok "$name is Python" python3 -m py_compile "$name"
done

# ---- jobs

submit() # NAME PROGRAM SBATCH-ARG...: in a folder NAME, its log is out; sets job
{
    mkdir "$1"
    cat >"$1/script" <<END_SCRIPT
#!/bin/bash
#SBATCH --dt-requeue
[ ! -e ../$1.limit ] || [ "\$SLURM_RESTART_COUNT" ] ||
    scontrol update JobId="\$SLURM_JOB_ID" EndTime=now+30
srun python3 ../$2
END_SCRIPT
    job=$(sb sbatch --parsable --partition=low --chdir="$cluster_share/$1" \
        --output="$cluster_share/$1/out" "${@:3}" "$1/script")
}
under_way() # NAME RUN: has the RUNth start taken some steps?
{
    [ -e "$1/log" ] && awk -v run="$2" '$1 == "start" { n++ }
        n == run && $1 == "step" && ++steps >= 3 { found = 1 }
        END { exit !found }' "$1/log"
}
ended() # JOB
{
    local state
    state=$(sb squeue -h --states=all -j "$1" -o %T) &&
        [[ $state =~ ^(COMPLETED|FAILED|CANCELLED|TIMEOUT|PREEMPTED)$ ]]
}
gone() # JOB: no slurmstepd of it is left on its node
{
    ! compgen -G "$cluster_dir/spool/n?/n?_$1.*" >/dev/null
}
starts() # NAME: the steps at which it started, and those before
{
    awk '$1 == "start" { printf "%s%s", sep, $2 == last ? "ok" : $2
        sep = " " } $1 == "step" { last = $2 }' last=0 "$1/log"
}

# ---- preempted, and out of time

submit pushed as-it-stands -w n0 --exclusive
pushed=$job
touch limited.limit plain.limit
submit limited as-it-stands -w n1 -t 10
limited=$job
submit plain no-handler -w n1 -t 10
plain=$job
for run in 1 2 3; do
    ok "start $run takes steps" wait_for 30 under_way pushed "$run"
    sb srun -p high --exclusive -w n0 true 2>&1
done
ok "the fourth start takes steps, too" wait_for 30 under_way pushed 4
touch pushed/enough
ok "and ends" wait_for 30 ended "$pushed"
is "a preempted job resumes each time at the training step where it left" \
    "$(starts pushed)" "ok ok ok ok"
is "and finishes once" "$(grep -c finished pushed/log)" 1
is "the cause is counted" \
    "$(sb squeue -h -t all -j "$pushed" -o %k)" dt-requeue:preempt=3

for name in limited plain; do
    ok "$name: it leaves before its time is over" \
        wait_for 60 under_way "$name" 2
done
sb scontrol update JobId="$limited" TimeLimit=60
sb scontrol update JobId="$plain" TimeLimit=60
touch limited/enough plain/enough
wait_for 30 ended "$limited"
wait_for 30 ended "$plain"
is "at its time limit, a job resumes where it left" "$(starts limited)" \
    "ok ok"
is "so does one that does not handle SIGTERM" "$(starts plain)" "ok ok"

# ---- a program that lets SIGTERM end it

submit lost no-handler -w n0 --exclusive
wait_for 30 under_way lost 1
sb srun -p high --exclusive -w n0 true 2>&1
wait_for 30 under_way lost 2
touch lost/enough
ok "SIGTERM ends a program that does not handle it: the log says so" \
    wait_for 30 grep -q '^dt: note: SIGTERM ended a task' lost/out
wait_for 30 ended "$job"

# ---- cancelled

submit cancelled as-it-stands -w n0
cancelled=$job
submit deaf no-look -w n0
deaf=$job
for name in cancelled deaf; do
    wait_for 30 under_way "$name" 1
done
sb scancel "$cancelled" "$deaf"
for name in cancelled deaf; do
    ok "$name: scancel ends it" wait_for 30 gone "${!name}"
    wait_for 30 ended "${!name}"
    is "and it is not requeued" \
        "$(sb squeue -h -t all -j "${!name}" -o %T)" CANCELLED
    is "it ran once" "$(grep -c start "$name/log")" 1
done
ok "a cancelled job has saved" test -s cancelled/step

# ---- slurmstepd is killed

notices() # on n0, of this cluster
{
    # shellcheck disable=SC2016 # for the inner shell
    sb srun -Q -w n0 sh -c \
        'ls /run/slurm-dt/*/dt-notice.*."$1".* /dev/shm/dt-notice.*."$1".* \
            2>/dev/null' sh "$cluster_name"
}
no_notices()
{
    [ -z "$(notices)" ]
}
cluster_name=$(sb scontrol show config | sed -n 's/^ClusterName *= //p')
ok "no notice file is left by all of these" wait_for 10 no_notices
submit killed as-it-stands -w n0
wait_for 30 under_way killed 1
like "a running step has one" "$(notices)" "dt-notice\.$job\."
stepd=$(sb srun -Q -w n0 --overlap --jobid="$job" pgrep -f \
    "slurmstepd: \[$job.0\]")
echo "# slurmstepd is $stepd"
sb srun -Q -w n0 --overlap --jobid="$job" pkill -KILL -f "slurmstepd: \[$job.0\]"
touch killed/enough
ok "its tasks can look at it to their end" wait_for 30 \
    grep -q finished killed/log
ok "and then it is removed" wait_for 30 no_notices
sb scancel "$job"

if [ "$tap_failed" -ne 0 ]; then
    for name in pushed limited plain lost cancelled deaf killed; do
        tap_show "log of $name" "$(grep -Ev '^step' "$name/log" "$name/out")"
    done
fi
done_testing
