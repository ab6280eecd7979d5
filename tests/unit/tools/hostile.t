#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# hostile.t - what the files of others can make of a terminal: nothing

top=$(cd "$(dirname "$0")/../../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
build=${DT_BUILD:-$top/build}
tools=$build/tools
make=$build/tests/unit/tools/ckpt-make
for program in "$tools"/dt-{bench,ckpt,requeue,topo} "$make"; do
    [ -x "$program" ] || skip_all "not built: $program"
done

tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export LC_ALL=C
unset SLURM_JOB_ID SLURM_PROCID PMIX_RANK DT_TUNE

# A title for the window, a bell, a forged line, DEL, C1 as UTF-8 and as a byte,
# and between them what stays: a letter beyond ASCII.
evil=$'evil\e]2;t\a\r\nforged\177\302\233[31m\303\251\233[7m\377end'
escaped='evil\u001b]2;t\u0007\r\nforged\u007f\u009b[31m\u00e9end' # in JSON

# FILE is UTF-8 without control characters, but for newline and tab
printable()
{
    [ -s "$1" ] && iconv -f UTF-8 -t UTF-8 "$1" >/dev/null &&
        ! grep -aqP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' "$1" &&
        ! grep -q '^forged' "$1"
}

# The output of COMMAND, and what it complains of, are printable and show EXPECTED
shows() # NAME EXPECTED COMMAND...
{
    local rc=0
    timeout -k 5 300 "${@:3}" >out 2>&1
    printable out && grep -qF -e "$2" out || rc=1
    tap_result "$rc" "$1"
    [ "$rc" -eq 0 ] || tap_show got "$(cat -v out)"
}

# ---- checkpoints ----

ckpt=$tools/dt-ckpt
"$make" job 10 && "$make" job 20 1 || exit 1
cp -r job "$evil"
for manifest in job/*20/manifest.json; do
    sed -i 's/"4711"/"'"${escaped//\\/\\\\}"'"/
        s/2026-01-31T23:59:59Z/\\u00e9\\u009b\\u001b]2;t\\u0007/' "$manifest"
    "$make" seal "$manifest"
done
shown='evil\x1b]2;t\x07\x0d\x0aforged\x7f\xc2\x9b[31mé' byte='\x9b[7m\xffend'
shows "list" "${shown}end " "$ckpt" list job
"$ckpt" list job | sed 's/é/e/g' >table # awk counts bytes
is "list: the columns are below each other" \
    "$(awk '{ print match($0, / (STATE|complete)/) }' table |
        sort -u | wc -l)" 1
shows "list --json" '"run_id": "evil\u001B]2;t\u0007\r\nforged\u007f\u009B[31m' \
    "$ckpt" list job --json
shows "show" "of run ${shown}end, restart" "$ckpt" show job
shows "show --json" '\u007f\u009B[31m' "$ckpt" show job --json
for command in show "show --tensor none" verify "prune --keep 1 --dry-run"; do
    read -ra words <<<"$command"
    shows "$command, of a directory" "$shown$byte" \
        "$ckpt" "${words[0]}" "$evil" "${words[@]:1}"
done
shows "flush" "to$shown$byte/step-000000000010: copied" \
    "$ckpt" flush job "to$evil"
shows "diff" "$shown$byte/none: " "$ckpt" diff job "$evil/none"
shows "export" "$shown$byte/none: " "$ckpt" export "$evil/none" x
printf '{"%s":' "$evil" >"$evil/step-000000000010/manifest.json"
shows "a manifest of raw bytes" "is torn" "$ckpt" list "$evil"

"$make" many 10 && rm many/*/rank-00001-*
sed -i 's/"num_nodes":2,/"num_nodes":2147483647,/; s/"none"/"xor:4"/' \
    many/*/manifest.json
"$make" seal many/*/manifest.json
shows "repair, of more nodes than there are" "xor:4 cannot rebuild it" \
    "$ckpt" repair many

# the length of a header of less than 256 bytes, the header
safetensors() # HEADER
{
    local LC_ALL=C
    # shellcheck disable=SC2059 # an escape, made here
    printf "\\x$(printf %x ${#1})\0\0\0\0\0\0\0%s" "$1"
}
safetensors '{"'"$escaped"'":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}' \
    >name.safetensors
safetensors '{"a":{"dtype":"'"$escaped"'","shape":[0],"data_offsets":[0,0]}}' \
    >"$evil.safetensors"
safetensors '{"'"$evil"'":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}' \
    >bytes.safetensors
shows "the name of a tensor" "name.safetensors: impossible tensor" \
    "$ckpt" import name.safetensors new --step 1
shows "an element type, the name of a file" "$shown$byte.safetensors: malformed" \
    "$ckpt" import "$evil.safetensors" new --step 1
shows "a header of raw bytes" "bytes.safetensors: header is not" \
    "$ckpt" import bytes.safetensors new --step 1
descr="{'descr': 'evil$(printf '\e]2;\a\r\n\177\302\233\233')', \
'fortran_order': False, 'shape': (1,), }"
printf "\\x93NUMPY\1\0\\x$(printf %x ${#descr})\0%s" "$descr" >array.npy
shows "an array's type" 'evil\x1b]2;\x07\x0d\x0a\x7f\xc2\x9b\x9b' \
    "$ckpt" import array.npy new --step 1

# ---- topologies ----

topo=$tools/dt-topo
name=$'evil\302\233[1m\303\251\233\377' seen='evil\xc2\x9b[1mé\x9b\xff'
{
    echo "DtTopology=1 Source=\"$name\""
    echo "Numa=0 Cpus=0-7"
    echo "Switch=\"s$name\" Numa=0"
    for i in 0 1; do
        echo "Gpu=$i Bus=0000:1$i:00.0 Name=\"$name\" Numa=0"
    done
    echo "Nic=\"$name\" Type=ib Gbps=400 State=up Numa=0 Names=\"$name/ib0\""
} >model.topo
sed 's/Gbps=400/Gbps=200/' model.topo >"$evil.topo"
for form in "" --json --svg --text "--tasks 2" "--tasks 2 --explain" \
    "--tasks 2 --json"; do
    expected=$seen
    [[ $form = *json ]] && expected=${seen//\\/\\\\} && expected=${expected//é/\\u00E9}
    # shellcheck disable=SC2086
    shows "a topology: ${form:-the picture}" "$expected" \
        "$topo" --input model.topo $form
done
shows "a topology: --xml" "<system" "$topo" --input model.topo --xml
shows "the name of its file" 'forged\x7f\xc2' "$topo" --input "$evil"
shows "--diff" "NIC $seen: 200 Gb/s, expected 400" \
    "$topo" --diff model.topo "$evil.topo"
printf 'DtTopology=1\nGpu=0 evil\e]2;t\a\233\302\233=x\n' >rude.topo
shows "a topology that is refused" 'evil\x1b]2;t\x07\x9b\xc2\x9b' \
    "$topo" --input rude.topo
cat >nccl.xml <<'END'
<system version="1"><cpu numaid="0" affinity="ff" arch="x86_64">
<pci busid="0000:10:00.0" class="0x030200"><gpu dev="0" sm="90"/></pci>
<pci busid="0000:20:00.0" class="0x020700"><nic><net
name="evil&#9;&#13;&#10;forged&#127;&#155;[31m&lt;b&gt;" dev="0"
speed="400000" port="1"/></nic></pci></cpu></system>
END
for form in "" --json --svg --text --xml; do
    # shellcheck disable=SC2086
    shows "XML: ${form:-the picture}" "0000:10:00" "$topo" --input nccl.xml $form
done
sed "s/0000:10:00.0/evil$(printf '\e]2;t\a\177\302\233\233')/" nccl.xml >rude.xml
shows "XML that is refused" "rude.xml" "$topo" --input rude.xml
printf '\tGPU0\tmlx\302\233[31m\233_0\tCPU Affinity\nGPU0\t X \tPIX\t0-7\n' >smi.txt
printf 'mlx\302\233[31m\233_0\tPIX\t X \t\n' >>smi.txt
shows "a matrix of nvidia-smi" "mlx" "$topo" --input smi.txt

mkdir bin
echo "NodeName=n[0-1] Topology=$tmp/model.topo" >dt.conf
# shellcheck disable=SC2016 # for that script
printf '#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
for SLURMD_NODENAME in n0 n1; do export SLURMD_NODENAME; "$@"; done
echo "$EVIL"\n' >bin/srun
printf '#!/bin/sh\nexit 1\n' >bin/sinfo
chmod +x bin/*
shows "the nodes of a cluster, which are alike" "n[0-1] (2 nodes): 2 GPUs ($seen)" \
    env EVIL="$evil" PATH="$tmp/bin:$PATH" "$topo" --conf dt.conf -w n0,n1
like "and what srun says" "$(cat out)" 'from srun: evil\\x1b]2;t\\x07'

# ---- the rest ----

printf 'node_latency = 1e-6\n%s = 1\n' "$evil" >"$evil.tune"
shows "a tuning file" 'evil\x1b]2;t\x07' \
    env DT_TUNE="$evil.tune" "$tools/dt-bench" -b 8 -e 8 -n 1 -w 0
shows "the name of a node" "Rank   0" \
    env SLURMD_NODENAME="$evil" DT_GPUS="$evil" DT_NICS="$evil" \
    "$tools/dt-bench" -b 8 -e 8 -n 1 -w 0
# shellcheck disable=SC2016 # for that script
printf '#!/bin/sh\nprintf "%%s\\n" "$EVIL" >&2\nexit 1\n' >bin/squeue
chmod +x bin/squeue
shows "what Slurm says" 'Slurm says: forged\x7f\xc2\x9b[31mé' \
    env EVIL="$evil" PATH="$tmp/bin:$PATH" "$tools/dt-requeue" 4711
done_testing
