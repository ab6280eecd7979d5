# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""The same training as elastic.c as PyTorch's users write it: `torchrun
elastic-torch.py FILE`, over Gloo. torchrun starts all processes again after a
loss, and each loads what rank 0 saved after the last step, into memory."""

import os
import signal
import sys
import time

import torch
import torch.distributed as dist

WEIGHTS, STEPS, LOST = 1000000, 30, 10


def kill_once(file, step):
    if os.environ["RANK"] != "1" or step != LOST or os.path.exists(file):
        return
    with open(file, "w") as stamp:
        stamp.write(str(time.monotonic()))
    os.kill(os.getpid(), signal.SIGKILL)


def main():
    file = sys.argv[1]
    saved = file + ".pt"
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    step, weights, momentum = 0, torch.zeros(WEIGHTS), torch.zeros(WEIGHTS)
    if os.path.exists(saved):
        step, weights, momentum = torch.load(saved)
    first = step
    while step < STEPS:
        kill_once(file, step)
        grad = 1e-6 * weights + 1
        dist.all_reduce(grad)
        momentum.mul_(0.9).add_(grad / dist.get_world_size())
        weights.sub_(1e-3 * momentum)
        if step == first and first > 0 and dist.get_rank() == 0:
            with open(file) as stamp:
                print(f"{1e3 * (time.monotonic() - float(stamp.read())):.3f}",
                      flush=True)
        step += 1
        if dist.get_rank() == 0:
            torch.save((step, weights, momentum), saved + ".part")
            os.replace(saved + ".part", saved)
        dist.barrier()
    dist.destroy_process_group()


main()
