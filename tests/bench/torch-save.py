#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# torch-save.py - the median milliseconds of torch.save to /dev/shm
#
#   torch-save.py MIB TENSORS

import os
import sys
import time

import torch

mib, tensors = int(sys.argv[1]), int(sys.argv[2])
path = f"/dev/shm/torch-save.{os.getpid()}"
state = {f"t{i}": torch.ones((mib << 20) // 4 // tensors) for i in range(tensors)}
took = []
try:
    for step in range(4):
        for tensor in state.values():
            tensor.fill_(step)
        begun = time.monotonic()
        torch.save(state, path)
        took.append(time.monotonic() - begun)
finally:
    if os.path.exists(path):
        os.unlink(path)
print(f"{1e3 * sorted(took[1:])[1]:.1f}")
