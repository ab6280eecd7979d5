# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# deepspeed.py - data parallel by DeepSpeed, on the CPU
import os
import sys

sys.path[0] += "/lib"  # this file is not the module deepspeed
os.environ["DS_ACCELERATOR"] = "cpu"
import deepspeed
import torch
import torch.distributed as dist

import group

deepspeed.init_distributed(dist_backend="gloo", verbose=False)
rank, size = dist.get_rank(), dist.get_world_size()
assert rank == int(os.environ["SLURM_PROCID"])
mine = group.row(rank)
rows = [None] * size
dist.all_gather_object(rows, mine)
group.check(rows, mine)

model = torch.nn.Linear(1, 1)
torch.nn.init.zeros_(model.weight)
torch.nn.init.zeros_(model.bias)
x, y = torch.tensor(group.SAMPLES[rank::size]).split(1, dim=1)
engine, _, _, _ = deepspeed.initialize(
    model=model, optimizer=torch.optim.SGD(model.parameters(), lr=group.RATE),
    config={"train_micro_batch_size_per_gpu": len(x),
            "gradient_accumulation_steps": 1})
for _ in range(group.STEPS):
    engine.backward(torch.nn.functional.mse_loss(engine(x), y))
    engine.step()
group.compare([p.item() for p in model.parameters()])
print(f"OK rank {rank} of {size}", flush=True)
dist.destroy_process_group()
