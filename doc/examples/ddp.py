# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# ddp.py - a training with PyTorch that leaves when it is notified, and goes on
# where it was when the job is requeued; ddp.sbatch submits it
import os
import signal
import sys

import torch
import torch.distributed as dist

STEPS, CHECKPOINT = int(os.environ.get("STEPS", 1000)), "checkpoint.pt"
noticed = torch.zeros(1)
signal.signal(signal.SIGTERM, lambda *_: None)  # Slurm's own
signal.signal(signal.SIGUSR1, lambda *_: noticed.fill_(1))

cuda = torch.cuda.is_available()
dist.init_process_group("nccl" if cuda else "gloo")
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else "cpu"
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(
    torch.nn.Linear(4, 1).to(device))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
first = 0
if os.path.exists(CHECKPOINT):
    saved = torch.load(CHECKPOINT, map_location=device)
    model.module.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    first = saved["step"]
    if dist.get_rank() == 0:
        print(f"resumed at step {first}", flush=True)

for step in range(first, STEPS):
    generator = torch.Generator().manual_seed(step * 1000 + dist.get_rank())
    x = torch.rand(32, 4, generator=generator).to(device)
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    any_noticed = noticed.clone().to(device)  # all ranks leave at the same step
    dist.all_reduce(any_noticed)
    if any_noticed:
        if dist.get_rank() == 0:
            torch.save({"model": model.module.state_dict(),
                        "optimizer": optimizer.state_dict(),
                        "step": step + 1}, CHECKPOINT + ".new")
            os.replace(CHECKPOINT + ".new", CHECKPOINT)
            print(f"saved after step {step}, exit 75", flush=True)
        dist.barrier()
        sys.exit(75)  # requeue me

if dist.get_rank() == 0:
    print("weights", *model.module.weight.flatten().tolist(), flush=True)
dist.barrier()
