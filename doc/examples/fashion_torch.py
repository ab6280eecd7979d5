# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# fashion_torch.py - Fashion-MNIST with PyTorch's FSDP over libdt; it saves by
# torch.distributed.checkpoint when it is notified, and goes on where it was, on
# any number of ranks, when the job is requeued. fashion_torch.sbatch submits it;
# on one machine, without Slurm:
#
#   dt-run -n 2 python3 fashion_torch.py
import glob
import gzip
import os
import signal
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import (
    get_state_dict, set_state_dict)
from torch.distributed.fsdp import fully_shard

import slurm_dt.torch_backend  # registers "dt"

DATA = os.environ.get("DATA", "/usr/share/datasets/fashion-mnist")
EPOCHS, BATCH = int(os.environ.get("EPOCHS", 5)), 64
LIMIT = int(os.environ.get("SAMPLES", 60000))
CHECKPOINT = "fashion_torch-step-%06d"
NOTICE = os.environ.get("DT_NOTICE")
signal.signal(signal.SIGTERM, lambda *_: None)  # Slurm's own


def read(name, header, shape):
    with gzip.open(os.path.join(DATA, name)) as file:
        data = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
    return data[header:].reshape(shape)


def noticed():
    """Whether any rank has been told to leave: the same answer on all."""
    mine = torch.zeros(1)
    if NOTICE:
        with open(NOTICE, "rb") as file:
            mine += file.read(1) not in (b"", b"0")
    dist.all_reduce(mine, op=dist.ReduceOp.MAX)
    return mine.item() > 0


def state(step):
    weights, moments = get_state_dict(model, optimizer)
    return {"model": weights, "optimizer": moments, "step": step}


dist.init_process_group("dt", init_method="dt://")
rank, size = dist.get_rank(), dist.get_world_size()
x = read("train-images-idx3-ubyte.gz", 16, (-1, 784))[:LIMIT].float() / 255
y = read("train-labels-idx1-ubyte.gz", 8, (-1,))[:LIMIT].long()
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
for layer in (model[0], model[2], model):
    fully_shard(layer, mesh=dist.init_device_mesh("cpu", (size,)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05 * size, momentum=0.9)
first = 0
# one with .metadata, which is written last, is complete
complete = sorted(glob.glob("fashion_torch-step-*/.metadata"))
if complete:
    saved = state(0)
    dcp.load(saved, checkpoint_id=os.path.dirname(complete[-1]))
    set_state_dict(model, optimizer, model_state_dict=saved["model"],
                   optim_state_dict=saved["optimizer"])
    first = saved["step"]
    if rank == 0:
        print(f"resumed at step {first}", flush=True)

per_epoch = len(x) // (BATCH * size)
for step in range(first, EPOCHS * per_epoch):
    epoch, batch = divmod(step, per_epoch)
    order = torch.randperm(
        len(x), generator=torch.Generator().manual_seed(epoch))
    mine = order[(batch * size + rank) * BATCH:][:BATCH]
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x[mine]), y[mine])
    loss.backward()
    optimizer.step()
    if batch == per_epoch - 1:
        mean = loss.detach()
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        if rank == 0:
            print(f"epoch {epoch + 1}: loss {mean:.4f}", flush=True)
    if noticed():
        dcp.save(state(step + 1), checkpoint_id=CHECKPOINT % (step + 1))
        if rank == 0:
            print(f"saved after step {step}, exit 75", flush=True)
        dist.barrier()
        sys.exit(75)  # requeue me

total = torch.stack([p.full_tensor().double().sum()
                     for p in model.parameters()]).sum()
if rank == 0:
    print(f"done: the weights sum up to {total:.12f}", flush=True)
