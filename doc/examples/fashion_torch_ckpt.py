# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# fashion_torch_ckpt.py - Fashion-MNIST with PyTorch and checkpoints of libdt: it
# saves in the background at the interval of --dt-ckpt-interval and when the job
# has notice to leave, and goes on where it was, on any number of ranks, when the
# job is requeued. fashion_torch_ckpt.sbatch submits it; on one machine, without
# Slurm:
#
#   dt-run -n 2 python3 fashion_torch_ckpt.py
import gzip
import os
import sys

import torch
import slurm_dt.torch as hvd
from slurm_dt import ckpt

DATA = os.environ.get("DATA", "/usr/share/datasets/fashion-mnist")
EPOCHS, BATCH = int(os.environ.get("EPOCHS", 5)), 64
LIMIT = int(os.environ.get("SAMPLES", 60000))
DIRECTORY = os.environ.get("DT_CKPT", "fashion_torch_ckpt")


def read(name, header, shape):
    with gzip.open(os.path.join(DATA, name)) as file:
        data = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
    return data[header:].reshape(shape)


def log(*words):
    if rank == 0:
        print(*words, flush=True)


class Sampler:
    """Which samples a batch has: each epoch in an order of its own. Counted in
    samples, so that another number of ranks goes on with the next one."""

    def __init__(self, n):
        self.n, self.epoch, self.position = n, 0, 0

    def batch(self):
        order = torch.randperm(
            self.n, generator=torch.Generator().manual_seed(self.epoch))
        mine = order[self.position + rank * BATCH:][:BATCH]
        self.position += BATCH * size
        if self.position + BATCH * size > self.n:
            self.epoch, self.position = self.epoch + 1, 0
        return mine

    def state_dict(self):
        return {"epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state):
        self.epoch, self.position = state["epoch"], state["position"]


directory = ckpt.Directory(DIRECTORY)  # from now on SIGTERM is a notice
hvd.init()
rank, size = hvd.rank(), hvd.size()
x = read("train-images-idx3-ubyte.gz", 16, (-1, 784))[:LIMIT].float() / 255
y = read("train-labels-idx1-ubyte.gz", 8, (-1,))[:LIMIT].long()
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Dropout(0.1),
    torch.nn.Linear(256, 10))
optimizer = hvd.DistributedOptimizer(
    torch.optim.Adam(model.parameters(), lr=0.001),
    named_parameters=model.named_parameters())
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
sampler = Sampler(len(x))
torch.manual_seed(1 + rank)  # the ranks drop other units
state = {"model": model, "optimizer": optimizer, "scheduler": scheduler,
         "sampler": sampler, "random": ckpt.Random()}
step = directory.load(state)
if step is None:
    step = 0
else:
    log(f"resumed at step {step}")

while sampler.epoch < EPOCHS:
    epoch, mine = sampler.epoch, sampler.batch()
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x[mine]), y[mine])
    loss.backward()
    optimizer.step()
    step += 1
    if sampler.epoch > epoch:
        scheduler.step()
        mean = hvd.allreduce(loss.detach(), name="loss")
        log(f"epoch {sampler.epoch}: loss {mean:.4f}")
    if directory.need(step):
        directory.save_async(state, step)
    if ckpt.should_exit():
        directory.wait()
        log(f"saved at step {step}, exit 75")
        sys.exit(ckpt.EXIT_REQUEUE)

directory.save(state, step)
total = sum(p.double().sum() for p in model.parameters())
log(f"done: the weights sum up to {total:.12f} after {step} steps")
