#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# gradients-torch.py - what the steps of a training with PyTorch on the CPU cost
# on several ranks, with the gradients averaged by slurm_dt.torch, by DDP over
# gloo, or not at all; under dt-run, turn by turn, in the same processes
#
#   dt-run -n 2 gradients-torch.py [ROUNDS [STEPS]]
#
# Prints medians over the rounds: wall time of rank 0 and CPU time of its
# process, all threads and its first thread alone.

import shutil
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch import nn

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 10


class Block(nn.Module):
    """Two convolutions with a way around them, projected where the width
    changes (He et al. 2016)"""

    def __init__(self, width_in, width):
        super().__init__()
        stride = 1 if width_in == width else 2
        self.body = nn.Sequential(
            nn.Conv2d(width_in, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, 1, 1, bias=False),
            nn.BatchNorm2d(width))
        self.around = nn.Identity() if width_in == width else nn.Conv2d(
            width_in, width, 1, stride, bias=False)

    def forward(self, x):
        return torch.relu(self.body(x) + self.around(x))


def resnet20():
    layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16),
              nn.ReLU()]
    width = 16
    for wider in 16, 32, 64:
        for _ in range(3):
            layers.append(Block(width, wider))
            width = wider
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
    return nn.Sequential(*layers), torch.randn(2, 3, 32, 32)


def small204():
    layers = []
    for i in range(102):
        layers.append(nn.Linear(*((54, 108) if i % 2 else (108, 54))))
    return nn.Sequential(*layers), torch.randn(4, 108)


def mlp6():
    return nn.Sequential(
        nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 2048), nn.ReLU(),
        nn.Linear(2048, 512)), torch.randn(4, 1024)


def by_nothing(model):
    return model, torch.optim.SGD(model.parameters(), lr=1e-4)


def by_ddp(model):
    model = nn.parallel.DistributedDataParallel(model)
    return model, torch.optim.SGD(model.parameters(), lr=1e-4)


def by_dt(model):
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=1e-4),
        named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    return model, optimizer


def run_steps(model, optimizer, data):
    """Mean milliseconds: wall, CPU of the process, CPU of this thread"""
    clocks = time.monotonic, time.process_time, time.thread_time
    begun = [clock() for clock in clocks]
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()
    return [1e3 * (clock() - was) / STEPS
            for clock, was in zip(clocks, begun)]


def measure(make, ways):
    torch.manual_seed(1)
    contenders, costs = [], {name: [] for name in ways}
    for name, way in ways.items():
        model, data = make()
        contenders.append((name, *way(model), data))
    tensors = len(list(model.parameters()))
    for _, *contender in contenders:
        run_steps(*contender)
    for turn in range(ROUNDS):
        at = turn % len(contenders)
        for name, *contender in contenders[at:] + contenders[:at]:
            dist.barrier()
            costs[name].append(run_steps(*contender))
    if dist.get_rank() == 0:
        for name, rows in costs.items():
            wall, cpu, thread = map(statistics.median, zip(*rows))
            print(f"{make.__name__:9} {tensors:7} {name:8} {wall:9.2f} "
                  f"{cpu:9.2f} {thread:9.2f}", flush=True)


def main():
    rank, size = hvd.rank(), hvd.size()
    name = hvd.broadcast_object(
        tempfile.mkdtemp(prefix="gradients-") if rank == 0 else None)
    dist.init_process_group("gloo", init_method=f"file://{name}/store", rank=rank,
                            world_size=size)
    if rank == 0:
        print(f"torch {torch.__version__}, {size} ranks, ms per step\n"
              f"{'model':9} {'tensors':>7} {'way':8} {'wall':>9} {'CPU':>9} "
              f"{'thread':>9}", flush=True)
    ways = {"none": by_nothing, "ddp": by_ddp, "slurm_dt": by_dt}
    for make in resnet20, small204, mlp6:
        measure(make, ways)
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        shutil.rmtree(name)


if __name__ == "__main__":
    try:
        import slurm_dt.torch as hvd
    except ImportError as why:
        sys.exit(f"gradients-torch: {why}")
    torch.set_num_threads(1)
    hvd.init()
    main()
    hvd.shutdown()
