#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# torch_backend.t - the backend "dt" of torch.distributed, on 2 and 3 ranks.
# Debian's PyTorch is too old for it: DT_TORCH names a Python with a newer one.

# shellcheck source=tests/python/python.sh
. "$(dirname "$0")/python.sh"
need_package
here=$top/tests/python

every_function 2 "$here/comm.py" "comm.py, 2 ranks"
every_function 3 "$here/comm.py" "comm.py, 3 ranks"

# DT_TORCH may be of another version than the one for which this line is.
out=$("$python" -c 'import torch
torch.__version__ = "2.14.1"
import slurm_dt.torch_backend' 2>&1)
like "an older torch: a line that names the other way" "$(tail -n 1 <<<"$out")" \
    '^ImportError: .*2\.15 or later, and this is 2\.14\.1: use slurm_dt\.torch,'

if ! "${DT_TORCH:-false}" -c 'import slurm_dt.torch_backend' 2>/dev/null; then
    ok "collectives, training # SKIP DT_TORCH names no torch 2.15" true
    done_testing
    exit
fi

python=$DT_TORCH
export GLOO_SOCKET_IFNAME=lo
every_function 2 "$here/torch_backend.py" "torch_backend.py, 2 ranks"
every_function 3 "$here/torch_backend.py" "torch_backend.py, 3 ranks"

begin='import os, signal, torch, torch.distributed as dist
import slurm_dt.torch_backend
dist.init_process_group("dt", init_method="dt://")
rank, x = dist.get_rank(), torch.ones(3)
dist.barrier()
'
out=$(ranks 3 -c "$begin"'
if rank == 1: # the others may still be in the barrier
    os.kill(os.getpid(), signal.SIGKILL)
dist.all_reduce(x)' 2>&1)
is "when a rank dies, the others raise, and name it" \
    "$(grep -c 'dt: .*rank 1 has died' <<<"$out")" 2

out=$(DT_CHECK=1 ranks 2 -c "$begin"'
try:
    dist.all_reduce(torch.ones(3 + rank))
except dist.DistBackendError as error:
    print(f"{error}\n", end="", flush=True)' 2>&1)
is "with DT_CHECK=1: which rank has another count" \
    "$(grep -c '^dt: DT_CHECK: rank 1 .* of 4 f32' <<<"$out")" 2

out=$(ranks 2 -c "$begin"'
work = dist.all_reduce(x, async_op=True)
dist.destroy_process_group()
print(f"sum {x.sum().item()}\n", end="", flush=True)' 2>&1)
is "a group that is destroyed completes its work" \
    "$(grep -c '^sum 6.0$' <<<"$out")" 2

out=$(TORCH_DISTRIBUTED_DEBUG=DETAIL ranks 2 -c "$begin"'
dist.all_reduce(x)
print(f"sum {x.sum().item()}\n", end="", flush=True)' 2>&1)
is "in the debug mode that wraps each group" "$(grep -c '^sum 6.0$' <<<"$out")" 2

out=$(ranks 2 -c "$begin"'
if rank == 0:
    work = dist.all_reduce(x, async_op=True)
    dist.group.WORLD.abort()
    try:
        work.wait()
    except dist.DistBackendError as error:
        print(f"{error}\n", end="", flush=True)
    open(os.environ["TMPDIR"] + "/aborted", "w").close()
while not os.path.exists(os.environ["TMPDIR"] + "/aborted"):
    pass
os._exit(0)' 2>&1)
like "abort ends what is under way" "$out" '^dt: all_reduce: .* aborted$'

out=$(ranks 1 -c '
import torch.distributed as dist, slurm_dt.torch_backend
dist.init_process_group("dt", store=dist.HashStore(), rank=1, world_size=2)
' 2>&1)
like "another rank than the launcher's: a clear line" "$out" \
    'ValueError: dt: .* rank 1 of 2 where libdt has rank 0 of 1'

if [ -d /usr/share/datasets/fashion-mnist ]; then
    export EPOCHS=1 SAMPLES=2048 DT_NOTICE=$tmp/notice
    example=$top/doc/examples/fashion_torch.py
    mkdir "$tmp/undisturbed" "$tmp/preempted"
    cd "$tmp/undisturbed" || exit
    printf 0 >"$DT_NOTICE"
    weights=$(ranks 2 "$example" | grep ^done)
    cd "$tmp/preempted" || exit
    printf 1 >"$DT_NOTICE"
    out=$(ranks 2 "$example" 2>&1)
    like "the example leaves when it is notified" "$out" \
        '^saved after step 0, exit 75$'
    printf 0 >"$DT_NOTICE"
    out=$(ranks 2 "$example" 2>&1)
    is "and ends with the weights of an undisturbed run" \
        "$(grep ^done <<<"$out")" "${weights:-none}"
    cd "$top" || exit
fi

done_testing
