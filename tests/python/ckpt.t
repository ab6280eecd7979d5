#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# ckpt.t - slurm_dt.ckpt: what its functions promise, on 1 to 3 ranks; the
# example, which ends with the same bits after a preemption; ranks that are
# killed; a full disk. DT_TORCH names a Python with PyTorch 2.15, for DTensors
# and torch.distributed.checkpoint.

# shellcheck source=tests/python/python.sh
. "$(dirname "$0")/python.sh"
need_package
here=$top/tests/python

export ROOT=$tmp/root
mkdir "$ROOT"
for n in 1 2 3; do
    every_function "$n" "$here/ckpt.py" "$n ranks"
done
"$build/tools/dt-ckpt" verify "$ROOT/full-2" >/dev/null
is "dt-ckpt verifies what was saved" "$?" 0

out=$("$python" -c 'import sys
sys.modules["torch"] = None
import slurm_dt.ckpt' 2>&1)
like "without torch: a clear line" "$(tail -n 1 <<<"$out")" \
    '^ImportError: slurm_dt.ckpt needs PyTorch'
out=$("$python" -c 'import torch
torch.__version__ = "2.14.1"
from slurm_dt.ckpt import Writer' 2>&1)
like "an older torch: a line that names the other way" \
    "$(tail -n 1 <<<"$out")" \
    '^ImportError: slurm_dt.ckpt.Writer and Reader need PyTorch 2.15 or later, and this is 2.14.1: use slurm_dt.ckpt.Directory'

# ---- the example ----

if [ -d /usr/share/datasets/fashion-mnist ]; then
    export EPOCHS=1 SAMPLES=2048 DT_NOTICE=$tmp/notice
    example=$top/doc/examples/fashion_torch_ckpt.py
    mkdir "$tmp/undisturbed" "$tmp/preempted"
    cd "$tmp/undisturbed" || exit
    : >"$DT_NOTICE"
    weights=$(ranks 2 "$example" 2>/dev/null | grep ^done)
    cd "$tmp/preempted" || exit
    printf 1 >"$DT_NOTICE"
    out=$(ranks 2 "$example" 2>&1)
    is "the example leaves when it is notified" "$?" 75
    like "after it has saved" "$out" '^saved at step 1, exit 75$'
    out=$(ranks 2 "$example" 2>&1)
    like "and again, after it went on" "$out" '^saved at step 2, exit 75$'
    : >"$DT_NOTICE"
    for n in 1 3; do
        cp -R "$tmp/preempted" "$tmp/on-$n"
    done
    out=$(ranks 2 "$example" 2>&1)
    like "it resumes where it was" "$out" '^resumed at step 2$'
    is "and ends with the weights of an undisturbed run" \
        "$(grep ^done <<<"$out")" "${weights:-none}"
    # 2 steps of 2 ranks and as many samples as are left
    for n in 1:30 3:11; do
        cd "$tmp/on-${n%:*}" || exit
        out=$(ranks "${n%:*}" "$example" 2>&1)
        like "a checkpoint of 2 ranks on ${n%:*}: goes on" "$out" \
            '^resumed at step 2$'
        like "a checkpoint of 2 ranks on ${n%:*}: to the end" "$out" \
            "^done: .* after ${n#*:} steps\$"
    done
    like "a rank that was not there says that it keeps its own" "$out" \
        '^slurm_dt: the checkpoint is of 2 ranks, this job has 3: .* random$'
    cd "$top" || exit
    unset DT_NOTICE
else
    ok "the example # SKIP dataset-fashion-mnist is not installed" true
fi

# ---- ranks that are killed ----

# The disk is so slow that only the memory of the node has the second one, which
# has another tensor.
cat >"$tmp/killed.py" <<'END'
import glob, os, signal, time, torch
from slurm_dt import ckpt
root = os.environ["ROOT"] + "/killed"
state = {"x": torch.ones(100), "list": [1]}
directory = ckpt.Directory(root)
step = directory.load(state) if os.path.exists(root + ".2") else 0
if step:
    print(f"step {step} {state['x'].sum():.0f} {len(state['list'])} "
          f"{state.get('y', state['x']).numel()}\n", end="", flush=True)
    os._exit(0)
directory.save(state, 1)
state["x"] += 1
state["list"].append(torch.ones(1 << 24))
directory.save_async(state, 2)
pattern = "/dev/shm/slurm-dt*/**/step-000000000002/manifest.json"
run = "/" + ckpt.run_id() + "/"
while not any(run in name for name in glob.glob(pattern, recursive=True)):
    time.sleep(0.01)
open(root + ".2", "w").close()
os.kill(os.getpid(), signal.SIGKILL)
END
export DT_RUN_ID=ckpt-t-$$
out=$(DT_CKPT_RATE=1 ranks 2 "$tmp/killed.py" 2>&1)
like "ranks are killed while they save" "$out" 'killed by signal 9'
sed -i 's/^state = .*/state = {"x": torch.zeros(100), "list": []}/' \
    "$tmp/killed.py"
out=$(ranks 2 "$tmp/killed.py" 2>&1)
is "what only the memory of the node has is loaded" \
    "$(grep -c '^step 2 200 2 100$' <<<"$out")" 2
[ "$(grep -c '^step 2' <<<"$out")" -eq 2 ] || tap_show output "$out"
unset DT_RUN_ID
rm -rf /dev/shm/slurm-dt*/"ckpt-t-$$" /dev/shm/slurm-dt/*/"ckpt-t-$$"

# ---- a rank that is lost in an elastic job ----

cat >"$tmp/elastic.py" <<'END'
import os, signal, torch
import slurm_dt.torch as hvd
from slurm_dt import ckpt
hvd.init()
torch.manual_seed(0)
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
directory = None
@hvd.elastic.run
def train(state):
    global directory
    directory = directory or ckpt.Directory(os.environ["ROOT"] + "/elastic")
    while state.step < 6:
        state.step += 1
        if state.step == 3 and hvd.rank() == 1 and hvd.size() == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        hvd.allreduce(torch.ones(1), name="x")
        directory.save_async({"model": model, "step": state.step}, state.step)
        state.commit()
    directory.wait()
    print(f"rank {hvd.rank()} of {hvd.size()}: step {directory.latest()}\n",
          end="", flush=True)
train(hvd.elastic.TorchState(model=model, optimizer=optimizer, step=0))
END
out=$(timeout -k 5 320 "$build/pmix/dt-run" --bind none --elastic 2 -n 3 \
    "$python" "$tmp/elastic.py" 2>&1)
is "after a loss the directory is opened again in the new world" \
    "$(grep -c '^rank [01] of 2: step 6$' <<<"$out")" 2
[ "$(grep -c '^rank' <<<"$out")" -eq 2 ] || tap_show output "$out"

# ---- a full disk ----

cat >"$tmp/full.py" <<'END'
import errno, os, torch
from slurm_dt import ckpt
x = torch.ones(1 << 18)
with ckpt.Directory(os.environ["ROOT"] + "/full") as directory:
    directory.save({"x": x}, 1)
    big = {"x": x, "y": torch.rand(1 << 20)}
    try:
        directory.save(big, 2)
    except OSError as error:
        print(f"{error.errno == errno.ENOSPC} {error}\n", end="", flush=True)
    directory.save_async(big, 3)
    directory.save_async({"x": x + 1}, 4)  # the training goes on
    directory.wait()
    state = {"x": torch.zeros(1 << 18)}
    print(f"step {directory.load(state)} {state['x'][7]:.0f}\n", end="",
          flush=True)
END
full()
{
    mkdir -p "$ROOT/full" && mount -t tmpfs -o size=4m none "$ROOT/full" &&
        ranks 2 "$tmp/full.py"
}
export -f full ranks
export build python
if unshare -rm mount -t tmpfs none /mnt 2>/dev/null; then
    out=$(tmp=$tmp unshare -rm bash -c full 2>&1)
    is "a full disk is an OSError on each rank, in one line" \
        "$(grep -c '^True .*No space left' <<<"$out")" 2
    like "in the background it is a line on stderr" "$out" \
        'the next one is tried all the same'
    is "then the next one is saved" "$(grep -c '^step 4 2$' <<<"$out")" 2
    [ "$(grep -c '^step 4 2$' <<<"$out")" -eq 2 ] || tap_show output "$out"
else
    ok "a full disk # SKIP needs privileges" true
fi

# ---- PyTorch 2.15 ----

if ! "${DT_TORCH:-false}" -c 'import slurm_dt.torch_backend' 2>/dev/null; then
    ok "DTensors, torch.distributed.checkpoint # SKIP DT_TORCH names no torch 2.15" true
    done_testing
    exit
fi

python=$DT_TORCH
PHASE=save every_function 2 "$here/dcp.py" "saved by 2 ranks"
for n in 1 2 3; do
    PHASE=load every_function "$n" "$here/dcp.py" "loaded by $n"
done

done_testing
