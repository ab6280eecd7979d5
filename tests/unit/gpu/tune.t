#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# tune.t - collectives on GPU memory go the ways that a file of parameters
# says, and dt-bench writes such a file. The driver and NCCL are mocks.
top=$(cd "$(dirname "$0")/../../.." && pwd)
. "$top/tests/lib/tap.sh"
. "$top/tests/lib/gpu-ranks.sh"
bench=$build/tools/dt-bench
[ -x "$bench" ] || skip_all "not built: $bench"
[ -e "$build/tests/mock/.libs/libnccl.so.2" ] || skip_all "no mock of NCCL"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
unset DT_GPU_WAY DT_TUNE
export DT_MOCK_GPUS=8 GPU_OF_ITS_OWN=1
export LD_LIBRARY_PATH=$build/lib/.libs:$build/tests/mock/.libs
served() { sort -u | sed -n 's/ nccl$//p' | tr '\n' ,; } # by NCCL
rules() { printf '%s\n' "$@" >tune; }

# ---- which way ----

# two ranks call with 4000 bytes each
rules
is "an empty file: none goes by NCCL" \
    "$(with 1 DT_TUNE=tune -n 2 "$ranks" served | served)" ""
rules 'gpu_net_allreduce = nccl' 'gpu_node_bcast = ipc 4000 nccl' \
    'gpu_node_allgather = nccl 7999 ipc'
is "nor where the sizes are others, or it is for other nodes" \
    "$(with 1 DT_TUNE=tune -n 2 "$ranks" served 2>&1 | served)" ""
rules 'gpu_node_allreduce = ipc 3999 nccl' 'gpu_node_bcast = nccl 4000 ipc' \
    'gpu_node_allgather = ipc 7999 nccl' 'gpu_node_reduce = ipc 3999 staged' \
    'gpu_node_reduce_scatter = staged 7999 nccl' 'gpu_node_gather = nccl' \
    'gpu_node_scatter = staged' 'gpu_node_alltoall = ipc 8000 nccl'
# alltoallv, of which no rank knows all, goes as long ones do
is "each as its rule says" \
    "$(with 1 DT_TUNE=tune -n 2 "$ranks" served | served)" \
    "allgather,allgatherv,alltoallv,avg,bcast,gather,int min,\
reduce_scatter,reduce_scatterv,sum,"
is "DT_GPU_WAY wins" \
    "$(with 2 DT_TUNE=tune DT_GPU_WAY=ipc -n 2 "$ranks" served | served)" ""
for n in 3 4; do
    ok "$n ranks: all ways in one communicator give what they should" \
        with 1 DT_TUNE=tune -n "$n" "$ranks" all
    ok "$n ranks: streams keep their order" \
        with 1 DT_TUNE=tune -n "$n" "$ranks" order
done
ok "steps neither wait nor allocate" \
    with 1 DT_TUNE=tune -n 2 "$ranks" steady
rules 'gpu_net_bcast = nccl' 'gpu_node_allreduce = nccl'
is "between nodes" "$(with 2 DT_TUNE=tune DT_MOCK_NCCL_APART=1 -n 2 -N 2 \
    "$ranks" served | served)" bcast,

# ---- whose file ----

others() # RANK: its file says NCCL, the other's not
{
    # shellcheck disable=SC2016
    fork -n 2 bash -c '
        case $DT_FORK in "$1 "*) export DT_TUNE=tune ;; esac
        exec "$2" served' - "$1" "$ranks"
}
rules 'gpu_node_bcast = nccl'
is "rank 0's file counts" "$(others 0 | served)|$(others 1 | served)" "bcast,|"
rules 'gpu_node_bcast = nccl' 'gpu_node_allreduce = fast'
like "a file that is wrong is refused" \
    "$(with 1 DT_TUNE=tune -n 1 "$ranks" served 2>&1)" \
    "^dt_init: tune:2: gpu_node_allreduce is 'fast': expected ipc, nccl or staged"

# ---- NCCL is not to be had ----

rules 'gpu_node_bcast = ipc 1M nccl'
with 2 DT_TUNE=tune DT_MOCK_NCCL_VERSION=21304 -n 2 "$ranks" served >out 2>&1
is "told once, and all goes on" \
    "$(sed -n 's/\(without NCCL\): .*/\1/p' out) $(grep -c ' other$' out)" \
    "dt: DT_TUNE: it goes on without NCCL 19"
with 2 DT_TUNE=tune DT_MOCK_NCCL_FAIL=ncclGetUniqueId=2 -n 2 "$ranks" two \
    >out 2>&1
is "of more communicators, too" "$? $(grep -c '^dt:' out)" "0 1"
strict() # WAY VARIABLE
{
    with 2 "DT_GPU_WAY=strict,$1" "$2" -n 2 "$ranks" served 2>&1
}
like "who insists on NCCL is told, and it is an error" \
    "$(strict nccl DT_MOCK_NCCL_VERSION=21304)" \
    'sum: -[0-9]+: .*DT_GPU_WAY=strict,nccl: rank 0: NCCL: .* 2.14 or later'
like "who insists on exchanges, too" "$(strict ipc DT_MOCK_NO_PEER=0-1)" \
    'DT_GPU_WAY=strict,ipc: .*peer'
like "also where CUDA IPC is refused" \
    "$(strict ipc DT_MOCK_FAIL=cuIpcGetMemHandle=801)" \
    'DT_GPU_WAY=strict,ipc: rank 0: CUDA: cannot share .* by IPC handle: .*801'
is "NCCL serves what it serves, without CUDA IPC, too" \
    "$(strict nccl DT_MOCK_FAIL=cuIpcGetMemHandle=801 | grep -c ' nccl$')" 14
is "what is to be had goes on" \
    "$(strict nccl DT_MOCK_NO_PEER=0-1 | grep -c ' nccl$') \
$(strict ipc DT_MOCK_NCCL_VERSION=21304 | grep -c ' other$') \
$(strict staged DT_MOCK_NO_PEER=0-1 | grep -c ' other$')" "14 19 19"
like "a way that is none" "$(strict best DT_MOCK_NO_PEER=0-1)" \
    'DT_GPU_WAY=strict,best: expected ipc, nccl or staged, or strict, and one'

# ---- dt-bench writes it ----

small=(-b 64 -e 4K -f 64 -n 2 -w 1)
tune() # FILE DT-FORK-ARG...
{
    fork "${@:2}" "$bench" --tune "$1" --mem cuda "${small[@]}"
}
all="allreduce reduce bcast allgather reduce_scatter alltoall "
of() # SCOPE: collectives that have a rule
{
    sed -nE "s/^gpu_$1_([a-z_]+) = (ipc|nccl|staged)( 64 [a-z]+)?\$/\1/p" new |
        tr '\n' ' '
}
rules 'what was there'
tune new -n 2 >out 2>&1
is "a node: what was measured, for each collective" \
    "$? $(of node)|$(of net)|$(grep -cE '^# +(64|4096)( +[0-9]+\.[0-9]+){3}$' new)" \
    "0 $all||12"
is "the host's parameters are there, too" \
    "$(grep -cE '^(node_byte|fold_byte|task) = ' new)" 3
ok "libdt reads it" with 1 DT_TUNE=new -n 2 "$ranks" order
DT_MOCK_NCCL_APART=1 tune new -n 4 -N 2 >out 2>&1
is "two nodes: inside and between" "$? $(of node)|$(of net)" "0 $all|$all"
is "between nodes there are two ways" \
    "$(grep -A 4 'between nodes' new | grep -E '^# (without| +64)' |
        sed -E 's/(2 nodes);.*/\1/; s/[0-9]+\.[0-9]+/T/g' | tr -s ' ' |
        tr '\n' ,)" "# without ipc: its ranks are on 2 nodes,\
# 64 - T T,"
ok "libdt reads that, too" with 1 DT_TUNE=new -n 4 -N 2 "$ranks" order
DT_MOCK_NCCL_VERSION=21304 DT_GPU_WAY=nccl tune new -n 2 >out 2>&1
is "without NCCL it says why, once" \
    "$? $(grep -c '^# without nccl' new) $(of node)" "0 1 $all"
like "which is in the file" "$(cat new)" \
    '# without nccl: rank 0: NCCL: .* version code 21304'
is "and NCCL is not chosen, whatever DT_GPU_WAY says" \
    "$(grep -c '^gpu.*nccl' new) $(wc -c <out)" "0 0"
DT_MOCK_NCCL_VERSION=21304 tune new -n 2 -N 2 >out 2>&1
is "nothing to choose from: no rule" "$? $(grep -c '^gpu' new)" "0 0"
tune new -n 1 >out 2>&1
is "one rank has nothing to measure" "$? $(grep -c '^gpu' new)" "0 0"
echo same >new
DT_MOCK_GPUS=0 tune new -n 2 >out 2>&1
is "no GPU: an error, and the file stays" "$? $(cat new)" "1 same"
like "no GPU: a line" "$(cat out)" \
    'dt-bench: rank [01]: (CUDA: .* no GPU for this process|--mem cuda: rank [01] sees no GPU)'
LD_LIBRARY_PATH=$tmp timeout -k 5 60 "$bench" --tune new --mem cuda >out 2>&1
is "no driver: the same" "$? $(cat new)" "1 same"
like "no driver: a line" "$(cat out)" '^dt-bench: --mem cuda: no driver'
done_testing
