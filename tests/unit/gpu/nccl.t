#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# nccl.t - collectives on GPU memory by NCCL, which is a mock like the driver.
top=$(cd "$(dirname "$0")/../../.." && pwd)
. "$top/tests/lib/tap.sh"
. "$top/tests/lib/gpu-ranks.sh"
[ -e "$build/tests/mock/.libs/libnccl.so.2" ] || skip_all "no mock of NCCL"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export DT_MOCK_GPUS=8 GPU_OF_ITS_OWN=1 DT_GPU_WAY=nccl
export LD_LIBRARY_PATH=$build/lib/.libs:$build/tests/mock/.libs

# ---- it works ----

while read -r n nodes; do
    on="$n ranks on $nodes nodes"
    ok "$on: every collective, type, operation" fork -n "$n" -N "$nodes" \
        "$ranks" all
    ok "$on: no call waits for a stream, which keeps its order" \
        fork -n "$n" -N "$nodes" "$ranks" order
    ok "$on: two communicators on two streams, crosswise" \
        fork -n "$n" -N "$nodes" "$ranks" two
    ok "$on: the end with things under way" \
        fork -n "$n" -N "$nodes" "$ranks" end
    ok "$on: messages and groups" fork -n "$n" -N "$nodes" "$ranks" messages
    ok "$on: steps neither wait nor allocate" \
        fork -n "$n" -N "$nodes" "$ranks" steady
done <<'END'
2 1
4 2
END
is "the bits of a sum in the order of ranks are the host's" \
    "$(fork -n 3 "$ranks" all)" "$(with 1 DT_GPU_WAY=staged -n 3 "$ranks" all)"
ok "many at once" fork -n 3 "$ranks" many
ok "what NCCL puts on the stream comes later" \
    with 1 DT_MOCK_NCCL_LATER=3 -n 2 "$ranks" order
ok "with DT_PROGRESS=thread and DT_CHECK=1" \
    with 2 DT_PROGRESS=thread DT_CHECK=1 -n 3 -N 2 "$ranks" order

is "what goes by NCCL" "$(fork -n 2 "$ranks" served | sort -u | tr '\n' ,)" \
    "allgather nccl,allgatherv nccl,alltoall nccl,alltoallv nccl,avg nccl,\
barrier nccl,bcast nccl,f8 other,gather nccl,int avg other,int min nccl,\
message other,min other,reduce nccl,reduce_scatter nccl,\
reduce_scatterv nccl,scaled other,scatter nccl,sum nccl,"
for way in ipc staged ''; do
    is "DT_GPU_WAY=$way: none does" "$(with 1 DT_GPU_WAY=$way -n 2 "$ranks" \
        served | grep -c nccl)" 0
done
like "another way is refused" \
    "$(with 1 DT_GPU_WAY=best -n 2 "$ranks" served 2>&1)" \
    'DT_GPU_WAY=best: expected ipc, nccl or staged'
is "rank 0's choice counts" \
    "$(on_rank 1 DT_GPU_WAY=ipc served | grep -c ' nccl')" 14

# ---- it is not to be had: a reason, told once, and all goes on ----

goes_on() # NAME WORDS, with what was printed in $tmp/out
{
    like "$1: why" "$(grep '^dt: ' "$tmp/out")" \
        "^dt: DT_GPU_WAY=nccl: it goes on without NCCL: $2"
    is "$1: told once, and all goes on" \
        "$(grep -c '^dt: ' "$tmp/out") $(grep -c ' other$' "$tmp/out") \
$(grep -vc '^dt: \| other$' "$tmp/out")" "1 19 0"
}
mkdir "$tmp/none" && : >"$tmp/none/libnccl.so.2"
with 1 "LD_LIBRARY_PATH=$tmp/none:$LD_LIBRARY_PATH" -n 2 "$program" served \
    >"$tmp/out" 2>&1
goes_on "no NCCL" 'rank 0: NCCL: it is not here: .*file too short'
cp "$build/tests/mock/old/.libs/libcuda.so.1" "$tmp/none/libnccl.so.2"
with 1 "LD_LIBRARY_PATH=$tmp/none:$LD_LIBRARY_PATH" -n 2 "$program" served \
    >"$tmp/out" 2>&1
goes_on "another library" 'rank 0: NCCL: libnccl.so.2 does not tell its version'
(unset GPU_OF_ITS_OWN && fork -n 3 "$ranks" served) >"$tmp/out" 2>&1
goes_on "two ranks with one GPU" \
    'NCCL: ranks 0 and 1 have the same GPU, 0000:1a:00.0: give each rank its'
while IFS='|' read -r name rank variable words; do
    patience=$DT_TIMEOUT
    case $name in *hangs) patience=5 ;; esac
    (export DT_TIMEOUT=$patience && on_rank "$rank" "$variable" served) \
        >"$tmp/out" 2>&1
    goes_on "$name" "$words"
done <<'END'
an old one|0|DT_MOCK_NCCL_VERSION=21304|rank 0: NCCL: .* has version code 21304, 2.14 or later is needed
another version|1|DT_MOCK_NCCL_VERSION=21400|NCCL: rank 0 has version code 22809, rank 1 21400: install the same
no id|0|DT_MOCK_NCCL_FAIL=ncclGetUniqueId=2|rank 0: NCCL: cannot make an id: unhandled system error .2.
a begin that fails|1|DT_MOCK_NCCL_FAIL=ncclCommInitRankConfig=3|rank 1: NCCL: cannot begin: internal error .3.
a begin that hangs|1|DT_MOCK_NCCL_FAIL=ncclCommInitRankConfig=7|rank [012]: NCCL: it has not connected the ranks within 5 s
a first sum that fails|2|DT_MOCK_NCCL_FAIL=ncclAllReduce=1|rank 2: NCCL: cannot add numbers: unhandled cuda error .1.
a first sum that hangs|1|DT_MOCK_NCCL_ASYNC=0@1|rank [012]: NCCL: it has not connected the ranks within 5 s
a wrong sum|2|DT_MOCK_NCCL_WRONG=1|rank 2: NCCL: it adds 1 to 3 and gets 7
END
(unset GPU_OF_ITS_OWN && with 1 DT_MOCK_NCCL_APART=1 -n 2 -N 2 "$ranks" served) >"$tmp/out" 2>&1
is "on two nodes GPUs of one name are two" \
    "$(grep -c ' nccl' "$tmp/out") $(grep -c '^dt:' "$tmp/out")" "14 0"

# ---- it fails ----

both() # NAME VARIABLES RESULT WORDS: rank 0's; the others hear of it, and abort
{
    # shellcheck disable=SC2016
    ok "$1" fork -n 3 bash -c '
        case $DT_FORK in "0 "*)
            export $1
            exec "$2" fails "$3" "$4" 1 ;;
        esac
        exec "$2" fails -40 "" 1' - "$2" "$ranks" "$3" "$4"
}
both "a call fails" DT_MOCK_NCCL_FAIL=ncclAllReduce=1@4 -62 \
    'NCCL: cannot begin a collective: unhandled cuda error (1)'
both "an error that comes later" DT_MOCK_NCCL_ASYNC=3@4 -62 \
    "NCCL: cannot go on: internal error (3): the mock's last words: "
both "an error of a peer" DT_MOCK_NCCL_ASYNC=6@4 -40 \
    'NCCL: cannot go on: remote process exited'
both "a call that never comes through" \
    'DT_MOCK_NCCL_FAIL=ncclAllReduce=7@4 DT_TIMEOUT=5' -41 'has not connected the ranks'
is "a rank is killed" "$(fork -n 3 "$ranks" fails -40 'rank 2' 1 kill 2>&1)" \
    'dt-fork: rank 2: killed by signal 9'
is "a rank is killed, two nodes" \
    "$(fork -n 3 -N 2 "$ranks" fails -40 rank 1 kill 2>&1)" \
    'dt-fork: rank 2: killed by signal 9'
DT_MOCK_NCCL_FAIL=ncclCommAbort=7 both "an abort that hangs is left alone" \
    DT_MOCK_NCCL_ASYNC=3@4 -62 'NCCL: cannot go on'

# ---- a GPU that dies ----

for way in nccl ipc staged; do
    mkdir "$tmp/$way"
    # shellcheck disable=SC2016
    ok "a GPU dies silently, and it is found in time, $way" \
        with 1 DT_GPU_WAY=$way -n 3 bash -c '
        case $DT_FORK in "0 "*) export DT_MOCK_FAIL=cuStreamQuery=719@2 ;; esac
        exec "$1" dead -62 -40 "$2"' - "$ranks" "$tmp/$way"
done
done_testing
