#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# gpu.t - checkpoints of tensors on GPUs, on the mock driver, whose memory
# the host cannot touch.
top=$(cd "$(dirname "$0")/../../.." && pwd)
. "$top/tests/lib/tap.sh"
build=${DT_BUILD:-$top/build}
gpu=$build/tests/unit/ckpt/gpu
[ -x "$gpu" ] || skip_all "not built: $gpu"
tmp=$(mktemp -d) && export DT_RUN_ID=ckpt-gpu-$$
trap 'rm -rf "$tmp" "/dev/shm/slurm-dt-$(id -u)/$DT_RUN_ID"' EXIT
export DT_TIMEOUT=300 DT_MOCK_HIDDEN=1
fork() { timeout -k 5 300 "$build/tests/dt-fork" "$@" 2>&1; }
with() { (export "${@:2:$1}" && shift $(($1 + 1)) && fork "$@"); }
listed() { find "$1" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | xargs; }

# ---- there and back ----

for how in save async; do
    dir=$tmp/$how
    is "2 ranks $how" "$(with 1 CKPT_GPU_OWN=1 -n 2 "$gpu" $how "$dir" 10)" ""
    is "$how: they load it" \
        "$(with 1 CKPT_GPU_OWN=1 -n 2 "$gpu" load "$dir")" "step 10"
    is "$how: 4 ranks, slow copies" \
        "$(with 1 DT_MOCK_DELAY=cuMemcpyAsync=5000 -n 4 "$gpu" $how "$dir" \
            20)" ""
    for n in 1 3 4; do
        is "$how: $n ranks load what 4 saved" \
            "$(fork -n $n "$gpu" load "$dir")" "step 20"
    done
done

# ---- from the memory of the node, and from a partner ----

dir=$tmp/memory
fork -n 2 "$gpu" killed "$dir" 10 >/dev/null
rm -rf "$dir"/step-*
is "from the memory of the node, when it is nowhere else" \
    "$(fork -n 2 "$gpu" load "$dir")" "step 10"
is "that is gone with the next save" "$(
    fork -n 2 "$gpu" async "$dir" 20
    ls -d "/dev/shm/slurm-dt-$(id -u)/$DT_RUN_ID" 2>/dev/null)" ""

dir=$tmp/nodes
mkdir "$dir"
on_disks()
{
    with 2 DT_CKPT_FLUSH="$dir/flush" DT_CKPT_REDUNDANCY=partner -n 3 -N 3 "$@"
}
for how in save async; do
    rm -rf "${dir:?}"/*
    is "3 nodes $how, each on its own disk" \
        "$(on_disks "$gpu" $how "$dir" 10)" ""
    rm -rf "$dir"/node-1 "$dir"/flush/step-*
    is "$how: one of them is lost, and its partner has it" \
        "$(on_disks "$gpu" load "$dir")" "step 10"
done

# ---- streams ----

for how in late late-async; do
    is "$how: what is still to come on a stream is waited for" \
        "$(fork -n 2 "$gpu" $how "$tmp/$how" 20)" ""
    is "$how: and saved" "$(fork -n 3 "$gpu" load "$tmp/$how")" "step 20"
    for only in managed weight; do
        is "$how: where there is nothing but $only" "$(
            export CKPT_GPU_ONLY=$only
            fork -n 2 "$gpu" $how "$tmp/$how-$only" 20
            fork -n 2 "$gpu" load "$tmp/$how-$only")" "step 20"
    done
done

# ---- pinned memory ----

is "each file is pinned once, and again when its size changes" \
    "$(fork -n 2 "$gpu" pins "$tmp/pins")" "2 2 4 4 6 8 8 - 8"
is "where that is refused, it is said once" \
    "$(with 1 DT_MOCK_FAIL=cuMemHostRegister_v2=801 -n 2 "$gpu" pins \
        "$tmp/refused" | sed 's/pin [0-9]* bytes at [^:]*:/pin:/')" \
    "dt: checkpoints are copied from GPUs more slowly: CUDA: cannot pin: \
CUDA_ERROR_NOT_SUPPORTED (801)
1 1 1 1 1 1 1 - 0"
is "and it holds what it should" "$(fork -n 2 "$gpu" load "$tmp/refused")" \
    "step 13"

# ---- what goes wrong ----

for n in 1 3; do
    dir=$tmp/broken$n
    is "a driver that fails, of $n: one error for all, and the last one stays" \
        "$(fork -n $n "$gpu" broken "$dir" 30)" ""
    is "$n: later ones are saved" "$(fork -n 2 "$gpu" load "$dir")" "step 30"
    is "$n: nothing else is left" "$(listed "$dir")" \
        "step-000000000010 step-000000000030"
done
is "a tensor was freed" \
    "$(fork -n 2 "$gpu" freed "$tmp/freed" "was it freed?")" ""
is "the last one stays" "$(fork -n 2 "$gpu" load "$tmp/freed")" "step 10"
is "a driver that is too old" "$(with 1 DT_MOCK_VERSION=11000 -n 2 "$gpu" \
    fails "$tmp/old" "no GPU can be used: CUDA: the driver is of CUDA 11.0")" ""

# ---- no driver, no GPU ----

host=$build/tests/unit/ckpt/ranks
for gpus in '' 0; do
    is "tensors of the host without a driver, DT_GPUS=$gpus" \
        "$(with 1 DT_GPUS=$gpus -n 2 "$host" save "$tmp/host" 10
        with 1 DT_GPUS=$gpus -n 2 "$host" load "$tmp/host")" "step 10"
done

done_testing
