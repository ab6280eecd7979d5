# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# accelerate.py - data parallel by Accelerate
import os
import sys

sys.path[0] += "/lib"  # this file is not the module accelerate
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object

import group

accelerator = Accelerator(cpu=True)
rank, size = accelerator.process_index, accelerator.num_processes
mine = group.row(rank)
group.check(gather_object([mine]), mine)
assert accelerator.local_process_index == int(os.environ["SLURM_LOCALID"])

model = torch.nn.Linear(1, 1)
torch.nn.init.zeros_(model.weight)
torch.nn.init.zeros_(model.bias)
model, optimizer = accelerator.prepare(
    model, torch.optim.SGD(model.parameters(), lr=group.RATE))
x, y = torch.tensor(group.SAMPLES[rank::size]).split(1, dim=1)
for _ in range(group.STEPS):
    optimizer.zero_grad()
    accelerator.backward(torch.nn.functional.mse_loss(model(x), y))
    optimizer.step()
group.compare([p.item() for p in model.parameters()])
accelerator.wait_for_everyone()
print(f"OK rank {rank} of {size}", flush=True)
