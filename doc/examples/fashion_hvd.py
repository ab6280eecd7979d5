# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# fashion_hvd.py - Fashion-MNIST with PyTorch by Horovod's names, without
# Horovod; it leaves when it is notified, and goes on where it was when the job
# is requeued. fashion_hvd.sbatch submits it; on one machine, without Slurm:
#
#   dt-run -n 2 python3 fashion_hvd.py
import gzip
import os
import signal
import sys

import torch
import slurm_dt.torch as hvd

DATA = os.environ.get("DATA", "/usr/share/datasets/fashion-mnist")
EPOCHS, BATCH = int(os.environ.get("EPOCHS", 5)), 64
LIMIT = int(os.environ.get("SAMPLES", 60000))
COMPRESSION = getattr(hvd.Compression, os.environ.get("COMPRESSION", "none"))
CHECKPOINT = "fashion_hvd.pt"
NOTICE = os.environ.get("DT_NOTICE")
signal.signal(signal.SIGTERM, lambda *_: None)  # Slurm's own


def read(name, header, shape):
    with gzip.open(os.path.join(DATA, name)) as file:
        data = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
    return data[header:].reshape(shape)


def noticed():
    """Whether any rank has been told to leave: the same answer on all."""
    mine = 0.0
    if NOTICE:
        with open(NOTICE, "rb") as file:
            mine = float(file.read(1) not in (b"", b"0"))
    return hvd.allreduce(torch.tensor(mine), name="notice", op=hvd.Max) > 0


hvd.init()
rank, size = hvd.rank(), hvd.size()
x = read("train-images-idx3-ubyte.gz", 16, (-1, 784))[:LIMIT].float() / 255
y = read("train-labels-idx1-ubyte.gz", 8, (-1,))[:LIMIT].long()
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05 * size, momentum=0.9)
optimizer = hvd.DistributedOptimizer(
    optimizer, named_parameters=model.named_parameters(),
    compression=COMPRESSION)
first = 0
if os.path.exists(CHECKPOINT):
    saved = torch.load(CHECKPOINT)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    first = saved["step"]
    if rank == 0:
        print(f"resumed at step {first}", flush=True)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)

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
        mean = hvd.allreduce(loss.detach(), name="loss")
        if rank == 0:
            print(f"epoch {epoch + 1}: loss {mean:.4f}", flush=True)
    if noticed():
        if rank == 0:
            torch.save({"model": model.state_dict(), "step": step + 1,
                        "optimizer": optimizer.state_dict()},
                       CHECKPOINT + ".new")
            os.replace(CHECKPOINT + ".new", CHECKPOINT)
            print(f"saved after step {step}, exit 75", flush=True)
        hvd.barrier()
        sys.exit(75)  # requeue me

if rank == 0:
    x = read("t10k-images-idx3-ubyte.gz", 16, (-1, 784)).float() / 255
    y = read("t10k-labels-idx1-ubyte.gz", 8, (-1,)).long()
    right = (model(x).argmax(1) == y).double().mean()
    print(f"accuracy {100 * right:.2f} %")
    total = sum(p.double().sum() for p in model.parameters())
    print(f"done: the weights sum up to {total:.12f}", flush=True)
