# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""ckpt.py DIR - slurm_dt.ckpt with the state of a training on a GPU, on each
rank: what is saved in the background is what the tensors held, whatever the
GPU writes to them afterwards. tests/device/job runs it."""

import os
import sys

import torch

import slurm_dt.torch as hvd
from slurm_dt import ckpt


def training(device):
    """A model and its optimizer after some steps, the same on all ranks."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(1000, 3000), torch.nn.ReLU(),
                                torch.nn.Linear(3000, 10)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(3):
        optimizer.zero_grad()
        model(torch.full((8, 1000), 0.01 * step, device=device)).sum().backward()
        optimizer.step()
    return model, optimizer


def state_of(model, optimizer):
    return {"model": model, "optimizer": optimizer, "random": ckpt.Random()}


def tensors(model, optimizer):
    state = optimizer.state_dict()["state"]
    return list(model.parameters()) + [state[p][key] for p in sorted(state)
                                       for key in sorted(state[p])]


def check(got, wanted, what):
    for g, w in zip(got, wanted, strict=True):
        assert torch.equal(g.detach().cpu(), w), what


def main():
    hvd.init()
    device = torch.device("cuda", hvd.local_rank()
                          % torch.cuda.device_count())
    torch.cuda.set_device(device)
    path = os.path.join(sys.argv[1], "ckpt")
    model, optimizer = training(device)
    wanted = [t.detach().cpu().clone() for t in tensors(model, optimizer)]
    directory = ckpt.Directory(path, keep=2)
    # work that is still on the stream when the checkpoint begins
    with torch.no_grad():
        for parameter in model.parameters():
            for _ in range(200):
                parameter.add_(1.0)
    moved = [p.detach().clone() for p in model.parameters()]
    directory.save_async(state_of(model, optimizer), 1)
    with torch.no_grad():
        for tensor in tensors(model, optimizer):
            tensor.zero_()
    directory.close()
    wanted[:len(moved)] = [m.cpu() for m in moved]

    for where in (device, torch.device("cpu")):
        model, optimizer = training(where)
        with torch.no_grad():
            for tensor in tensors(model, optimizer):
                tensor.zero_()
        directory = ckpt.Directory(path, keep=2)
        assert directory.load(state_of(model, optimizer)) == 1
        check(tensors(model, optimizer), wanted, f"loaded on {where}")
        directory.close()
    print(f"ok {hvd.rank()}")
    hvd.shutdown()


main()
