#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# dt-ckpt.t - what dt-ckpt prints, verifies, compares, converts and refuses

top=$(cd "$(dirname "$0")/../../.." && pwd)
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
build=${DT_BUILD:-$top/build}
tool=$build/tools/dt-ckpt
make=$build/tests/unit/tools/ckpt-make
read=$build/tests/unit/tools/ckpt-read
for program in "$tool" "$make" "$read"; do
    [ -x "$program" ] || skip_all "not built: $program"
done

tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export LC_ALL=C
unset SLURM_JOB_ID

ckpt() { timeout -k 5 300 "$tool" "$@" 2>&1; }
status() { timeout -k 5 300 "$tool" "$@" >/dev/null 2>&1; echo $?; }
# a byte of FILE at OFFSET becomes another
flip() { printf '\377\377' | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null; }
# nothing half-written is left in a directory
hidden() { find "$@" -name '.*' ! -name '.' -o -name '*.tmp*'; }
rank() { echo "$1/rank-0000$2-of-00004.safetensors"; }

# four ranks on two nodes, twice; the second is one larger in every element
"$make" job 10 && "$make" job 20 1 || exit 1
a=job/step-000000000010 b=job/step-000000000020

# ---- usage ----

is "no argument" "$(status) $("$tool" 2>/dev/null | wc -c)" "64 0"
like "--help" "$(ckpt --help)" '^usage: dt-ckpt COMMAND'
is "--help is no error" "$(status --help)" 0
like "--version" "$(ckpt -V)" '^dt-ckpt [0-9]+\.'
for bad in frob list "list a b" "list --force a" "show a --tensor" \
    "prune a" "prune a --keep 0" "prune a --keep=x" "import a b" \
    "import a --step 1" "import a b --step -1" "reshard a b" \
    "reshard a b --ranks 0" "export a" "export a b --numpy c" "diff a" \
    "watch a --count 0" "flush a" "--json" "list -x a" "verify" "repair"; do
    # shellcheck disable=SC2086 # words, on purpose
    is "usage: $bad" "$(status $bad) $(ckpt $bad | wc -l)" "64 1"
done
like "what was expected is said" "$(ckpt reshard a b)" \
    '^dt-ckpt: reshard: expected: dt-ckpt reshard STEP DIR --ranks N'
for bad in "list nowhere" "show nowhere" "verify nowhere" "watch nowhere" \
    "export nowhere x" "flush nowhere x" "prune nowhere --keep 1" \
    "show ." "verify ." "show job/step-11" "show job --tensor nothing"; do
    # shellcheck disable=SC2086
    is "one line: $bad" "$(status $bad) $(ckpt $bad | grep -c ^dt-ckpt:)" "1 1"
done
is "an output that cannot be written" "$("$tool" list job 2>&1 >/dev/full)" \
    "dt-ckpt: the output could not be written"

# ---- list and show ----

is "list" "$(ckpt list job | tr -s ' ' | sed 's/^ //')" \
"STEP WHEN SIZE RANKS NODES RUN COPY s WRITE s STATE
20 2026-01-31T23:59:59Z 6.87 MiB 4 2 4711 0.25 1.50 complete
10 2026-01-31T23:59:59Z 6.87 MiB 4 2 4711 0.25 1.50 complete"
is "an empty directory" "$(mkdir -p none; ckpt list none)" ""
cp -r job odd
mkdir odd/.step-000000000030.partial-0000000000000001 odd/other
rm odd/step-000000000020/rank-00001-*
cp -r "odd/step-000000000010" odd/step-000000000012
echo '{' >odd/step-000000000012/manifest.json
mkdir odd/step-000000000011
list=$(ckpt list odd | tr -s ' ')
like "list: being written" "$list" '30 \(hidden\) .* being written'
like "list: a file is missing" "$list" '20 .*rank-00001-of-00004.* is missing'
like "list: a torn manifest" "$list" '12 - .*manifest.json: is torn'
like "list: no manifest" "$list" '11 - .*no manifest.json'
like "list: one is well" "$list" ' 10 .*complete$'
rm odd/step-000000000020/rank-00000-*
like "list: all of a node's files are elsewhere" "$(ckpt list odd)" \
    'the files of node 0 are not here'
json() { python3 -c "import json,sys; d=json.load(sys.stdin); print($1)"; }
if command -v python3 >/dev/null; then
    is "list --json" "$(ckpt list odd --json |
        json '[(e["step"], e["complete"]) for e in d]')" \
        "[(30, False), (20, False), (12, False), (11, False), (10, True)]"
    is "show --json" "$(ckpt show job --json |
        json '[(t["name"], t["kind"], len(t["slices"])) for t in d["tensors"]]')" \
"[('big', 'global', 2), ('grid', 'global', 4), ('rng', 'blob', 4), \
('state', 'own', 4), ('table', 'global', 1)]"
else
    ok "--json # SKIP no python3"
fi
like "show takes the newest" "$(ckpt show job)" '^step 20 of run 4711'
for name in job/step-10 job/step-10/ "$a" "$a/"; do
    like "show $name" "$(ckpt show "$name")" '^step 10 of run 4711'
done
like "show: how long it took" "$(ckpt show job)" \
    '^it took 0.25 s to copy and 1.50 s to write'
like "show: a tensor" "$(ckpt show job | tr -s ' ')" \
    '^big F64 \[3, 300000\] global 2 6\.87 MiB'
like "show: who wrote what" "$(ckpt show job | tr -s ' ')" \
    '^rank-00002-of-00004\.safetensors 2 1 3 297 B'
like "show --tensor" "$(ckpt show job --tensor grid | tr -s ' ')" \
    ' 2 1 \[3, 0\] \[3, 4\] 48 B [0-9]+ rank-00002'

# ---- verify ----

is "verify" "$(ckpt verify job; status verify job)" \
"$b: ok, 5 tensors in 4 files, 6.87 MiB
$a: ok, 5 tensors in 4 files, 6.87 MiB
0"
cp -r job bad
flip "$(rank bad/step-000000000010 1)" 1000000
is "verify: a block" "$(ckpt verify bad/step-10)" \
"bad/step-10: rank-00001-of-00004.safetensors: the checksum of the 3600000 \
bytes from 336 on differs (tensor big, rank 1)"
is "and exit 1" "$(status verify bad)" 1
like "the other one is well" "$(ckpt verify bad)" '20: ok'
flip "$(rank bad/step-000000000010 2)" 20
like "verify: a header" "$(ckpt verify bad/step-10)" \
    'rank-00002.*: the checksum of its header differs'
truncate -s -1 "$(rank bad/step-000000000010 3)"
like "verify: a length" "$(ckpt verify bad/step-10)" \
    'rank-00003.* has [0-9]* bytes, expected [0-9]*'
rm "$(rank bad/step-000000000010 0)"
ln -s /dev/zero "$(rank bad/step-000000000010 0)"
like "verify: a link" "$(ckpt verify bad/step-10)" 'rank-00000.* no regular file'
is "all of them are named" "$(ckpt verify bad/step-10 | wc -l)" 4
flip bad/step-000000000020/manifest.json 100
like "verify: the manifest" "$(ckpt verify bad/step-20)" 'manifest.json: '
is "export refuses damage" "$(status export bad/step-10 x) \
$(find . -maxdepth 1 -name '*x*')" "1 "
if command -v python3 >/dev/null; then
    is "verify --json" "$(ckpt verify bad job --json |
        json '[(e["ok"], len(e["damage"])) for e in d]')" \
        "[(False, 1), (False, 4), (True, 0), (True, 0)]"
fi

# ---- diff ----

is "diff of the same" "$(ckpt diff $a $a; status diff $a $a)" 0
is "diff: elements" "$(ckpt diff $a $b | grep -v ' of rank [1-3]')" \
"big: 900000 of 900000 elements differ, the first is [0, 0], the largest \
difference 1
grid: 48 of 48 elements differ, the first is [0, 0], the largest difference 1
rng of rank 0: 1 of 1 elements differ, the first is [0]
state of rank 0: 3 of 3 elements differ, the first is [0], the largest \
difference 0.000976562
table: 5 of 5 elements differ, the first is [0]"
is "diff: exit 1, trouble is 2" "$(status diff $a $b) $(status diff $a x)" "1 2"

# ---- reshard ----

# what is each rank's own keeps its number
like "reshard refuses each rank's own" "$(ckpt reshard $a x --ranks 3)" \
    'each rank.s own'
is "and leaves nothing" "$(find . -maxdepth 1 -name x)" ""
is "reshard" "$(ckpt reshard $a cut --ranks 4; ckpt diff $a cut)" ""
like "equal parts" "$(ckpt show cut --tensor grid | tr -s ' ')" \
    ' 3 0 \[5, 0\] \[1, 8\] 32 B'
is "reshard verifies what it reads" "$(status reshard bad/step-10 x --ranks 4)" 1
is "reshard does not overwrite" "$(status reshard $b job --ranks 4) \
$(ckpt reshard $b job --ranks 4)" "1 dt-ckpt: $b is there already; --force \
replaces it"
cp -r job job2
is "unless --force is given" "$(status reshard job2 job2 --ranks 4 --force)" 0
is "and then all is the same" "$(ckpt verify job2 | grep -c ok) \
$(status diff job2 $b)" "2 0"

# ---- flush, prune, watch ----

is "flush" "$(ckpt flush job other)" \
"other/step-000000000010: copied, 6.87 MiB
other/step-000000000020: copied, 6.87 MiB"
is "bit for bit" "$(diff -r job other)" ""
is "flush copies what is lacking" "$(rm -r other/step-*10; ckpt flush job other)" \
    "other/step-000000000010: copied, 6.87 MiB"
cp -r job half
flip "$(rank half/step-000000000020 3)" 2000000
like "flush passes over damage" "$(ckpt flush half other2)" \
    '^dt-ckpt: half/step-000000000020: rank-00003'
is "and says so" "$(rm -r other2; status flush half other2) $(ls other2)" \
    "1 step-000000000010"
is "nothing half-written" "$(hidden other other2 job2 cut)" ""

for i in 1 2 3 4 5 6; do "$make" many "${i}0"; done
rm many/step-000000000060/rank-00002-*
is "prune --dry-run" "$(ckpt prune many --keep 2 --every 20 --dry-run |
    sed 's/:.*//'; echo many/*)" \
"dt-ckpt
many/step-000000000030
many/step-000000000010
$(echo many/*)"
is "prune" "$(ckpt prune many --keep 2 --every 20; cd many && echo *)" \
"dt-ckpt: many/step-000000000060 is not complete: it does not count, and stays
many/step-000000000030: removed
many/step-000000000010: removed
step-000000000020 step-000000000040 step-000000000050 step-000000000060"
if command -v python3 >/dev/null; then
    is "prune --json" "$("$tool" prune many --keep 1 --json 2>/dev/null |
        json '[sorted(d.items())]')" \
"[[('broken', [60]), ('dry_run', False), ('kept', [50]), ('removed', [40, 20])]]"
fi
is "nothing hidden is left" "$(hidden many)" ""

"$make" seen 5
sleeps() # PID; until it is the tool, no more the shell before it, and waits
{
    until [ "$(cat "/proc/$1/comm")" = dt-ckpt ] &&
        grep -q State:.S "/proc/$1/status"; do
        kill -0 "$1" || return
        sleep 0.05
    done 2>/dev/null
}
"$tool" watch seen --count 2 >watched 2>&1 &
watcher=$!
sleeps "$watcher" # so it has seen what was there before
"$make" seen 6 && "$make" seen 7
wait "$watcher"
is "watch --count ends" "$? $(wc -l <watched)" "0 2"
like "watch: a new one" "$(head -n 1 watched)" \
    '^seen/step-000000000006: 6\.87 MiB, 4 ranks on 2 nodes, run 4711'
# Who runs the tests in the background may ignore ^C.
interrupt() # COMMAND...; its status after ^C, once it has begun to wait
{
    set -m
    env --default-signal=INT "$tool" "$@" >/dev/null 2>interrupted &
    local pid=$!
    sleeps "$pid"
    kill -INT "$pid"
    wait "$pid"
    echo $?
}
is "watch ends on ^C" "$(interrupt watch seen)" 0

# ---- repair ----

for case in "2 partner 1" "4 xor:4 2" "4 rs:2+2 03" "4 rs:2+2 12" "4 rs:1+3 023"; do
    read -r nodes scheme lost <<<"$case"
    rm -rf nodes spare && "$make" nodes 10 3 "$nodes" "$scheme"
    rm nodes/step-*/* && mkdir all # all that they have, in one
    cp -l nodes/*/step-*/[rmp]* all/ 2>/dev/null
    dirs=() name="$scheme: without ${lost:0:1}${lost:1:1}${lost:2:1}"
    for ((n = 0; n < nodes; n++)); do
        [[ $lost != *$n* ]] || { rm -r "nodes/$n" && mkdir "nodes/$n"; }
        dirs+=("nodes/$n")
    done
    is "$name is repaired" "$(ckpt repair "${dirs[@]}" | grep -vc ': rebuilt')" 0
    for ((n = 0; n < nodes; n++)); do
        for file in nodes/"$n"/step-*/[rmp]*; do
            cmp "$file" "all/${file##*/}" || echo "$file differs"
        done
    done >differ 2>&1
    is "bit for bit, parity too" "$(cat differ) $(
        find nodes -name 'rank-*' | wc -l) $(find nodes -name 'parity-*' |
        wc -l)" \
        " 4 $nodes"
    is "nothing is lost then" "$(ckpt repair "${dirs[@]}")" "step 10: nothing is lost"
    is "nothing half-written" "$(hidden nodes)" ""
    rm -r all
done
rm -rf nodes && "$make" nodes 10 3 4 rs:2+2
for lost in 03 12 01 23; do
    for n in "${lost:0:1}" "${lost:1}"; do
        rm -r "nodes/$n" && mkdir "nodes/$n"
    done
    is "two nodes are lost after two others ($lost)" \
        "$(ckpt repair nodes/[0-3] | grep -c ': rebuilt')" 4
done
rm nodes/1/step-000000000010/parity-*
flip nodes/2/step-000000000010/parity-00002-of-00004.bin 5000
is "parity alone is repaired" "$(ckpt repair nodes/[0-3] | sed 's/, of.*//')" \
"nodes/1/step-000000000010/parity-00001-of-00004.bin: rebuilt
nodes/2/step-000000000010/parity-00002-of-00004.bin: rebuilt"
rm -rf nodes && "$make" nodes 10 3 4 rs:2+2
flip "$(rank nodes/1/step-000000000010 1)" 1000000
truncate -s 100 "$(rank nodes/2/step-000000000010 2)"
is "damaged ones are repaired, too" "$(ckpt repair nodes/[0-3] | sed 's/, of.*//')" \
"$(rank nodes/1/step-000000000010 1): rebuilt
$(rank nodes/2/step-000000000010 2): rebuilt"
rm -r nodes/[123]/step-*
out=$(ckpt repair nodes/[0-3])
like "too much is lost" "$out" \
    '^dt-ckpt: step 10: rank-00001.* too much else is lost: rs:2\+2 cannot'
is "each file that is missing is named" \
    "$(grep -c 'is still missing' <<<"$out") $(tail -n 1 <<<"$out")" \
    "3 dt-ckpt: step 10: 3 files are still missing, nothing was written"
is "and nothing else is done" "$(status repair nodes/[0-3]) \
$(ls -A nodes/1 nodes/2)" "1 nodes/1:

nodes/2:"
is "repair of what is well" "$(ckpt repair other)" \
"step 20: nothing is lost
step 10: nothing is lost"
like "repair without redundancy" "$(ckpt repair bad)" \
    'step 10 was saved without redundancy, and 4 of its files are lost'

# ---- one job at a time ----

if command -v python3 >/dev/null; then
    cat >lock.py <<'PY'
import fcntl, os, struct, subprocess, sys
fd = os.open(sys.argv[1] + "/.lock", os.O_RDWR | os.O_CREAT)
lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 1, 1, 0)
fcntl.fcntl(fd, fcntl.F_OFD_SETLK, lock)
sys.exit(subprocess.run(sys.argv[2:]).returncode)
PY
    for command in "prune other --keep 1" "flush job other" \
        "reshard $a other --ranks 4 --force"; do
        # shellcheck disable=SC2086
        like "not while a job is at it: ${command%% *}" \
            "$(python3 lock.py other "$tool" $command 2>&1)" 'is in use by'
    done
    is "but looking is" "$(python3 lock.py other "$tool" prune other --keep 1 \
        --dry-run)" "other/step-000000000010: would be removed"
    rm -f other/.lock
fi

# ---- safetensors, of the package of that name ----

cat >st.py <<'PY'
import ctypes, struct, sys
import safetensors

def write(path, tensors):
    keep, spec = [], {}
    for name, (dtype, shape, data) in tensors.items():
        if hasattr(safetensors, "TensorSpec"):
            keep.append(ctypes.create_string_buffer(data, max(len(data), 1)))
            spec[name] = safetensors.TensorSpec(
                dtype=dtype, shape=shape, data_len=len(data),
                data_ptr=ctypes.addressof(keep[-1]))
        else:
            spec[name] = {"dtype": dtype, "shape": shape, "data": data}
    with open(path, "wb") as f:
        f.write(safetensors.serialize(spec, {"format": "pt"}))

def read(path):
    with open(path, "rb") as f:
        return {k: (v["dtype"], v["shape"], bytes(v["data"]))
                for k, v in safetensors.deserialize(f.read())}
PY
cat >make.py <<'PY'
import st
def some(n): return bytes((7 * i + 3) % 251 for i in range(n))
known = {"w": ("float32", [3000, 500], some(6000000)), "s": ("int64", [], some(8)),
         "layer/b": ("bfloat16", [5], some(10)), "e": ("float64", [0, 4], b""),
         "u": ("uint8", [3], some(3)), "i": ("int32", [2, 1], some(8)),
         "h": ("float16", [1], some(2)), "c": ("int8", [1], some(1)),
         "f": ("float8_e4m3fn", [3], some(3)), "g": ("float8_e5m2", [1], some(1))}
st.write("theirs.safetensors", known)
for name, size in ("bool", 1), ("int16", 2), ("uint16", 2), ("uint32", 4), ("uint64", 8):
    st.write("bad-%s.safetensors" % name, {"x": (name, [2], some(2 * size))})
PY
if python3 make.py 2>/dev/null; then
    is "their file is imported" "$(ckpt import theirs.safetensors in --step 7
        ckpt verify in)" "in/step-000000000007: ok, 10 tensors in 1 files, 5.72 MiB"
    is "and exported again" "$(ckpt export in ours.safetensors; python3 -c '
import st
print(st.read("theirs.safetensors") == st.read("ours.safetensors"))')" True
    is "cut into parts in between, too" "$(ckpt reshard in in3 --ranks 3
        ckpt export in3 ours3.safetensors; cmp ours.safetensors ours3.safetensors)" ""
    is "they read a job's files" "$(ckpt export $a job.safetensors; python3 -c '
import st, struct
t = st.read("job.safetensors")
r = st.read("'"$(rank $a 3)"'")
print(sorted(t), [r["grid"][:2], r["rng"]])
print(struct.unpack("<48f", t["grid"][2]) == tuple(range(48)),
      struct.unpack("<900000d", t["big"][2]) == tuple(range(900000)),
      struct.unpack("<5q", t["table"][2]), t["rng.blob-2"])')" \
"['big', 'grid', 'rng.blob-0', 'rng.blob-1', 'rng.blob-2', 'rng.blob-3', \
'state.rank-0', 'state.rank-1', 'state.rank-2', 'state.rank-3', 'table'] \
[('F32', [3, 4]), ('U8', [4], b'\x03\x04\x05\x06')]
True True (0, 1, 2, 3, 4) ('U8', [3], b'\x02\x03\x04')"
    for bad in bool:BOOL int16:I16 uint16:U16 uint32:U32 uint64:U64; do
        is "refused: ${bad#*:}" \
            "$(ckpt import "bad-${bad%:*}.safetensors" x --step 1)" \
"dt-ckpt: bad-${bad%:*}.safetensors: tensor x has elements of type ${bad#*:}, \
which libdt does not know"
    done
else
    ok "their files # SKIP no Python package safetensors"
fi
is "export does not overwrite" "$(echo mine >file; status export $a file) \
$(cat file)" "1 mine"
is "unless --force is given" "$(status export $a file --force) $(wc -c <file)" \
    "0 $(ckpt export $a file2; wc -c <file2)"
is "import does not overwrite" "$(status import file job --step 10)" 1
is "a name twice" "$(ckpt import file file2 x --step 1)" \
    "dt-ckpt: two tensors would be called big"
is "what single ranks have is theirs again" "$(ckpt import file2 own --step 10
    ckpt diff $a own; ckpt verify own
    ckpt show own | grep -E '^(rng|state|table)|of . ranks')" \
"own/step-000000000010: ok, 5 tensors in 4 files, 6.87 MiB
5 tensors in 4 files, 6.87 MiB, of 4 ranks on 1 nodes
rng     bytes            blob             4      10 B
state   F16 [3]          own              4      24 B
table   I64 [5]          replicated       1      40 B"
mkdir lens
head -c 500 file >lens/short
{ printf '\377\377\377\377\377\377\377\177'; cat file; } >lens/long
: >lens/empty
for f in lens/* /dev/null .; do
    is "not imported: $f" "$(status import "$f" x --step 1) \
$(ckpt import "$f" x --step 1 | wc -l)" "1 1"
done

# ---- libdt loads what dt-ckpt makes ----

# an .npy file by hand: x, F32 [3, 2], from 1 to 6
{
    printf "\223NUMPY\1\0v\0%-117s\n" \
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }"
    printf '\0\0\200\077\0\0\0\100\0\0\100\100'
    printf '\0\0\200\100\0\0\240\100\0\0\300\100'
} >x.npy
loaded() { timeout 300 "$read" "$@" 2>&1; }
ckpt import x.npy made --step 9
is "an import" "$(loaded made 3 2)" "step 9: 1 2 3 4 5 6"
is "cut for three ranks" "$(ckpt reshard made made3 --ranks 3
    loaded made3 3 2)" "step 9: 1 2 3 4 5 6"
is "copied" "$(ckpt flush made3 made4 >flushed; loaded made4 3 2)" "step 9: 1 2 3 4 5 6"

# rows that are longer than the pieces in which bytes are moved
{
    printf "\223NUMPY\1\0v\0%-117s\n" \
        "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 20000000), }"
    seq 10000000 | head -c 60000000
} >long.npy
is "long rows" "$(ckpt import long.npy long --step 1
    ckpt reshard long long2 --ranks 2; ckpt diff long long2
    ckpt export long2 --numpy long.d; cmp long.npy long.d/long.npy)" ""

# blocks after the first
flip long/step-000000000001/rank-00000-of-00001.safetensors 9000000
is "verify: a later block" "$(ckpt verify long)" \
"long/step-000000000001: rank-00000-of-00001.safetensors: the checksum of the \
4194304 bytes from 8388744 on differs (tensor long, rank 0)"
is "export refuses it" "$(status export long x.long) $(find . -name 'x.long*')" \
    "1 "
flip long/step-000000000001/rank-00000-of-00001.safetensors 60000000
like "verify: two of them" "$(ckpt verify long)" \
    ' 8388744 .*\(tensor long, rank 0; more of its blocks, too\)$'

# ---- version 1 has a checksum of each file as a whole ----

cp -r "$top/tests/samples/ckpt-v1" v1 && chmod -R u+w v1
like "verify: version 1" "$(ckpt verify v1)" '^v1/step-000000000012: ok, '
flip "v1/step-000000000012/rank-00001-of-00002.safetensors" \
    $(($(wc -c <v1/step-000000000012/rank-00001-of-00002.safetensors) - 2))
is "and its damage" "$(ckpt verify v1; status verify v1)" \
"v1/step-000000000012: rank-00001-of-00002.safetensors: checksum differs
1"
is "which export refuses" "$(status export v1 x.v1) $(find . -name 'x.v1*')" "1 "

# ---- names as long as they may be ----

# the name of this file has 255 characters, that of its array 85
escaped=$(printf '%%2F%.0s' {1..83})
cp x.npy "${escaped}ab.npy"
is "a file name of 255" "$(ckpt import "${escaped}ab.npy" most --step 1
    ckpt export most --numpy most.d; cmp x.npy "most.d/${escaped}ab.npy")" ""
plain=$(printf 'x%.0s' {1..200})
cp x.npy "$plain.npy"
is "a tensor with a name of 200" "$(ckpt import "$plain.npy" most --step 2
    ckpt export most/step-2 --numpy most2.d; cmp x.npy "most2.d/$plain.npy")" ""
mv "$plain.npy" "x$plain.npy"
like "not of 201" "$(ckpt import "x$plain.npy" most --step 3)" \
    'its name is too long for a tensor'
# 84 characters to escape: the file name would have 256
header='{"'$(printf '/%.0s' {1..84})'":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'
{
    printf '%b\0\0\0\0\0\0\0' "\\0$(printf %o ${#header})"
    printf %s "$header"
} >longer.st
like "not exported as a file of 256" "$(ckpt import longer.st most --step 4
    ckpt export most/step-4 --numpy most4.d)" 'its name is too long for a file'

# ---- ^C leaves nothing half-written ----

# a file with a hole of a tebibyte: reading it never ends
printf "\223NUMPY\1\0v\0%-117s\n" \
    "{'descr': '|u1', 'fortran_order': False, 'shape': (1099511627776,), }" >hole
stop() # DIR COMMAND...; interrupt it when it has begun to write in DIR
{
    local dir=$1 pid
    shift
    set -m
    env --default-signal=INT "$tool" "$@" 2>interrupted &
    pid=$!
    until [ "$(find "$dir" -size +4096k)" ]; do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.02
    done
    kill -INT "$pid"
    wait "$pid"
    echo "$? $(cat interrupted) $(find "$dir" -mindepth 1)"
}
mkdir stopped
if truncate -s $((128 + 1099511627776)) hole 2>/dev/null; then
    is "^C while importing" "$(stop stopped import hole stopped --step 1)" \
        "130 dt-ckpt: interrupted "
else
    ok "^C # SKIP no file may be as large here"
fi

# ---- NumPy ----

numpy=
for python in python3 /usr/bin/python3; do
    "$python" -c 'import numpy' 2>/dev/null && numpy=$python && break
done
is "export --numpy" "$(ckpt export $a --numpy np; cd np && echo *)" \
"big.npy grid.npy rng.blob-0.npy rng.blob-1.npy rng.blob-2.npy rng.blob-3.npy \
state.rank-0.npy state.rank-1.npy state.rank-2.npy state.rank-3.npy table.npy"
is "it does not overwrite" "$(status export $a --numpy np)" 1
is "unless --force is given" "$(status export $a --numpy np/ --force)" 0
is "and back" "$(ckpt import np/*.npy back --step 3; ckpt export back b.st
    ckpt export $a a.st; cmp a.st b.st)" ""
is "also what single ranks have" "$(ckpt diff $a back)" ""
arrays() { find np -name '*.npy' ! -name "$1"; }
# shellcheck disable=SC2046 # names without spaces
is "one of a rank is missing" \
    "$(ckpt import $(arrays state.rank-2.npy) part --step 3)" \
"dt-ckpt: there is state.rank-1, but no state.rank-2: expected one of each of 4 \
ranks"
# shellcheck disable=SC2046
is "and the last one" "$(ckpt import $(arrays state.rank-3.npy) part --step 3)" \
"dt-ckpt: there is state.rank-2, but no state.rank-3: expected one of each of 4 \
ranks"
# shellcheck disable=SC2046
is "nor may a blob" "$(ckpt import $(arrays rng.blob-1.npy) part --step 3)" \
"dt-ckpt: there is rng.blob-0, but no rng.blob-1: expected one of each of 4 ranks"
cp np/state.rank-1.npy np/common.blob.npy # F16: no blob
cp np/rng.blob-1.npy np/all.blob.npy
cp np/table.npy np/state.rank-3.npy
is "ranks with different types" "$(ckpt import np/*.npy part --step 4)" \
"dt-ckpt: state.rank-2 and state.rank-3: expected the same type and shape"
is "a blob that all have; what only has the name of one" \
    "$(ckpt import np/*.blob.npy part --step 4; ckpt show part | grep blob)" \
"all          bytes    replicated blob       1   2 B
common.blob  F16 [3]  replicated            1   6 B"
if [ "$numpy" ]; then
    is "NumPy reads them" "$("$numpy" -c '
import numpy as n
g = n.load("np/grid.npy")
print(g.dtype, g.shape, (g.ravel() == n.arange(48)).all(), n.load("np/table.npy"))')" \
        "float32 (6, 8) True [0 1 2 3 4]"
    "$numpy" -c '
import numpy as n
n.save("x.npy", n.arange(6, dtype="f4").reshape(2, 3))
n.save("fortran.npy", n.asfortranarray(n.ones((2, 3))))
n.save("big-endian.npy", n.ones(2, ">f4"))
n.save("bool.npy", n.ones(2, "?"))
n.save("object.npy", n.array([{}]), allow_pickle=True)'
    is "and writes some" "$(ckpt import x.npy npy --step 1; ckpt show npy \
        --tensor x | head -n 1)" "x: F32 [2, 3], replicated, 1 slices"
    for f in fortran big-endian bool object; do
        is "not imported: $f" "$(status import $f.npy x --step 1) \
$(ckpt import $f.npy x --step 1 | wc -l)" "1 1"
    done
else
    ok "NumPy's own files # SKIP no NumPy"
fi
head -c 100 np/grid.npy >cut.npy
printf '\223NUMPY\1\0\377\377{' >huge.npy
for f in cut.npy huge.npy; do
    is "not imported: $f" "$(status import $f x --step 1)" 1
done
is "nothing is left of what failed" "$(find x -type f; hidden . | grep -v ^./odd/)" ""

done_testing
