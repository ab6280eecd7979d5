#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# dt-topo.t - what dt-topo prints, compares, remembers and refuses

top=$(cd "$(dirname "$0")/../../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
tool=${DT_BUILD:-$top/build}/tools/dt-topo
[ -x "$tool" ] || skip_all "not built: $tool"

tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export LC_ALL=C
unset NO_COLOR SLURMD_NODENAME SLURM_JOB_ID

topo() { timeout -k 5 300 "$tool" "$@" 2>&1; }
status() { timeout -k 5 300 "$tool" "$@" >/dev/null 2>&1; echo $?; }

# four GPUs, linked in pairs, on two NUMA nodes
cat >good.topo <<'END'
DtTopology=1 Source="a & b <model>"
Numa=0 Package=0 Cpus=0-7 ThreadsPerCore=1 Memory=64G
Numa=1 Package=1 Cpus=8-15 ThreadsPerCore=1 Memory=64G
Switch=hb0 Numa=0
Switch=plx0 Under=hb0
Gpu=0 Bus=00ff:10:00.0 Vendor=nvidia Name="GPU <X>" Uuid=GPU-0 Numa=0 Under=plx0 Links=-1,4,0,0
Gpu=1 Bus=00ff:11:00.0 Vendor=nvidia Name="GPU <X>" Uuid=GPU-1 Pcie=5x16 Numa=0 Under=plx0 Links=4,-1,0,0
Gpu=2 Bus=00ff:20:00.0 Vendor=nvidia Name="GPU <X>" Uuid=GPU-2 Numa=1 Links=0,0,-1,4
Gpu=3 Bus=00ff:21:00.0 Vendor=nvidia Name="GPU <X>" Uuid=GPU-3 Numa=1 Links=0,0,4,-1
Nic=mlx5_0 Net=ib0 Bus=00ff:12:00.0 Type=ib State=up Gbps=400 Pcie=5x16 Numa=0 Under=plx0
Nic=mlx5_1 Net=ib1 Bus=00ff:22:00.0 Type=ib State=up Gbps=400 Numa=1
END
sed -e 's/Uuid=GPU-/Uuid=GPU-9/; s/64G/63G/' good.topo >twin.topo
sed -e 's/Links=-1,4/Links=-1,3/; s/Links=4,-1/Links=3,-1/' \
    -e '/^Nic=mlx5_1/s/up/down/' good.topo >worn.topo
sed -e '/^Gpu=3/d; s/,4$//; s/,0$//' good.topo >short.topo
cat >bare.topo <<'END'
DtTopology=1 Source=login
Numa=0 Package=0 Cpus=0-3 ThreadsPerCore=1
END

# ---- usage ----

like "--help" "$(topo --help)" '^usage: dt-topo '
like "--version" "$(topo -V)" '^dt-topo [0-9]+\.'
for bad in --wrong "--input" "extra" "--json --svg" "--explain" "--policy=auto" \
    "--framed" "--timeout=0" "--timeout=9x" "--diff a b c" "--input a -w n0" \
    "--cached --json" "--cache=d" "--tasks=2 --svg" "--refresh" \
    "--timeout=3" "-w n0 --node=n0" "--input a --conf=b" "--input a --node=b" \
    "--diff a b --conf=c"; do
    # shellcheck disable=SC2086 # words, on purpose
    is "usage: $bad" "$(status $bad) $(topo $bad | wc -l)" "64 1"
done
like "the option that is wrong is named" "$(topo -xh)" '^dt-topo: -x: no such'
like "an error is one line" "$(topo --input nowhere)" '^dt-topo: .*nowhere'
is "and exit 1" "$(status --input nowhere)" 1
for bad in --tasks=0 --tasks=1025 "--tasks=2 --policy=7x" \
    "--tasks=2 --policy=map:0,,1" "--tasks=2 --gpus=0-4" "--tasks=2 --cpus=x" \
    "--tasks=2 --cpus=14-16" "--tasks=2 --cpus=" "--tasks=2 --nics=far" "--tasks=2 --nics=map:mlx5_7"; do
    # shellcheck disable=SC2086
    is "refused: $bad" \
        "$(status --input good.topo $bad) $(topo --input good.topo $bad |
            grep -c '^dt-topo: .*expected')" "1 1"
done
like "no GPU, no tasks" "$(topo --input bare.topo --tasks 1)" 'has no GPU'
ok "output that goes nowhere is an error" test "$(
    "$tool" --input good.topo >/dev/full 2>/dev/null; echo $?)" = 1

is "a write error, with --json" "$("$tool" --input good.topo --tasks 64 --json 2>&1 \
    >/dev/full)" "dt-topo: the output could not be written"
like "a pipe with a name" "$(topo --input <(cat good.topo))" '^4 GPUs'
printf 'DtTopology=1\nGpu=0 B\033[2J\007=x\n' >rude.topo
is "what a message quotes cannot paint" \
    "$(topo --input rude.topo | tr -d ' -~\n')" ""

# ---- pictures ----

out=$(topo --input good.topo)
like "tree: NUMA" "$out" '^\|  `- NUMA 0  CPUs 0-7, 64 GiB$'
like "tree: GPU" "$out" \
    '^\|           \|- GPU 0  00ff:10:00\.0, GPU <X>$'
like "tree: NIC" "$out" 'NIC mlx5_1  00ff:22:00\.0, InfiniBand, 400 Gb/s, up$'
like "matrix" "$out" '^GPU0    X     NV4   SYS   SYS   PIX     SYS     0     0-7$'
is "no colour when piped" "$(topo --input good.topo | grep -c $'\033')" 0
is "standard input" "$(topo --input - <good.topo)" "$out"
like "a node without GPUs" "$(topo --input bare.topo)" '^0 GPUs, 0 NICs'
if locale -a 2>/dev/null | grep -qi '^C\.utf-\?8$'; then
    like "lines in UTF-8" "$(LC_ALL=C.UTF-8 topo --input good.topo)" '└─ '
fi
printf 'DtTopology=1\nGpu=0 Bus=00ff:10:00.0 Name="a\302\233[31m\377"\n' >odd.topo
like "an odd name" "$(topo --input odd.topo)" 'GPU 0  00ff:10:00.0, a'
is "it cannot paint" "$(topo --input odd.topo | tr -d ' -~\n')" ""

is "--text reads back" "$(topo --input good.topo --text >again.topo
    topo --input again.topo --text)" "$(cat again.topo)"
is "and is the same machine" "$(topo --diff good.topo again.topo)" ""
svg=$(topo --input good.topo --svg)
is "--svg has the PCIe links beside their lines" \
    "$(grep -o '>5\.0 x16</text>' <<<"$svg" | wc -l)" 2
like "--svg" "$svg" '^<svg xmlns='
like "--svg is escaped" "$svg" 'a &amp; b &lt;model&gt;'
like "--svg shows links" "$svg" 'class="link"'
# one switch below another, and two GPUs and a NIC there
is "--svg has PCIe lines below switches alone" \
    "$(grep -c 'class="pci" d' <<<"$svg")" 5
vm=$(printf 'DtTopology=1\nCpus=0-3 Package=0\nGpu=0\n' |
    timeout -k 5 60 "$tool" --input - --svg)
like "--svg names a package without NUMA nodes" "$vm" '>Package 0</text>'
is "--svg has no line there" "$(grep -c 'class="pci" d' <<<"$vm")" 0
xml=$(topo --input good.topo --xml)
like "--xml: affinity" "$xml" '<cpu numaid="1" affinity="0000ff00"'
like "--xml: NVLinks" "$xml" \
    '<nvlink target="00ff:11:00\.0" count="4" tclass="0x030200"/>'
if command -v xmllint >/dev/null; then
    for model in good bare odd; do
        for form in svg xml; do
            topo --input $model.topo --$form >$model.$form
            ok "$model --$form is well-formed" xmllint --noout $model.$form
        done
    done
else
    ok "well-formed XML # SKIP no xmllint"
fi

# ---- placement ----

out=$(topo --input good.topo --tasks 2)
like "tasks: a table" "$out" '^task +gpus +sees +cpus +numa +nics$'
like "tasks: linked GPUs together" "$out" '^0 +0,1 .* 0-7 +0 +mlx5_0$'
like "tasks: the other pair" "$out" '^1 +2,3 .* 8-15 +1 +mlx5_1$'
like "tasks: of the granted only" \
    "$(topo --input good.topo --tasks 1 --gpus 2,3)" '^0 +2,3 '
like "tasks: NICs by name" \
    "$(topo --input good.topo --tasks 1 --nics map:mlx5_1)" 'mlx5_1$'
like "tasks: notes are sentences" "$(topo --input good.topo --tasks 8)" \
    '^note: there are more tasks than GPUs: tasks share a GPU$'
sed '/^Gpu=/s/$/ Part=0/' good.topo >mig.topo
like "tasks: MIG instances are shared" \
    "$(topo --input mig.topo --tasks 8 --gpus 0,2)" \
    '^note: there are more tasks than MIG instances: tasks share an instance and its memory$'
like "tasks: and name the tasks that they are about" \
    "$(topo --input good.topo --tasks 2 --gpus 0,2 --cpus 0-3)" \
    '^note: too few CPUs near .* \(task 1\)$'
sed -e '/^Gpu=[13]/s/$/ Lost=yes/' good.topo >lost.topo
like "tasks: lost GPUs are named" "$(topo --input lost.topo --tasks 4)" \
    '^note: granted, but fallen off the bus: GPU 1,3$'
like "tasks: not those that were not granted" \
    "$(topo --input lost.topo --tasks 2 --gpus 2,3)" ' the bus: GPU 3$'
like "json: a lost GPU is named" "$(topo --input lost.topo --tasks 2 --json)" \
    '"granted, but fallen off the bus: GPU 1,3"'
json=$(topo --input good.topo --tasks 2 --json | tr -d ' \n')
like "json: a GPU" "$json" \
    '"index":0,"bus":"00ff:10:00.0","numa":"0","cpus":"0-7","nics":\["mlx5_0"\],"nic_path":"PIX"'
like "json: a task" "$json" \
    '"gpus":\[2,3\],"sees":\[[0-9,]*\],"cpus":"8-15","numas":"1","nics":\[\["mlx5_1"\],\["mlx5_1"\]\]'
like "json: the source" "$json" '"source":"a&b<model>"'
out=$(topo --input good.topo --tasks 2 --explain)
like "explain: the choice" "$out" '^  4 NVLinks, PCI distance [0-9]+, 1 CPU group$'
like "explain: what else would cost" "$out" \
    '^    .*: 4 NVLinks fewer, longer PCI paths \(\+[0-9]+\), 2 CPU groups$'
like "explain: NICs" "$out" '^  GPU 0: NIC mlx5_0 over PIX$'
like "explain: CPUs" "$out" '^  CPUs 0-7: 8 CPUs, of the 8 near its GPUs'

sed -e '/^Nic=mlx5_1/s/400/25/; s/ Under=plx0//; s/Numa=1$/Numa=0/' \
    good.topo >slow.topo
is "a slow NIC that is as near is for other things" \
    "$(topo --input slow.topo --tasks 4 | awk '$1 < 2 { print $NF }')" \
    "$(printf '%s\n' mlx5_0 mlx5_0)"

# ---- differences ----

is "names and UUIDs do not count" "$(topo --diff good.topo twin.topo; echo $?)" 0
is "what differs" "$(topo --diff good.topo worn.topo; echo $?)" \
    "NIC mlx5_1: down
GPU 0 (00ff:10:00.0): 3 NVLinks to GPU 1, expected 4
1"
like "a lost GPU" "$(topo --diff good.topo short.topo)" \
    '^GPU 3 \(00ff:21:00\.0\) is missing$'
like "one too many" "$(topo --diff short.topo good.topo)" 'is not expected$'
sed -e '/^Nic=mlx5_0/s/5x16/4x8/; /^Gpu/s/Pcie=5x16 //' good.topo >narrow.topo
is "a narrow PCIe link; one that is not known is none" \
    "$(topo --diff good.topo narrow.topo)" \
    "NIC mlx5_0: PCIe 4.0 x8, expected 5.0 x16"
sed -e 's/Package=0 //' good.topo >vague.topo
like "what is not known is no number" "$(topo --diff good.topo vague.topo)" \
    '^NUMA node 0: in an unknown package, expected package 0$'
is "trouble is 2" "$(status --diff good.topo nowhere)" 2

# ---- site files ----

cat >dt.conf <<END
# the machines of this test
NodeName=login,n[0-1,07-12] Topology=good.topo   # relative to this file
nodename=n2 topology=$tmp/worn.topo

Topology=bare.topo
END
text() { topo --cached --conf dt.conf "$@"; }
for pair in n0:4 n08:4 n8:0 n12:4 n2:4 login:4 other:0; do
    is "site file of ${pair%:*}" \
        "$(text --node "${pair%:*}" | grep -c ^Gpu=)" "${pair#*:}"
done
is "SLURMD_NODENAME" "$(SLURMD_NODENAME=n1 text | grep -c ^Gpu=)" 4
is "GPUs that are not there, once" "$(text --node n0 | grep ^dt-topo:)" \
    "dt-topo: site file good.topo names 4 GPUs that are not there: \
00ff:10:00.0, 00ff:11:00.0, 00ff:20:00.0, ..."
like "no such dt.conf" "$(topo --cached --conf none.conf)" '^dt-topo: none\.conf'
i=0
for line in Foo=1 NodeName=a "NodeName=a[ Topology=b" "NodeName=a[2-1] Topology=b" \
    "Topology" "Topology=a Topology=b" "NodeName=a[1-99999999] Topology=b"; do
    i=$((i + 1))
    printf '#\n%s\n' "$line" >bad.conf
    like "dt.conf refused: $line" "$(topo --cached --conf bad.conf --node x)" \
        '^dt-topo: bad\.conf line 2: .*'
done

# ---- the cache ----

: >empty.conf
asked() { timeout 300 "$tool" --cached --conf empty.conf --cache none --refresh; }
if first=$(asked); then
    is "standard files that are closed do not matter" \
        "$(asked <&- 2>&- | head -n 1)" "$(head -n 1 <<<"$first")"
    is "but for the output" "$(asked 2>&1 >&-)" \
        "dt-topo: the output could not be written"
else
    ok "closed files # SKIP this node does not tell what it has"
fi
cached() { topo --cached --conf empty.conf --cache "$tmp/cache" "$@"; }
inode() { stat -c %i cache/topology; }
if cached >/dev/null && [ -e cache/topology ]; then
    is "the cache is ours alone" "$(stat -c %a cache cache/topology)" "700
600"
    first=$(cached) made=$(inode)
    is "it is read again" "$(cached | grep -c ^DtTopology) $(inode)" "1 $made"
    is "--refresh asks anew" "$(cached --refresh >/dev/null
        [ "$(inode)" != "$made" ] && echo new)" new
    # shellcheck disable=SC2016 # sed's
    for damage in 's/^Dt/dT/' '$d' '1s/boot=./boot=x/' '1s/cgroup=/c=/'; do
        sed -i "$damage" cache/topology
        made=$(inode)
        is "damaged, it is ignored: $damage" "$(cached)" "$first"
        ok "and written anew" [ "$(inode)" != "$made" ]
    done
    ln -sf good.topo cache/topology
    is "a link is not followed" "$(cached)" "$first"
    rm -f cache/topology
    chmod 755 cache
    like "a directory that others see is not used" "$(cached)" \
        '^dt-topo: cache not used: .*expected a directory that only you'
    ok "nothing was written" [ ! -e cache/topology ]
    rm -rf cache
    mkdir real && chmod 700 real && ln -s real cache
    like "nor is a link to one" "$(cached)" '^dt-topo: cache not used'
    is "and it is empty" "$(ls real)" ""
else
    ok "the cache # SKIP this node does not tell what it has, or who it is"
fi

# root's cache is everyone's; a cgroup hides these GPUs from the driver
fakes=${DT_BUILD:-$top/build}/tests/unit/topo/new/.libs
# shellcheck disable=SC2016 # of the inner shell
hidden='mount -t tmpfs none /run && "$0" --cached --refresh --conf "$1" |
    grep -c ^Gpu=
    ls /run/slurm-dt 2>/dev/null'
if [ "$(id -u)" = 0 ] && [ -e "$fakes/libnvidia-ml.so.1" ] &&
    unshare -m mount -t tmpfs none /run 2>/dev/null; then
    hide() {
        DT_FAKE_NVML=hgx-h100 HWLOC_THISSYSTEM=1 LD_LIBRARY_PATH=$fakes \
            XDG_RUNTIME_DIR=$tmp \
            HWLOC_XMLFILE=$top/tests/topologies/rtx-2.hwloc.xml \
            timeout 300 unshare -m sh -c "$hidden" "$tool" empty.conf 2>/dev/null
    }
    is "hidden GPUs are not kept for others" "$(hide)" 10
else
    ok "hidden GPUs # SKIP needs root, mount namespaces and the false driver"
fi

# a driver that kills or holds who asks it costs its answer, nothing else
if [ -e "$fakes/libnvidia-ml.so.1" ] && asked >/dev/null 2>&1; then
    rm -rf driver && mkdir -m 700 driver
    with_driver() {
        DT_FAKE_NVML=$1 LD_LIBRARY_PATH=$fakes timeout 300 \
            "$tool" --cached --conf empty.conf --cache "$tmp/driver" 2>&1
    }
    like "a driver that crashes" "$(with_driver crash)" \
        '^dt-topo: asking the GPU driver failed \(it crashed with signal 6'
    like "the rest is printed" "$(with_driver crash)" '^DtTopology'
    like "a driver that hangs" "$(with_driver hang)" \
        '^dt-topo: asking the GPU driver failed \(it took longer than 5 s'
    is "neither answer is kept" "$(ls driver)" ""
else
    ok "a broken driver # SKIP no false driver, or this node tells nothing"
fi

# ---- a cluster ----

cpus=$(seq -s, 0 2 400) # a line that srun would cut
sed -e "s/Cpus=0-7/Cpus=$cpus/; s/Cpus=8-15/Cpus=401-408/" good.topo >long.topo
echo "NodeName=n0 Topology=long.topo" >long.conf
framed=$(SLURMD_NODENAME=n0 topo --cached --framed --conf long.conf)
is "frames are short" "$(awk 'length > 500' <<<"$framed")" ""
is "and give what was put in" "$(sed -n 's/^dt-topo@n0|/|/p
    s/^dt-topo@n0>/>/p' <<<"$framed" | awk '{ printf "%s%s", substr($0, 2),
    /^>/ ? "" : "\n" }')" "$(topo --input long.topo --text)"
mkdir bin
cat >bin/srun <<END
#!/bin/sh
printf '%s\n' "\$@" >"$tmp/srun.log"
while [ "\${1#-}" != "\$1" ]; do shift; done
for node in n0 n1 n2; do
    SLURMD_NODENAME=\$node "\$@" >"$tmp/\$node.out"
done
echo "srun: something else"
paste -d '\n' "$tmp/n0.out" "$tmp/n1.out" "$tmp/n2.out" | sed '/^\$/d'
END
printf '#!/bin/sh\nexit 1\n' >bin/sinfo
chmod 755 bin/srun bin/sinfo
cluster() { PATH=$tmp/bin:$PATH topo --conf "$tmp/dt.conf" "$@"; }
out=$(cluster -w 'n[0-3]'; echo "exit $?")
is "the odd one and the silent one" "$(grep -v ^dt-topo <<<"$out")" \
    "n[0-1] (2 nodes): 4 GPUs (GPU <X>), 2 NICs, 2 NUMA nodes, 16 CPUs
n2 (1 node): 4 GPUs (GPU <X>), 2 NICs, 2 NUMA nodes, 16 CPUs
  differs from n0:
    NIC mlx5_1: down
    GPU 0 (00ff:10:00.0): 3 NVLinks to GPU 1, expected 4
n3 (1 node): no answer
exit 1"
like "notes name their node" "$out" '^dt-topo: n2: site file'
like "what else srun says" "$out" '^dt-topo: from srun: srun: something else$'
is "all alike" "$(cluster -w n0,n1 >/dev/null; echo $?)" 0
for word in '--nodelist=n[0-1]' --nodes=2 --ntasks-per-node=1 --overcommit \
    --cached --framed; do
    ok "srun was given $word" grep -qxFe "$word" srun.log
done
is "inside a job, beside its steps" "$(SLURM_JOB_ID=1 cluster -w n0 >/dev/null
    grep -cxe --overlap srun.log)" 1
states() { printf '#!/bin/sh\nprintf "%s"\n' "$1" >bin/sinfo; }
states 'n0 idle\\nn0 idle\\nn1 mixed\\nn7 drained\\nn4 idle*\\nn5 allocated\\n'
out=$(cluster -w 'n[0-1,3-7]'; echo "exit $?")
is "who is away is not waited for" "$(grep -v ^dt-topo <<<"$out")" \
    "n[0-1] (2 nodes): 4 GPUs (GPU <X>), 2 NICs, 2 NUMA nodes, 16 CPUs
n[3,6] (2 nodes): not asked: unknown to Slurm
n4 (1 node): not asked: idle*
n5 (1 node): not asked: allocated
n7 (1 node): not asked: drained
exit 1"
ok "nor asked" grep -qxe '--nodelist=n\[0-1\]' srun.log
is "in a job its nodes are allocated" "$(SLURM_JOB_ID=1 cluster -w n0,n5 \
    >/dev/null; grep -e --nodelist= srun.log)" "--nodelist=n[0,5]"
rm srun.log
is "all are away" "$(cluster -w n7; echo $?)" "n7 (1 node): not asked: drained
1"
ok "so there is no srun" [ ! -e srun.log ]
printf '#!/bin/sh\nexit 1\n' >bin/sinfo
sed -i 's/| sed .*/| sed "\/n0.Gpu=0\/d; \/n1#\/d"/' bin/srun
like "what is cut short is no answer" "$(cluster -w n0,n1)" \
    '^n\[0-1\] \(2 nodes\): no answer$|^n1 \(1 node\): no answer$'
printf '#!/bin/sh\nexec sleep 250\n' >bin/srun
like "nodes that take too long" "$(cluster -w n0 --timeout 1)" \
    '^n0 \(1 node\): no answer within 1 s$'
cat >bin/srun <<END
#!/bin/bash
trap 'echo ended >"$tmp/ended"; exit' TERM
echo >"$tmp/started"
for ((i = 0; i < 1200; i++)); do sleep 0.1; done
END
PATH=$tmp/bin:$PATH "$tool" -w n0 >/dev/null 2>&1 &
for ((i = 0; i < 1200; i++)); do [ -e started ] && break; sleep 0.1; done
kill -TERM $!
wait $! 2>/dev/null
is "who is ended ends srun first" "$? $(cat ended)" "143 ended"
like "no srun" "$(PATH=$tmp/none "$tool" -w n0 2>&1)" '^dt-topo: srun: '
is "and that is trouble" "$(PATH=$tmp/none "$tool" -w n0 >/dev/null 2>&1
    echo $?)" 2
like "a list that is none" "$(topo -w 'n[0-')" '^dt-topo: .*expected node names'

done_testing
