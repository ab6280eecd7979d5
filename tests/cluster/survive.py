# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# survive.py - a training of PyTorch with checkpoints of its own
"""All it knows of slurm-dt is a file to look at and an exit code: when the
first byte of $DT_NOTICE is not 0, or at SIGTERM, it saves and exits with 75.
It goes on where its checkpoint stands. `steps` has a line for each start and
each step, `weights` is the result."""
import os
import signal
import sys
import time

import torch

STEPS, EVERY, CHECKPOINT = 400, 10, "checkpoint.pt"
told = False


def on_term(_signal, _frame):
    global told
    told = True


def should_leave():
    try:
        with open(os.environ["DT_NOTICE"], "rb") as file:
            return told or file.read(1) not in (b"", b"\0")
    except (KeyError, OSError):
        return told


def save(step):
    torch.save({"step": step, "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "random": torch.get_rng_state()}, CHECKPOINT + ".tmp")
    with open(CHECKPOINT + ".tmp", "rb") as file:
        os.fsync(file.fileno())
    os.replace(CHECKPOINT + ".tmp", CHECKPOINT)


signal.signal(signal.SIGTERM, on_term)
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(),
                            torch.nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
first = 0
if os.path.exists(CHECKPOINT):
    saved = torch.load(CHECKPOINT)
    first = saved["step"]
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    torch.set_rng_state(saved["random"])

with open("steps", "a", buffering=1) as log:
    print("start", first, file=log)
    for step in range(first, STEPS):
        x = torch.randn(64, 16)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("step", step + 1, loss.item(), file=log)
        time.sleep(0.02)  # so that there is time to be disturbed
        leave = should_leave()
        if leave or (step + 1) % EVERY == 0:
            save(step + 1)
        if leave:
            sys.exit(75)

with open("weights", "wb") as file:
    for weights in model.parameters():
        file.write(weights.detach().numpy().tobytes())
