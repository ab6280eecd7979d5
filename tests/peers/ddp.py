# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# ddp.py - one step of distributed data parallel whose gradient is known
"""The loss of rank r is sum((r + 1) * w * x), so its gradient is (r + 1) * x
and the average over the ranks of a world of n is (n + 1) / 2 * x."""
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
model = torch.nn.parallel.DistributedDataParallel(
    torch.nn.Linear(4, 1, bias=False))
x = torch.arange(4.0)
((rank + 1) * model(x)).sum().backward()
print(f"rank {rank} of {size}, gradient {model.module.weight.grad.tolist()[0]}",
      flush=True)
dist.destroy_process_group()
