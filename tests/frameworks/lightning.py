# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# lightning.py - data parallel by Lightning, which reads its ranks from Slurm
import os
import sys

sys.path[0] += "/lib"  # this file is not the module lightning
import lightning
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset

import group


class Line(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(1, 1)
        torch.nn.init.zeros_(self.line.weight)
        torch.nn.init.zeros_(self.line.bias)

    def training_step(self, batch, _):
        x, y = batch
        return torch.nn.functional.mse_loss(self.line(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=group.RATE)

    def on_train_start(self):
        rows = [None] * self.trainer.world_size
        mine = group.row(self.global_rank)
        dist.all_gather_object(rows, mine)
        group.check(rows, mine)


rank, size = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
x, y = torch.tensor(group.SAMPLES[rank::size]).split(1, dim=1)
trainer = lightning.Trainer(
    accelerator="cpu", devices=int(os.environ["SLURM_NTASKS_PER_NODE"]),
    num_nodes=int(os.environ["SLURM_NNODES"]), strategy="ddp",
    max_epochs=group.STEPS, use_distributed_sampler=False, logger=False,
    enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False)
model = Line()
trainer.fit(model, DataLoader(TensorDataset(x, y), batch_size=len(x)))
assert (trainer.global_rank, trainer.world_size) == (rank, size)
assert trainer.local_rank == int(os.environ["SLURM_LOCALID"])
group.compare([p.item() for p in model.parameters()])
print(f"OK rank {rank} of {size}", flush=True)
