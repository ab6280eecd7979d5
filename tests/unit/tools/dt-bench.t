#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# dt-bench.t - what dt-bench measures, checks, prints and refuses

top=$(cd "$(dirname "$0")/../../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
build=${DT_BUILD:-$top/build}
tool=$build/tools/dt-bench
[ -x "$tool" ] || skip_all "not built: $tool"
[ -x "$build/tests/dt-fork" ] || skip_all "not built: $build/tests/dt-fork"

tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export LC_ALL=C
unset SLURMD_NODENAME SLURM_PROCID PMIX_RANK DT_GPUS DT_NICS

fork() { timeout -k 5 620 "$build/tests/dt-fork" "$@"; }
bench() { timeout -k 5 300 "$tool" "$@" 2>&1; }
status() { timeout -k 5 300 "$tool" "$@" >/dev/null 2>&1; echo $?; }
rows() { grep -E '^ +[0-9]'; } # the lines of the table
quick=(-n 2 -w 1)
json() # FILE EXPRESSION, with the document in d
{
    python3 -c "import json, sys
d = json.load(open(sys.argv[1]))
print($2)" "$1" 2>&1
}
has_python=$(type -P python3)

# ---- usage ----

like "--help" "$(bench --help)" '^usage: dt-bench \[OPERATION\]'
like "--version" "$(bench -V)" '^dt-bench [0-9]+\.'
for bad in --wrong foo "allreduce bcast" -b "-b x" "-b 1X" "-b -1" \
    "-b 99999999999G" "-b 8 -e 4" "-f 1" "-f 2 -i 8" "-n 0" "-n x" "-w -1" \
    "-d int" "-o plus" "-r x" "-z 2" "--inplace=yes" "alltoall --inplace" \
    "bcast --inplace=no" "--pairwise bcast" "--pairwise --tune=x" --alone \
    "--pairwise --limit" "--tune=x --json" "-r 1" "--mem gpu" \
    "--mem cuda --limit"; do
    # shellcheck disable=SC2086 # words, on purpose
    is "usage: $bad" "$(status $bad) $(bench $bad | wc -l)" "64 1"
done
like "what is expected is said" "$(bench -d int)" '-d int: expected int8, .*all$'
like "the rank that is not there" "$(bench -r 1)" '-r 1: expected a rank, 0 to 0'
is "several ranks say it once, too" "$(fork -n 3 -N 2 "$tool" -o plus 2>&1 |
    sed 's/: .*//' | sort | uniq -c | tr -s ' ')" " 1 dt-bench
 3 dt-fork"
is "in a step, without a job" "$(SLURM_PROCID=0 bench -o plus | wc -l) \
$(SLURM_PROCID=1 bench -o plus | wc -l) $(PMIX_RANK=1 status -o plus)" "1 0 64"
like "more memory than there is" "$(bench -b 8388608G -e 8388608G)" \
    '8192 TiB need more than .*: give a smaller -e$'
is "an output that goes nowhere is an error" "$("$tool" -e 8 2>&1 >/dev/full)" \
    "dt-bench: the output could not be written"
like "so is a picture" "$(bench --svg nowhere/x)" '^dt-bench: .*nowhere/x: No such'

# ---- the table ----

out=$(bench -b 8 -e 64 "${quick[@]}")
is "one process needs no launcher" "$(rows <<<"$out" | awk '{ print $1, $2 }')" \
    "$(printf '%s\n' '8 2' '16 4' '32 8' '64 16')"
like "a header says who ran where" "$out" \
    '^#  Rank   0 Pid +[0-9]+ on +[^ ]+ CPUs [0-9]'
like "no value is wrong" "$out" '^# Out of bounds values : 0 OK$'
like "the mean bandwidth is printed" "$out" '^# Avg bus bandwidth    : [0-9]'
is "the columns" "$(rows <<<"$out" | head -n 1 |
    sed -E 's/[0-9]+\.[0-9]+/T/g' | tr -s ' ')" \
    " 8 2 float sum -1 T T T 0 T T T 0"
is "steps of bytes" "$(bench -b 8 -e 40 -i 12 -d int32 "${quick[@]}" | rows |
    awk '{ print $1 }' | tr '\n' ' ')" "8 20 32 "
is "only in place" "$(bench -e 8 --inplace "${quick[@]}" | rows | wc -w)" 9
like "no check, no verdict" "$(bench -e 8 -c 0 "${quick[@]}" | rows)" 'N/A$'
is "of each iteration the minimum, median and more" \
    "$(bench -e 8 --stats --inplace=no -z 1 "${quick[@]}" | rows | wc -w)" 12
is "sizes are cut to what the ranks share evenly" \
    "$(fork -n 3 "$tool" allgather -b 1 -e 100 -f 10 "${quick[@]}" | rows |
        awk '{ print $1, $2, $5 }')" "$(printf '%s\n' '12 1 -1' '96 8 -1')"
is "each root" "$(fork -n 3 "$tool" reduce -b 8 -e 8 -r all "${quick[@]}" |
    rows | awk '{ print $5 }' | tr '\n' ' ')" "0 1 2 "
is "nothing is allowed, and a size of 0" \
    "$(bench -b 0 -e 0 "${quick[@]}" | rows | awk '{ print $1, $2 }')" "0 0"

# ---- each operation is right, and its bus bandwidth what it should be ----

factor() # of JSON: busbw / algbw of the first form
{
    awk -F'[:,]' '/"algbw"/ { algbw = $2 }
        /"busbw"/ { printf "%.3f\n", $2 / algbw; exit }'
}
while read -r operation bus; do
    for job in "2 1" "4 2" "5 3"; do
        # shellcheck disable=SC2086 # words, on purpose
        set -- $job
        fork -n "$1" -N "$2" "$tool" "$operation" -b 1 -e 300K -f 67 -c 2 \
            "${quick[@]}" >table 2>&1
        is "$operation, $1 ranks on $2 nodes: right" \
            "$? $(grep -c 'values : 0 OK' table)" "0 1"
    done
    [ "$bus" = - ] || is "$operation: busbw on 5 ranks" \
        "$(fork -n 5 "$tool" "$operation" -b 40K -e 40K -c 0 --json \
            "${quick[@]}" | factor)" "$bus"
done <<'END'
allreduce 1.600
reduce 1.000
bcast 1.000
allgather 0.800
reduce_scatter 0.800
alltoall 0.800
sendrecv 1.000
barrier -
END

ok "buffers of dt_mem_alloc" fork -n 2 "$tool" --mem registered -e 1M -f 32 \
    "${quick[@]}"

# ---- on a GPU: the driver is a mock ----

on_gpu() # DT-BENCH-ARG...; 2 ranks, on N nodes
{
    LD_LIBRARY_PATH=$build/lib/.libs:$build/tests/mock/.libs \
        fork -n 2 -N "$nodes" "$tool" --mem cuda "${quick[@]}" "$@"
}
for nodes in 1 2; do
    for operation in allreduce reduce bcast allgather reduce_scatter alltoall \
        sendrecv barrier; do
        on_gpu "$operation" -b 4 -e 1M -f 64 >table 2>&1
        is "--mem cuda: $operation on $nodes nodes: right" \
            "$? $(grep -c 'values : 0 OK' table)" "0 1"
    done
done
like "the table says where" "$(on_gpu -e 8)" '; cuda memory'
like "CUDA IPC is refused: it measures what is staged" \
    "$(DT_MOCK_FAIL=cuIpcGetMemHandle=801 on_gpu -e 8)" 'values : 0 OK'
like "no driver" "$(LD_LIBRARY_PATH=$tmp bench --mem cuda)" \
    '^dt-bench: --mem cuda: no driver of NVIDIA.s here: libcuda.so.1: '
like "no GPU" "$(DT_MOCK_GPUS=0 on_gpu -e 8 2>&1)" \
    'dt-bench: rank [01]: CUDA: cannot start the driver: .*: the driver has no GPU'

fork -n 3 "$tool" -d all -o all -b 4K -e 4K "${quick[@]}" >table
is "all types and operations are right" \
    "$? $(rows <table | wc -l) $(grep -c 'values : 0 OK' table)" "0 50 1"

# ---- for programs and for the eye ----

fork -n 4 -N 2 "$tool" -b 8 -e 8K -f 32 --json --stats --svg plot.svg \
    "${quick[@]}" >out.json
if [ "$has_python" ]; then
    is "JSON: the whole" "$(json out.json "d['operation'], d['ranks'], \
d['nodes'], d['dtype'], d['op'], d['wrong'], len(d['placement'])")" \
        "allreduce 4 2 float sum 0 4"
    is "JSON: the results" "$(json out.json \
        "[(r['size'], r['count'], r['wrong']) for r in d['results']]")" \
        "[(8, 2, 0), (256, 64, 0), (8192, 2048, 0)]"
    is "JSON: the numbers go together" "$(json out.json "all(
        r['time_us'] > 0 and r['min_us'] <= r['median_us'] <= r['p99_us'] and
        abs(r['algbw'] - s['size'] / r['time_us'] / 1e3) <= 1e-4 * r['algbw'] and
        abs(r['busbw'] - 1.5 * r['algbw']) <= 1e-4 * r['busbw']
        for s in d['results'] for r in (s, s['in_place']))")" True
else
    ok "JSON # SKIP no python3"
fi
if command -v xmllint >/dev/null; then
    ok "the picture is well-formed" xmllint --noout plot.svg
else
    ok "the picture is well-formed # SKIP no xmllint"
fi
is "it has both forms in both panels" "$(grep -c 'class="line.*d="M.*L' plot.svg)" 4

fork -n 4 -N 2 "$tool" -b 64K -e 64K --limit "${quick[@]}" >table
like "limits: cores" "$(cat table)" '^# limit: a flag from core to core, [0-9]'
like "limits: links" "$(cat table)" \
    '^# limit: out of a node, [0-9.]+ .B/s by one rank, [0-9.]+ .B/s by all$'
is "limits: a share for each form" "$(rows <table | wc -w)" 15

# ---- pairs ----

fork -n 5 -N 3 "$tool" --pairwise >table
is "pairs: a matrix of three nodes, and of those with two ranks" \
    "$? $(grep -cE '^ +fork[012] ' table) $(grep -cE '^ +rank [0-9] ' table)" \
    "0 8 12"
if [ "$has_python" ]; then
    fork -n 3 -N 3 "$tool" --pairwise --alone --json >out.json
    is "pairs: JSON" "$(json out.json "len(d['between_nodes']['names']), all(
        (i == j) == (d['between_nodes'][m][i][j] is None)
        for m in ('bandwidth', 'latency_us') for i in range(3)
        for j in range(3))")" "3 True"
fi
like "pairs: of one there are none" "$(bench --pairwise)" 'expected two ranks'

# pairs of GPUs: the driver is a mock
gpu_pairs() # RANKS NODES ARG...
{
    LD_LIBRARY_PATH=$build/lib/.libs:$build/tests/mock/.libs \
        fork -n "$1" -N "$2" "$tool" --pairwise --mem cuda "${@:3}" 2>&1
}
gpu_pairs 5 2 >table
is "GPUs: matrices of two nodes" \
    "$? $(grep -cE '^ +rank +[0-4] .* -( |$)' table) $(grep -cw no table)" "0 10 0"
is "GPUs: more ranks than GPUs share them" \
    "$(gpu_pairs 3 1 --alone >table; echo $?) $(grep -cw no table)" "0 0"
while IFS='|' read -r name variable count words; do
    (export "${variable?}" && gpu_pairs 3 1) >table
    is "GPUs: $name: $count pairs fail" \
        "$? $(grep -c 'cannot read' table) $(grep '^ ' table | grep -ow no | wc -l)" \
        "0 $count $((2 * count))"
    like "GPUs: $name: which, and why" "$(grep 'cannot read' table)" "$words"
done <<'END'
no peer-to-peer|DT_MOCK_NO_PEER=0-1|4|^rank 1 .GPU 0000:1b:00.0. cannot read rank 0's .0000:1a:00.0.: .* no peer-to-peer
no IPC|DT_MOCK_FAIL=cuIpcOpenMemHandle_v2=801|6|cannot map another process's GPU memory .* by IPC handle: .*NOT_SUPPORTED
END
# shellcheck disable=SC2016
blind=$(LD_LIBRARY_PATH=$build/lib/.libs:$build/tests/mock/.libs fork -n 2 \
    bash -c 'case $DT_FORK in "0 "*) export DT_MOCK_GPUS=1 ;; esac
        exec "$1" --pairwise --mem cuda' - "$tool" 2>&1)
like "GPUs: one that is not visible" "$blind" \
    "rank 0 .GPU 0000:1a.* cannot read rank 1's .*: GPU 0000:1b:00.0 is not visible"
is "GPUs: the other way it works" "$(grep -c 'cannot read' <<<"$blind")" 1
like "GPUs: memory that cannot be shown" \
    "$(DT_MOCK_FAIL=cuIpcGetMemHandle=801 gpu_pairs 2 1)" \
    'dt-bench: rank [01]: CUDA: cannot share .* by IPC handle: .*NOT_SUPPORTED'
if [ "$has_python" ]; then
    DT_MOCK_GPUS=3 DT_MOCK_NO_PEER=0-2 gpu_pairs 3 1 --json >out.json
    is "GPUs: JSON" "$(json out.json "d['memory'], [(w['from'], w['to'])
        for w in d['within_nodes'][0]['wrong'] if w['kind'] == 'fails'],
        [[v is None for v in row]
         for row in d['within_nodes'][0]['bandwidth']]")" "cuda [(0, 2), (2, 0)] \
[[True, False, True], [False, True, False], [True, False, True]]"
fi

# ---- parameters ----

fork -n 4 -N 2 "$tool" --tune tune
is "tune: all parameters" "$? $(sed -n 's/ = [0-9.e-]* #.*//p' tune | tr '\n' ' ')" \
    "0 node_latency node_byte fold_byte net_latency net_byte task "
ok "libdt reads them" env DT_TUNE="$tmp/tune" "$build/tests/dt-fork" -n 4 -N 2 \
    "$tool" -b 64K -e 64K "${quick[@]}"

# ---- ends ----

# ^C reaches all ranks, when they have begun.
interrupt()
{
    local pid i
    : >log
    env --default-signal=INT "$build/tests/dt-fork" -n 3 "$tool" \
        -n 1000000000 >log 2>&1 &
    pid=$!
    for ((i = 0; i < 5000; i++)); do
        grep -q '^# .*time' log && break
        sleep 0.02
    done
    pkill -INT -P "$pid"
    wait "$pid"
    echo "$? $(grep dt-bench: log)"
}
is "^C: one line" "$(interrupt)" "130 dt-bench: interrupted"

done_testing
