#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# fuzz.t - the readers of topologies, of checkpoints and of messages between
# daemons take any bytes: each target for $DT_FUZZ_SECONDS (30), by libFuzzer
# with ASan and UBSan. $DT_FUZZ_SEED (1) chooses the inputs: the same on each
# run, as far as it gets; 0 is others on each. $DT_FUZZ_TARGETS may name fewer
# targets, $DT_TOPOLOGIES a folder with more topologies to begin from.

top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"

seconds=${DT_FUZZ_SECONDS:-30}
read -ra targets <<<"${DT_FUZZ_TARGETS:-text hwloc nccl matrix gres frames \
    mesh link pack manifest requests}"
flags=(-gline-tables-only -O1 -std=gnu11 -D_GNU_SOURCE
    "-I$top/lib" "-I$top/pmix"
    "-fsanitize=fuzzer-no-link,address,undefined" -fno-sanitize-recover=all)
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT

echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n)
{ return !d && n; }' >"$tmp/try.c"
clang -fsanitize=fuzzer,address,undefined -o "$tmp/try" "$tmp/try.c" \
    2>"$tmp/try.log" || skip_all "clang has no libFuzzer: install libclang-rt"

libs=$(pkg-config --cflags --libs hwloc expat pmix jansson libxxhash) ||
    skip_all "no development files of hwloc, expat, PMIx, jansson and xxHash"
read -ra libs <<<"$libs"

running=0
beside() # COMMAND...; in the background, two at once; fails if another did
{
    local rc=0
    if [ "$running" -eq 2 ]; then
        wait -n
        rc=$?
        running=1
    fi
    "$@" &
    running=$((running + 1))
    return "$rc"
}

all_done() # fails if one of them did
{
    local rc=0
    while [ "$running" -gt 0 ]; do
        wait -n || rc=1
        running=$((running - 1))
    done
    return "$rc"
}

build() # compiles all sources once, then each target with what it needs
{
    local source object target main
    mkdir "$tmp/obj" || return
    for source in "$top"/lib/base/*.c \
        "$top"/lib/topo/{model,sources,sources/hwloc}/*.c \
        "$top"/pmix/{mesh,membership}/*.c \
        "$top"/pmix/{operations/{pack,store},server/info}.c \
        "$top"/lib/ckpt/format/{build,checksum,checksum_avx2,failure}.c \
        "$top"/lib/ckpt/format/{manifest,manifest_file,manifest_json}.c \
        "$top"/lib/ckpt/format/{safetensors,slice,tensor}.c \
        "$top"/lib/grad/message.c; do
        [ "${source##*/}" != auth.c ] || continue # munge is a stub
        object=$(basename "$(dirname "$source")")-$(basename "$source" .c).o
        beside clang "${flags[@]}" "${libs[@]}" \
            -Wno-unused-command-line-argument \
            -c -o "$tmp/obj/$object" "$source" || return
    done
    all_done || return
    ar rc "$tmp/all.a" "$tmp"/obj/*.o || return
    for target in "${targets[@]}"; do
        main=$top/tests/fuzz/$target.c
        [ -e "$main" ] || main=$top/tests/fuzz/read.c # a format of topologies
        beside clang "${flags[@]}" -fsanitize=fuzzer -DFORMAT="$target" \
            -o "$tmp/$target" "$main" "$tmp/all.a" "${libs[@]}" || return
    done
    all_done
}

bytes() # HEX...
{
    printf '%b' "$(tr -d ' \n' <<<"$*" | sed 's/../\\x&/g')"
}

frame() # HEX...; a message of this kind and body, shorter than 256 bytes
{
    local hex
    hex=$(tr -d ' \n' <<<"$*")
    bytes "$(printf '%02x000000' $((${#hex} / 2)))$hex"
}

# What a reader looks for, which chance seldom finds.
words() # TARGET
{
    case $1 in
    text)
        echo 'DtTopology=1 Numa= Cpus= Switch= Gpu= Nic= Links= Paths= Bus=' \
            'Name= Under= Memory= NODE SYS PIX'
        ;;
    hwloc)
        echo '<topology <object <info <page_type <distances type= Machine' \
            'Package NUMANode Core PU Bridge PCIDev OSDev cpuset= nodeset=' \
            'pci_busid= pci_type= bridge_type= 0-1 name= value= osdev_type='
        ;;
    nccl)
        echo '<system> <cpu <pci <gpu <nic> <net <nvlink <xgmi </pci> </gpu>' \
            'numaid= affinity= busid= class= target= tclass= count= 0x030200' \
            '0x060400 0x020700 0x068000 name= speed= host_hash='
        ;;
    matrix)
        echo 'GPU0 GPU1 NIC0 mlx5_0 X SYS NODE PHB PXB PIX NV4 N/A CPU' \
            'Affinity NUMA ID NIC0: 0-3,8'
        ;;
    gres)
        echo 'Name=gpu NodeName= Type= File=/dev/nvidia [0-3] Cores= Links=-1,' \
            'Count= Flags= MultipleFiles= # "'
        ;;
    manifest)
        echo '{"checksum":" "created": "files":[ "format": slurm-dt' \
            'checkpoint "num_nodes": "redundancy": "restart_count":' \
            '"run_id": "step": "tag": "tensors":{ "version":2 "world_size":' \
            '"copy_us": "write_us": "header": "name": "node": "rank": "size":' \
            '"xxh3_64": "dtype":"U8" "kind":"global" "kind":"own"' \
            '"kind":"blob" "replicated":true "replicated":false "shape":[' \
            '"slices":[[ "0123456789abcdef" "file": "data_offsets":[0,' \
            '9223372036854775807 -1'
        ;;
    *)
        echo 'n0 n1 n2'
        ;;
    esac | tr ' ' '\n' | sed -e 's/["\\]/\\&/g' -e 's/.*/"&"/'
}

seed() # TARGET; a small sample that is right
{
    case $1 in
    text)
        echo 'DtTopology=1'
        ;;
    hwloc)
        echo '<topology version="2.0"><object type="Machine" os_index="0"' \
            'cpuset="0x1" complete_cpuset="0x1" nodeset="0x1"' \
            'complete_nodeset="0x1" allowed_cpuset="0x1"' \
            'allowed_nodeset="0x1" gp_index="1"><object type="NUMANode"' \
            'os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1"' \
            'complete_nodeset="0x1" gp_index="2"/><object type="PU"' \
            'os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1"' \
            'complete_nodeset="0x1" gp_index="3"/></object></topology>'
        ;;
    nccl)
        cat <<'END'
<system><cpu numaid="0" affinity="0,f">
<pci busid="01:00.0" class="0x060400"><pci busid="02:00.0" class="0x030200">
<gpu sm="90"><nvlink target="03:00.0" count="4" tclass="0x030200"/>
<nvlink target="0a:00.0" count="2" tclass="0x068000"/></gpu></pci>
<pci busid="04:00.0" class="0x020000"><nic><net name="mlx5_0" speed="400000"
port="1"/></nic></pci></pci>
<pci busid="03:00.0" class="0x030200"><gpu sm="90">
<nvlink target="02:00.0" count="4" tclass="0x030200"/>
<nvlink target="0a:00.0" count="2" tclass="0x068000"/></gpu></pci>
<nic><net name="eth0"/></nic></cpu></system>
END
        ;;
    matrix)
        printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' \
            '' GPU0 GPU1 NIC0 'CPU Affinity' 'NUMA Affinity' 'GPU NUMA ID' \
            GPU0 X NV4 PIX 0-3 0 N/A GPU1 NV4 X SYS 4-7 1 2 \
            NIC0 PIX SYS X '' '' ''
        printf 'NIC Legend:\n\n  NIC0: mlx5_0\n'
        ;;
    gres)
        cat <<'END'
NodeName=a[1-2] Name=gpu Type=h100 File=/dev/nvidia[0-1] \
Cores=0-3 # two
NodeName=a[1-2] Name=gpu Count=1 CPUs=4-7 Links=4,0,-1
END
        ;;
    frames)
        local ip='00000000 00000000 0000ffff 0a000001'
        local n0="00000000 6712 $ip 02 6e30 02000000
            00000000 01000000 02000000 01000000"
        local n1="01000000 6712 $ip 02 6e31 01000000 01000000 01000000"
        bytes 06
        frame 06
        frame 08 "$n1"
        frame 09 02000000 03000000 "$n0" "$n1"
        frame 07
        ;;
    link) # what a dialer writes, piece by piece; munge is a stub
        bytes 00 3e
        frame 01 736c7572 6d2d6474 01000000 05000000 342e322e32 \
            11000000 01000000 00000000 02000000 04000000 \
            00010203 04050607 08090a0b 0c0d0e0f
        bytes 0e
        frame 03 05000000 4d554e4745
        bytes 00 05
        frame 06
        bytes 0a
        frame 0b 01020304 05
        bytes 05
        frame 07
        ;;
    mesh) # a collective of nodes 0 and 1, and its result
        bytes 01 0000 04 0300 00 01 61 02 00 11 0300 02 02 6162
        ;;
    requests) # an allreduce of three numbers
        bytes 00 00000000 0100 61 0100 00060600 04000000 00000000 \
            000000000000f03f 000000000000f03f 01 0300000000000000 00000000
        ;;
    link-dialer) # what one who was dialed writes
        bytes 01 1e
        frame 02 00010203 04050607 08090a0b 0c0d0e0f 05000000 4d554e4745
        bytes 05
        frame 04
        bytes 00 0a
        frame 0b 01020304 05
        bytes 05
        frame 07
        ;;
    esac
}

manifests() # a checkpoint of each version, and what is in it
{
    local step n=0
    for step in "$top"/tests/samples/ckpt-v[12]/step-*; do
        n=$((n + 1))
        { bytes 00 && cat "$step/manifest.json"; } \
            >"$tmp/manifest.corpus/$n-whole" || return
        { bytes 01 && sed 's/^{"checksum":"[^"]*",//' "$step/manifest.json"; } \
            >"$tmp/manifest.corpus/$n-unsealed" || return
        { bytes 02 && sed 's/^{"checksum":"[^"]*",/{/' "$step/manifest.json"; } \
            >"$tmp/manifest.corpus/$n-part" || return
        { bytes 03 && tail -c +9 "$step"/rank-00001-*; } \
            >"$tmp/manifest.corpus/$n-tensors" || return
    done
}

corpus() # TARGET; all samples there are, for libFuzzer to choose from
{
    local from file n=0
    mkdir "$tmp/$1.corpus" || return
    seed "$1" >"$tmp/$1.corpus/seed"
    [ "$1" != link ] || seed link-dialer >"$tmp/$1.corpus/dialer"
    [ "$1" != manifest ] || manifests || return
    words "$1" >"$tmp/$1.dict"
    [ ! -e "$top/tests/fuzz/$1.c" ] || return 0 # not of topologies
    for from in "$top/tests/topologies" "${DT_TOPOLOGIES:-}"; do
        [ -d "$from" ] || continue
        while IFS= read -r file; do
            n=$((n + 1))
            cp "$file" "$tmp/$1.corpus/$n"
        done < <(find "$from" -type f -size -64k | sort)
    done
}

fuzz() # TARGET
{
    timeout $((seconds + 600)) "$tmp/$1" -max_total_time="$seconds" \
        -seed="${DT_FUZZ_SEED:-1}" -max_len=65536 -timeout=60 \
        -rss_limit_mb=2048 -dict="$tmp/$1.dict" \
        -artifact_prefix="$tmp/$1.bad-" "$tmp/$1.corpus" >"$tmp/$1.log" 2>&1
    echo $? >"$tmp/$1.rc"
}

report() # TARGET; what went wrong on standard error, which prove shows
{
    local rc file
    rc=$(cat "$tmp/$1.rc")
    tap_result "$rc" "$1: $(sed -nE 's/^Done ([0-9]+) runs.*/\1 inputs/p' \
        "$tmp/$1.log")"
    [ "$rc" -ne 0 ] || return
    grep -Ev '^#|^[[:space:]]*$' "$tmp/$1.log" | tail -n 60 | sed 's/^/# /' >&2
    for file in "$tmp/$1".bad-*; do
        [ -e "$file" ] || continue
        echo "# the input, in base64:"
        base64 "$file" | sed 's/^/# /'
    done >&2
}

if ! build >"$tmp/build.log" 2>&1; then
    tap_result 1 "the targets compile"
    sed 's/^/# /' "$tmp/build.log"
    done_testing
    exit
fi
for target in "${targets[@]}"; do
    corpus "$target"
    beside fuzz "$target"
done
all_done
for target in "${targets[@]}"; do
    report "$target"
done
done_testing
