# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# torch.py - PyTorch's distributed data parallel, as a user writes it
import os
import sys

sys.path[0] += "/lib"  # this file is not the module torch
import torch
import torch.distributed as dist

import group

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
mine, rows = group.row(rank), [None] * size
dist.all_gather_object(rows, mine)
group.check(rows, mine)
assert int(os.environ["LOCAL_RANK"]) < int(os.environ["LOCAL_WORLD_SIZE"])

model = torch.nn.Linear(1, 1)
torch.nn.init.zeros_(model.weight)
torch.nn.init.zeros_(model.bias)
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=group.RATE)
x, y = torch.tensor(group.SAMPLES[rank::size]).split(1, dim=1)
for _ in range(group.STEPS):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
group.compare([p.item() for p in model.parameters()])
dist.barrier()
print(f"OK rank {rank} of {size}", flush=True)
dist.destroy_process_group()
