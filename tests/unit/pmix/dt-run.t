#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# dt-run.t - the PMIx server, and the launcher around it

top=$(cd "$(dirname "$0")/../../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
build=${DT_BUILD:-$top/build}
client=$build/tests/unit/pmix/client
[ -x "$build/pmix/dt-run" ] || skip_all "not built: $build/pmix/dt-run"
[ -x "$client" ] || skip_all "not built: $client"

tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
export TMPDIR=$tmp/tmp DT_RUN_TEST=$tmp
mkdir "$TMPDIR"

run() { timeout -k 5 320 "$build/pmix/dt-run" -t 300 "$@"; }
code() { "$@" >/dev/null 2>&1 </dev/null; echo $?; }
try() { ok "$1" run "${@:2}"; } # NAME ARG...
# what earlier runs have left: files, and processes that have our mark
left()
{
    find "$TMPDIR" -mindepth 1
    env -u DT_RUN_TEST grep -lsz "^DT_RUN_TEST=$tmp\$" /proc/[0-9]*/environ
}

# Until a condition holds, but not for ever. eventually COMMAND...
eventually()
{
    local i
    for ((i = 0; i < 5000; i++)); do
        "$@" && return
        sleep 0.02
    done
    return 1
}
gone() { ! kill -0 "$1" 2>/dev/null; }
empty() { [ -z "$(left)" ]; }
lines() { [ -f "$1" ] && [ "$(wc -l <"$1")" -eq "$2" ]; }

# --- what ranks can do ------------------------------------------------------

is "four ranks connect" "$(run -n 4 "$client" hello | sort)" \
"rank 0 of 4
rank 1 of 4
rank 2 of 4
rank 3 of 4"
try "put, fence with data, get" -n 4 "$client" modex
try "put, fence without data, get" -n 4 "$client" direct
try "a fence of some ranks" -n 4 "$client" subset
try "several fences at once" -n 6 "$client" concurrent
try "the attributes of the job" -n 3 "$client" keys
try "publish, lookup, unpublish" -n 4 "$client" board
try "a rank's own event" -n 4 "$client" notify
try "groups with an id" -n 4 "$client" group
try "connect and disconnect" -n 4 "$client" together
try "spawn is refused, queries are answered" -n 2 "$client" others
try "one rank" -n 1 "$client" modex
for mode in modex direct subset concurrent; do
    PMIX_MCA_pmix_server_fence_localonly_opt=0 \
        try "$mode, when each fence goes through the host" -n 4 "$client" $mode
done

# --- where they run ---------------------------------------------------------

cpus() { run "$@" sh -c 'sed -n "s/^Cpus_allowed_list:.//p" /proc/self/status'; }
mine=$(sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status)
mapfile -t both < <(cpus -n 2)
if [ "$(nproc)" -ge 2 ]; then
    ok "two ranks have different CPUs (${both[*]})" \
        test "${#both[@]}" -eq 2 -a "${both[0]}" != "${both[1]}"
else
    is "two ranks on one CPU are not bound" "${both[*]}" "$mine $mine"
fi
is "--bind none" "$(cpus --bind none -n 2 | sort -u)" "$mine"
is "more ranks than CPUs are not bound" \
    "$(cpus -n $((2 * $(nproc) + 1)) | sort -u)" "$mine"
first=${mine%%[-,]*}
is "within the launcher's CPUs" \
    "$(taskset -c "$first" "$build/pmix/dt-run" -t 300 -n 1 -v sh -c \
        'sed -n "s/^Cpus_allowed_list:.//p" /proc/self/status' 2>&1)" \
"dt-run: rank 0: any CPU
$first"
is "--bind with another word" "$(run --bind socket true 2>&1; echo $?)" \
"dt-run: --bind socket: expected core or none
64"

# --- elastic jobs -----------------------------------------------------------

# What it prints, sorted, and its exit code.
sorted() { run "$@" >"$tmp/out" 2>&1; local rc=$?; sort "$tmp/out"; echo $rc; }
usage() { run "$@" true 2>&1; echo $?; }

is "--elastic 0" "$(usage -n 2 --elastic 0)" \
"dt-run: --elastic 0: expected a whole number from 1 to 4096
64"
is "--elastic that is no number" "$(usage -n 2 --elastic some)" \
"dt-run: --elastic some: expected a whole number from 1 to 4096
64"
is "--elastic with more than there are" "$(usage --elastic 3 -n 2)" \
"dt-run: --elastic 3: expected 1 to 2, the number of ranks
64"
is "--respawn without --elastic" "$(usage -n 2 --respawn 1)" \
"dt-run: --respawn needs --elastic MIN: how many ranks must be left when no more \
are started again
64"
# shellcheck disable=SC2016
show='echo ${DT_ELASTIC-none}'
is "the ranks get the minimum" "$(run -n 1 --elastic 1 sh -c "$show")" 1
is "  that of a job around this one is not theirs" \
    "$(DT_ELASTIC=7 run -n 1 sh -c "$show")" none
is "a rank is lost" "$(sorted --elastic 2 -n 4 "$client" meet-die)" \
"dt-run: rank 1: killed by signal 9 (Killed)
rank 0: epoch 1: 0 1 2 3
rank 0: epoch 2: 0 2 3
rank 1: epoch 1: 0 1 2 3
rank 2: epoch 1: 0 1 2 3
rank 2: epoch 2: 0 2 3
rank 3: epoch 1: 0 1 2 3
rank 3: epoch 2: 0 2 3
0"
is "too few are left" \
    "$(sorted --elastic 4 -n 4 "$client" meet-die | grep -v '^rank')" \
"dt-run: 3 ranks are left, fewer than the minimum of 4 (--elastic): ending the job
dt-run: rank 1: killed by signal 9 (Killed)
75"
is "a rank is started again" \
    "$(sorted -l --elastic 2 --respawn 3 -n 4 "$client" meet-die)" \
"0: rank 0: epoch 1: 0 1 2 3
0: rank 0: epoch 2: 0 1/1 2 3
1: rank 1: epoch 1: 0 1 2 3
1: rank 1: epoch 2: 0 1/1 2 3
2: rank 2: epoch 1: 0 1 2 3
2: rank 2: epoch 2: 0 1/1 2 3
3: rank 3: epoch 1: 0 1 2 3
3: rank 3: epoch 2: 0 1/1 2 3
dt-run: rank 1: killed by signal 9 (Killed), started again (1 of 3)
0"
# shellcheck disable=SC2016
is "one that fails before PMIx_Init, and once more" \
    "$(TRIES=$tmp/tries sorted --elastic 2 --respawn 3 -n 3 sh -c \
    'if [ "$PMIX_RANK" = 1 ] && [ "$(wc -l <"$TRIES" || echo 0)" -lt 2 ]; then
        echo >>"$TRIES"; exit 3
    fi 2>/dev/null
    exec "$0" meet' "$client" | grep -v 'epoch 2')" \
"dt-run: rank 1: exit code 3, started again (1 of 3)
dt-run: rank 1: exit code 3, started again (2 of 3)
rank 0: epoch 1: 0 1/1 2
rank 1: epoch 1: 0 1/1 2
rank 2: epoch 1: 0 1/1 2
0"
# shellcheck disable=SC2016
is "one that always fails is lost, and the others go on" \
    "$(sorted --elastic 2 --respawn 2 -n 3 sh -c \
    '[ "$PMIX_RANK" = 1 ] && exit 3; exec "$0" meet' "$client" |
        grep -v 'epoch 2')" \
"dt-run: rank 1: exit code 3
dt-run: rank 1: exit code 3, started again (1 of 2)
dt-run: rank 1: exit code 3, started again (2 of 2)
rank 0: epoch 1: 0 2
rank 2: epoch 1: 0 2
0"
for code in 75 93; do
    # shellcheck disable=SC2016
    is "one that ends with $code is not started again" \
        "$(sorted --elastic 1 --respawn 2 -n 2 sh -c \
        '[ "$PMIX_RANK" = 0 ] || exit '$code)" "dt-run: rank 1: exit code $code
0"
    is "  and if all do, the job ends with it" "$(sorted --elastic 1 --respawn 2 \
        -n 1 sh -c "exit $code")" \
"dt-run: 0 ranks are left, fewer than the minimum of 1 (--elastic): ending the job
dt-run: rank 0: exit code $code
$code"
done
is "PMIx_Abort ends an elastic job, too" \
    "$(code run --elastic 1 --respawn 2 -n 4 "$client" abort)" 7
# shellcheck disable=SC2016
is "and so does SIGTERM" "$(code run --elastic 1 --respawn 2 -n 2 sh -c \
    '[ "$PMIX_RANK" = 0 ] && kill $PPID; exec sleep 1000')" 143

# --- and when they end ------------------------------------------------------

out=$(run --no-kill -n 4 "$client" die 2>&1)
is "a killed rank: exit code" "$?" 137
is "a killed rank: the others are notified and go on" "$(sort <<<"$out")" \
"dt-run: rank 1: killed by signal 9 (Killed)
rank 0 goes on
rank 2 goes on
rank 3 goes on"
is "a rank killed while all others wait for it" \
    "$(run --no-kill -n 4 "$client" die-fence 2>&1)" \
    "dt-run: rank 1: killed by signal 9 (Killed)"
run --no-kill -n 4 "$client" die-two >"$tmp/out" 2>&1
is "two ranks are killed at the same time" "$(sort "$tmp/out")" \
"dt-run: rank 1: killed by signal 9 (Killed)
dt-run: rank 2: killed by signal 9 (Killed)"
is "a rank that ends before PMIx_Init, while all others wait for it" \
    "$(run --no-kill -n 4 "$client" never 2>&1)" "dt-run: rank 1: exit code 3"
is "a rank that ends before PMIx_Init, before the others come there" \
    "$(run --no-kill -n 4 "$client" early 2>&1)" "dt-run: rank 1: exit code 3"
is "a rank killed inside PMIx_Init" \
    "$( { MALLOC_PERTURB_=165 run --no-kill -n 4 "$client" connecting 2>&1
    echo $?; } | grep -v 'send_msg: write failed')" \
"dt-run: rank 1: killed by signal 9 (Killed)
137"
is "a killed rank whose child keeps its connection open" \
    "$(run --no-kill -n 4 "$client" orphan 2>&1)" \
    "dt-run: rank 1: killed by signal 9 (Killed)"
try "a rank that leaves without PMIx_Finalize" --no-kill -n 4 "$client" leave
try "a rank that ends well" -n 4 "$client" finish
out=$(run -n 4 "$client" abort 2>&1)
is "PMIx_Abort: exit code" "$?" 7
like "PMIx_Abort: message" "$out" \
    '^dt-run: rank 2 aborted the job with code 7: enough is enough$'

# --- exit codes -------------------------------------------------------------

dt_run=$build/pmix/dt-run
for usage in "" "-n" "-n 0" "-n x" "-n 4x" "-n 99999" "-t 0" "-t -1" "--what"; do
    # shellcheck disable=SC2086
    is "usage: dt-run $usage" "$(code "$dt_run" $usage ${usage:+true})" 64
done
is "usage: nothing to run" "$(code "$dt_run" -n 2)" 64
like "a bad number is explained" "$("$dt_run" -n 1.5 true 2>&1)" \
    '^dt-run: -n 1.5: expected a whole number from 1 to 4096$'
is "--help" "$(code "$dt_run" --help)" 0
like "--version" "$("$dt_run" --version)" '^dt-run \(slurm-dt\) [0-9]'
is "no such program" "$(code run -n 2 "$tmp/none")" 127
is "a program that is none" "$(code run -n 2 /etc/passwd)" 126
like "no such program: message" "$(run "$tmp/none" 2>&1)" \
    "^dt-run: $tmp/none: No such file or directory\$"
is "ranks that know nothing of PMIx" "$(code run -n 3 true)" 0
# shellcheck disable=SC2016
is "the highest code of those that failed by themselves" \
    "$(code run --no-kill -n 4 sh -c 'exit $((PMIX_RANK * 3))')" 9
# shellcheck disable=SC2016
is "when one rank fails the others are ended" \
    "$(code run -n 4 sh -c '[ $PMIX_RANK = 2 ] && exit 5; exec sleep 250')" 5
# shellcheck disable=SC2016
is "and killed when they ignore SIGTERM" "$(code run -n 2 sh -c '
    [ $PMIX_RANK = 1 ] && exit 5; trap "" TERM; while :; do sleep 1; done')" 5
is "time is over" "$(code timeout 250 "$dt_run" -t 1 -n 2 sleep 240)" 124
is "default: a rank per core that we may use" \
    "$(run sh -c 'echo x' | wc -l)" \
    "$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)"

# --- input and output -------------------------------------------------------

# shellcheck disable=SC2016
is "standard input is rank 0's" "$(echo text |
    run -n 2 sh -c 'read -r x; echo "$PMIX_RANK ${x:-nothing}"' | sort)" \
"0 text
1 nothing"
# a line in two halves, a long one, one without an end, and both streams
cat >"$tmp/talk" <<'END'
for i in 1 2 3 4 5 6 7 8 9; do
    printf 'begin '; printf 'end\n'
done
head -c 5000 /dev/zero | tr '\0' x; echo
echo 'to error' >&2
printf 'no newline'
END
out=$(run -l -n 4 sh "$tmp/talk" 2>&1)
is "-l: whole lines only" "$(grep -cE '^[0-3]: begin end$' <<<"$out")" 36
is "-l: long lines" "$(grep -cE '^[0-3]: x{5000}$' <<<"$out")" 4
is "-l: a last line without an end" \
    "$(grep -cE '^[0-3]: no newline$' <<<"$out")" 4
is "-l: nothing else" "$(wc -l <<<"$out")" 48
is "-l: standard error stays apart" \
    "$(run -l -n 2 sh "$tmp/talk" 2>&1 >/dev/null | sort)" \
"0: to error
1: to error"

# --- the environment --------------------------------------------------------

is "the variables of a launcher around this one are not passed on" \
    "$(SLURM_PROCID=3 SLURM_STEP_ID=0 PMI_RANK=3 OMPI_COMM_WORLD_RANK=3 \
    PMIX_SERVER_URI2=none SLURM_JOB_ID=7 PMIX_NAMESPACE=other \
    run -n 1 env | grep -E '^(SLURM_|PMI_|OMPI_COMM)')" "SLURM_JOB_ID=7"
try "dt-run inside dt-run" -n 2 "$dt_run" -n 2 "$client" modex
# shellcheck disable=SC2016
is "no descriptor is passed on" "$(run -n 1 sh -c 'ls /proc/$$/fd' 5</dev/null |
    tr '\n' ' ')" "0 1 2 "
# shellcheck disable=SC2016
is "the limit of open files is the ranks' own, not the server's" \
    "$(ulimit -S -n 40; run -l -n 16 sh -c 'ulimit -S -n' | grep -c ': 40$')" 16
is "nothing is left behind by all these" "$(left)" ""

# --- signals ----------------------------------------------------------------

# Start dt-run in the background with four ranks that say when they run: sets
# $pid, and $pids of the ranks. SCRIPT has the file of their pids in $up.
begin() # SCRIPT
{
    rm -f "$tmp/up"
    # a shell without job control would have its background ignore interrupts
    set -m
    # nor must whoever runs this test have had it ignored
    # shellcheck disable=SC2016
    up=$tmp/up script=$1 env --default-signal=INT "$dt_run" -t 300 -n 4 \
        sh -c 'eval "$script"' 2>"$tmp/err" &
    pid=$!
    set +m
    eventually lines "$tmp/up" 4
    mapfile -t pids <"$tmp/up"
}
# is_ended NAME CODE
is_ended()
{
    local rc=0
    { wait "$pid" || rc=$?; jobs >/dev/null; } 2>/dev/null
    is "$1" "$rc" "$2"
}
all_gone()
{
    local p
    for p in "${pids[@]}"; do
        eventually gone "$p" || { echo "still there: $p"; return 1; }
    done
}
# shellcheck disable=SC2016
ready='echo $$ >>"$up";'

begin "$ready exec sleep 250"
kill -INT "$pid"
is_ended "an interrupt is passed on" 130
begin "trap 'exit 3' INT; $ready while :; do sleep 0.1; done"
kill -INT "$pid"
is_ended "ranks that handle an interrupt choose the code" 3
# shellcheck disable=SC2016
begin "trap 'echo x >>\$up.int' INT; $ready while :; do sleep 0.1; done"
kill -INT "$pid"
eventually lines "$tmp/up.int" 4
kill -INT "$pid"
is_ended "a second interrupt kills" 137
# shellcheck disable=SC2016
begin "trap '' TERM; $ready
    while [ \$PMIX_RANK != 0 ] || [ \$(wc -l <\$up) -lt 4 ]; do sleep 0.1; done
    exit 5"
eventually grep -q 'exit code 5' "$tmp/err"
kill -INT "$pid" 2>/dev/null # on a slow machine its time of grace is over
is_ended "an interrupt kills at once when a rank has failed" 5
begin "$ready exec sleep 250"
kill -TERM "$pid"
is_ended "SIGTERM" 143
begin "trap 'exit 0' USR1; $ready while :; do sleep 0.1; done"
kill -USR1 "$pid"
is_ended "SIGUSR1 is passed on and ends nothing" 0
is "no rank is left" "$(all_gone)" ""

begin "$ready sleep 250; true"
kill -KILL "$pid"
is_ended "SIGKILL of dt-run" 137
is "  ends the ranks" "$(all_gone)" ""
ok "  and their children, and the directory" eventually empty
# shellcheck disable=SC2016
child=$tmp/child run -n 1 sh -c 'setsid sleep 250 & echo $! >"$child"'
ok "what a rank left running is ended" eventually gone "$(cat "$tmp/child")"

# --- strangers ---------------------------------------------------------------

# What becomes of a connection to the server's port, made by a user.
cat >"$tmp/call" <<'END'
exec 3<>"/dev/tcp/127.0.0.1/${PMIX_SERVER_URI4##*:}" || exit
read -r -t "$1" -u 3
if [ $? -gt 128 ]; then echo open; else echo closed; fi
END
is "a connection of this user stays open" \
    "$(run -n 1 bash "$tmp/call" 2)" open
if [ "$(id -u)" -eq 0 ]; then
    chmod 755 "$tmp"
    # shellcheck disable=SC2016
    is "connections of another user are closed, once and twice, and the ranks connect" \
        "$(tmp=$tmp client=$client run -n 2 bash -c '
        if [ "$PMIX_RANK" = 0 ]; then
            for i in 1 2; do
                setpriv --reuid 65534 --regid 65534 --clear-groups \
                    bash "$tmp/call" 200
            done
        fi
        exec "$client" modex' 2>&1)" $'closed\nclosed'
else
    ok "connections of another user are closed # SKIP needs root" true
fi

# --- many -------------------------------------------------------------------

ranks=64 runs=50 failed=0
# LeakSanitizer takes its time, but looks closer
! ldd "$client" | grep -q libasan || ranks=16 runs=10
for mode in modex concurrent group; do
    try "$ranks ranks: $mode" -n $ranks "$client" "$mode"
done
for ((i = 0; i < runs; i++)); do
    run -n 2 "$client" modex || failed=$((failed + 1))
done
is "$runs runs in a row" "$failed" 0
failed=0
for ((i = 0; i < runs / 2; i++)); do
    run --no-kill -n 3 "$client" die >/dev/null 2>&1
    [ $? -eq 137 ] || failed=$((failed + 1))
done
is "$((runs / 2)) losses in a row" "$failed" 0
is "and nothing is left" "$(left)" ""

# --- the notice board, events, queries, control -----------------------------

try "values of any kind are published" -n 3 "$client" values
run --no-kill -n 4 "$client" die-board >"$tmp/out" 2>&1
is "a rank that dies while it waits for a key" "$(cat "$tmp/out")" \
    "dt-run: rank 1: killed by signal 9 (Killed)"
try "events are delivered to all in their range, once" -n 4 "$client" events
try "a rank without heartbeat" -n 3 "$client" heartbeat
try "the table of ranks" -n 4 "$client" table
try "job control that is not supported is refused" -n 2 "$client" refusals
mkdir "$tmp/clean"
CLEANUP=$tmp/clean try "ranks register files to be removed" -n 2 "$client" \
    cleanup
is "and they are" "$(ls "$tmp/clean")" ""
out=$(run -n 4 "$client" terminate 2>&1)
is "PMIx_Job_control ends all: exit code" "$?" 143
like "PMIx_Job_control ends all: message" "$out" \
    '^dt-run: rank 2 aborted the job with code 143: PMIx_Job_control: terminate$'
is "nothing is left of these" "$(left)" ""

done_testing
