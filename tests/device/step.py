# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""step.py - how long a training step takes on GPUs, in turn: without
communication, by slurm_dt.torch, and by PyTorch's DistributedDataParallel over
gloo (NCCL where each rank has a GPU of its own):

    MASTER_ADDR=127.0.0.1 MASTER_PORT=29511 dt-run -n 2 python3 tests/device/step.py

Ranks that share a GPU want NVIDIA's MPS. Rank 0 prints a table: milliseconds of
a step, the median of the rounds, on the slowest rank.
"""

import os
import statistics
import time

import torch
import torch.distributed as dist

import slurm_dt.torch as hvd

ROUNDS = 7


def mlp(layers, width):
    return torch.nn.Sequential(*[torch.nn.Linear(width, width)
                                 for _ in range(layers)])


def resnet():
    import torchvision
    return torchvision.models.resnet50()


# what, a model, the shape of its input, steps of a round
MODELS = [("6 layers of 1024", lambda: mlp(6, 1024), (64, 1024), 20),
          ("102 layers of 256", lambda: mlp(102, 256), (64, 256), 10),
          ("ResNet-50", resnet, (16, 3, 224, 224), 5)]


class Training:
    def __init__(self, how, make, shape):
        torch.manual_seed(1)
        self.model = make().to(device)
        self.forward = self.model
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4)
        if how.startswith("slurm_dt"):
            compression = hvd.Compression.fp16 if how.endswith("fp16") \
                else hvd.Compression.none
            self.optimizer = hvd.DistributedOptimizer(
                self.optimizer, self.model.named_parameters(),
                compression=compression)
        elif how.startswith("DDP"):
            self.forward = torch.nn.parallel.DistributedDataParallel(self.model)
        self.input = torch.rand(shape, device=device)

    def steps(self, n):
        for _ in range(n):
            self.optimizer.zero_grad(set_to_none=True)
            self.forward(self.input).square().mean().backward()
            self.optimizer.step()
        torch.cuda.synchronize()


def measure(make, shape, steps, variants):
    trainings = {how: Training(how, make, shape) for how in variants}
    times = {how: [] for how in variants}
    for number in range(ROUNDS + 1):  # the first warms up
        for how in variants:
            hvd.barrier()
            start = time.perf_counter()
            trainings[how].steps(steps)
            took = torch.tensor((time.perf_counter() - start) / steps * 1e3)
            slowest = hvd.allreduce(took, op=hvd.Max).item()
            if number:
                times[how].append(slowest)
    return [statistics.median(times[how]) for how in variants]


def main():
    backend = "nccl" if hvd.local_size() <= torch.cuda.device_count() \
        else "gloo"
    dist.init_process_group(backend, rank=hvd.rank(), world_size=hvd.size())
    variants = ["alone", "slurm_dt", "slurm_dt, fp16", f"DDP, {backend}"]
    if hvd.rank() == 0:
        way = os.environ.get("DT_GPU_WAY", "not set")
        print(f"{hvd.size()} ranks, {torch.cuda.device_count()} "
              f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, "
              f"DT_GPU_WAY {way}; ms of a step")
        print(f"{'':20}" + "".join(f"{v:>16}" for v in variants), flush=True)
    for name, make, shape, steps in MODELS:
        medians = measure(make, shape, steps, variants)
        if hvd.rank() == 0:
            print(f"{name:20}" + "".join(f"{m:16.2f}" for m in medians),
                  flush=True)
    dist.destroy_process_group()


hvd.init()
device = torch.device("cuda", hvd.local_rank() % torch.cuda.device_count())
torch.cuda.set_device(device)
main()
hvd.shutdown()
