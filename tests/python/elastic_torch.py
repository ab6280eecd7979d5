# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""elastic_torch.py - a training by the backend "dt" and DDP that goes on after
a loss, in the same process.

    elastic_torch.py DIR [RANK.STEP]

The process that the launcher started as RANK kills itself in the middle of that
step's backward(), once.
"""

import copy
import faulthandler
import hashlib
import os
import signal
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import slurm_dt
import slurm_dt.torch_backend  # noqa: F401

STEPS = 8
STARTED_AS = int(os.environ["PMIX_RANK"])
FOLDER, LOSS = sys.argv[1], sys.argv[2:]


def lose(step):
    if LOSS == [f"{STARTED_AS}.{step}"]:
        try:
            open(os.path.join(FOLDER, "lost"), "x").close()
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(6, 300), \
            torch.nn.Linear(300, 3)

    def forward(self, x, step):
        hidden = torch.tanh(self.first(x))
        hidden.register_hook(lambda grad: lose(step))
        return self.second(hidden)


faulthandler.dump_traceback_later(100, exit=True)
torch.manual_seed(STARTED_AS)
model = Model()
kept = (0, copy.deepcopy(model.state_dict()))
left = []  # works that nobody waits for


def take_newest():
    global kept
    steps = [None] * dist.get_world_size()
    dist.all_gather_object(steps, kept[0])
    root = steps.index(max(steps))
    model.load_state_dict(kept[1])
    for value in model.state_dict().values():
        dist.broadcast(value, root)
    kept = (steps[root], copy.deepcopy(model.state_dict()))


def train():
    global kept
    take_newest()
    ddp = DistributedDataParallel(model, bucket_cap_mb=0.001)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    part = dist.new_group([0, 1]) if dist.get_world_size() > 2 else None
    rank, size = dist.get_rank(), dist.get_world_size()
    for step in range(kept[0], STEPS):
        x = torch.rand(24, 6, generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        ddp(x[rank::size], step).square().mean().backward()
        left.append(dist.all_reduce(torch.ones(9), async_op=True))
        if part and rank < 2:
            left.append(dist.all_reduce(torch.ones(9), group=part,
                                        async_op=True))
        optimizer.step()
        kept = (step + 1, copy.deepcopy(model.state_dict()))


def fails(error, text, function):
    try:
        function()
    except error as e:
        assert text in str(e), e
        return
    raise AssertionError(f"no {error.__name__}")


while True:
    try:
        dist.init_process_group("dt", init_method="dt://")
        train()
        break
    except RuntimeError as error:
        assert "has died" in str(error) or "given up" in str(error), error
        print("lost one\n", end="", flush=True)
    fails(RuntimeError, "destroy_process_group() first", slurm_dt.reset)
    if STARTED_AS == 0:
        dist.group.WORLD.abort()
    dist.destroy_process_group()
    slurm_dt.reset()
    for work in left[:-4]:
        work.wait()
    left.clear()
digest = hashlib.sha256()
for value in model.state_dict().values():
    digest.update(value.numpy().tobytes())
print(f"trained on {dist.get_world_size()} ranks: {digest.hexdigest()[:16]}\n",
      end="", flush=True)
dist.destroy_process_group()
