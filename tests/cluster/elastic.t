#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# elastic.t - --dt-elastic: a training that loses ranks and nodes goes on with
# the others, counts each sample once, and ends where too few are left; the
# values of the option, and what it asks of Slurm

top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
# shellcheck source=tests/lib/cluster.sh
. "$top/tests/lib/cluster.sh"
# shellcheck source=tests/lib/training.sh
. "$top/tests/lib/training.sh"
# shellcheck source=tests/lib/disturb.sh
. "$top/tests/lib/disturb.sh"

train=$DT_PREFIX/libexec/slurm-dt/examples/fashion_elastic
[ -x "$train" ] || skip_all "$train is not there: built without OpenBLAS"
SECONDS=0
SB_TIMEOUT=90

# A cluster that ends a step with its first bad rank, unless srun says otherwise.
echo KillOnBadExit=1 >"$cluster_share/conf"
training_up -N 6 --cpus 2 --gpus 0 --conf "$cluster_share/conf"

# What a step of two ranks on each of some nodes prints, in the file out.
begin() # NODES OPTION...
{
    : >out
    sb srun -N "$1" --ntasks-per-node=2 --job-name=elastic "${@:2}" \
        "$train" "$epochs" 128 >out 2>&1 &
    step=$!
    wait_for 60 has out '^epoch 1 ' || give_up out
    job=$(sb squeue -h --name=elastic --states=running -o %A)
}

finish()
{
    wait "$step"
    rc=$?
}

# The process of a rank of this sandbox
pid_of() # RANK
{
    grep -lszF "$cluster_dir" /proc/[0-9]*/environ |
        xargs -r grep -lszx "SLURM_JOB_ID=$job" |
        xargs -r grep -lszx "PMIX_RANK=$1" | cut -d/ -f3
}

trained() # FILE
{
    sed -n 's/^weights [0-9a-f]* after [0-9]* steps, //p' "$1"
}

# How many epochs leave this machine four seconds for what happens to them
epochs=3
begin 4 --dt-elastic=4
from=${EPOCHREALTIME/./}
finish
epochs=$((3 + 2 * 4000000 / (${EPOCHREALTIME/./} - from)))
samples=$((epochs * 60000))
echo "# $epochs epochs"

# ---- ranks ----

begin 4 --dt-elastic=4
finish
is 'undisturbed: the exit code' "$rc" 0
is '  the ranks and the samples' "$(trained out)" "$samples samples, on 8 ranks"
weights=$(digest_of out)

begin 4 --dt-elastic=4
victim=$(pid_of 3)
ok 'a rank is stopped' kill -STOP "$victim"
sleep 2 # the others wait for it meanwhile; it is slow, not lost
kill -CONT "$victim"
finish
is '  the exit code' "$rc" 0
is '  the training has lost nothing' "$(digest_of out)" "$weights"

begin 4 --dt-elastic=4
ok 'a rank is killed' kill -KILL "$(pid_of 3)"
finish
is '  each sample counts once' "$(trained out)" "$samples samples, on 7 ranks"
is "  srun's exit code is that of the killed rank" "$rc" 137
is '  all others have ended with 0' \
    "$(grep -oE 'task.*: (Killed|Exited .*)' out)" 'task 3: Killed'

# ---- nodes ----

# As root a node ends at once. Else its processes end one after the other, and
# its slurmstepd may still have reported that its ranks were killed.
ends_with() # NAME CODE WANTED
{
    if [ "$EUID" -ne 0 ] && [ "$2" = 137 ]; then
        ok "$1: or 137, of a node whose slurmstepd ended last" true
    else
        is "$1" "$2" "$3"
    fi
}

# The batch script goes on, too.
mkdir batch
cat >batch/script <<END
#!/bin/bash
#SBATCH -N 4 --ntasks-per-node=2 --dt-elastic=4
srun $train $epochs 128
echo "srun ended with \$?"
srun -N 3 -n 3 true
echo "a later step ended with \$?"
srun -N 3 -n 3 --dt-elastic=none true
echo "one with none ended with \$?"
END
export DT_HEARTBEAT=5
submit_script batch
wait_for 60 has batch/log '^epoch 1 ' || give_up batch/log
sbatch_job=$job
ok 'a node of a batch job is lost' cut_power last
ok '  the job ends' wait_for 60 ended "$sbatch_job"
is '  as COMPLETED' "$(state_of "$sbatch_job")" COMPLETED
is '  each sample counts once' "$(trained batch/log)" \
    "$samples samples, on 6 ranks"
ends_with '  srun ends with 0: the ranks of a lost node have no exit code' \
    "$(sed -n 's/^srun ended with //p' batch/log)" 0
is '  the script may start another step, which has the option, too' \
    "$(grep -E '^(a later step|one with none) ended' batch/log)" \
    'a later step ended with 1
one with none ended with 0'
like '  with no fewer tasks than it says' "$(<batch/log)" \
    '--dt-elastic=4: expected at most the 3 tasks of this step, or none'

epochs=$((epochs + 2)) samples=$((samples + 2 * 60000))
begin 4 --dt-elastic=4
ok 'the first node of a step is lost' cut_power first
ok '  the others go on' wait_for 60 has out '^epoch .*, on 6 ranks'
ok '  and another one' cut_power last
finish
is '  each sample counts once' "$(trained out)" "$samples samples, on 4 ranks"
ends_with '  the exit code' "$rc" 0

begin 3 --dt-elastic=6
ok 'more are lost than the job can do without' cut_power last
finish
ends_with '  the exit code asks for a requeue' "$rc" 75
is '  which is that of all that are left' \
    "$(grep -o 'Exited with .*' out | sort -u)" 'Exited with exit code 75'
is '  and each says why' \
    "$(grep -c '4 ranks are left, fewer than the minimum of 6' out)" 4
unset DT_HEARTBEAT

# ---- values ----

refuses() # NAME CODE TEXT COMMAND...
{
    local said rc=0
    said=$(sb "${@:4}" 2>&1) || rc=$?
    is "$1: the exit code" "$rc" "$2"
    is "$1: one line" "$(grep -F 'dt: ' <<<"$said" | sed 's/.*: dt: //')" "$3"
}

says() # OPTION...; what srun says of the plugin
{
    sb srun -N 2 -n 2 "$@" true 2>&1 | sed -n 's/^srun: dt: //p'
}

expected='expected a whole number from 1 to the tasks of the step, none or help'
refuses 'no rank' 255 "--dt-elastic=0: $expected" \
    srun -n1 --dt-elastic=0 true
refuses 'a variable' 1 "SLURM_DT_ELASTIC=2x: $expected" \
    env SLURM_DT_ELASTIC=2x srun -n1 true
refuses 'more than the step has' 1 \
    '--dt-elastic=3: expected at most the 2 tasks of this step, or none' \
    srun -N2 -n2 --dt-elastic=3 true
for server in slurm none; do
    refuses "--dt-pmix=$server" 255 "--dt-elastic needs slurm-dt's PMIx server: \
leave --dt-pmix=$server out, or add --dt-elastic=none" \
        srun -n1 --dt-elastic=1 --dt-pmix=$server true
done
like 'help' "$(sb srun --dt-elastic=help)" '^--dt-elastic=<min>, for programs'

vars_of() # COMMAND...; in a task
{
    # shellcheck disable=SC2016
    sb "$@" sh -c 'echo "${DT_ELASTIC-unset}" $(env |
        grep -E "^(SLURM|SBATCH)_(KILL_BAD_EXIT|NO_KILL|WAIT)=")'
}
is 'a task gets it, and none of what is meant for srun' \
    "$(vars_of srun -n1 --dt-elastic 1)" 1
is 'with none it gets nothing' "$(SLURM_DT_ELASTIC=1 vars_of \
    srun -n1 --dt-elastic=none)" unset
is "nor what it was before, as that is another step's" \
    "$(DT_ELASTIC=7 vars_of srun -n1 --dt-pmix)" unset
is 'salloc' "$(vars_of salloc -Q -N2 -n2 --dt-elastic=2 srun -Q -n2 |
    sort -u)" 2

# ---- what it asks of Slurm ----

note='note: --dt-elastic=1 with'
is 'nothing to say' "$(says --dt-elastic=1)" ''
is '-K of the user counts' "$(says --dt-elastic=1 -K)" \
    "$note --kill-on-bad-exit=1: the first rank that is lost ends the step"
is 'and a variable' "$(SLURM_WAIT=9 says --dt-elastic=1)" "$note --wait=9: so \
many seconds after the first rank has ended, the step ends"
is 'and --no-kill=off' "$(says --dt-elastic=1 --no-kill=off)" \
    "$note --no-kill=off: the first node that is lost ends the step"
like 'what it sets is in the verbose output' "$(says -v --dt-elastic=1)" \
    'srun takes --kill-on-bad-exit=0, --no-kill and --wait=0'
is 'without it, nothing is set' "$(sb srun -v -n1 sh -c true --dt-elastic=1 \
    2>&1 | grep -E ': (kill-on-bad-exit|no-kill|wait) ')" ''

# A framework's ranks end together, but not in an elastic step.
# shellcheck disable=SC2016
sb srun -n 2 --dt-elastic=1 --dt-rendezvous=torch sh -c '
    [ "$RANK" = 0 ] || exit 3
    until [ -e go ]; do sleep 0.1; done
    echo rank 0 ended' >out 2>&1 &
step=$!
ok 'a rank of a framework fails' wait_for 60 has out 'task 1: Exited'
touch go
finish
is '  the other one goes on' "$(grep -c '^rank 0 ended' out)" 1
is '  the exit code' "$rc" 3

echo "# $SECONDS seconds"
done_testing
