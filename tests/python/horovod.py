# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""horovod.py - run a test file of Horovod's: `import horovod.torch` gives
slurm_dt.torch, and what the tests' own tools import exists.

    horovod.py OUTPUT CHECKOUT FILE [PYTEST_ARG...]

Each rank writes to a file of its own, OUTPUT.RANK.
"""

import os
import sys
import threading
import types

import pytest

import slurm_dt
import slurm_dt.torch
from slurm_dt.torch import ops


def in_thread(target, args=(), daemon=True):
    """As horovod.runner.util.threads.in_thread: a thread that was started."""
    thread = threading.Thread(target=target, args=args, daemon=daemon)
    thread.start()
    return thread


def module(name, **attributes):
    made = types.ModuleType(name)
    made.__path__ = []
    made.__dict__.update(attributes)
    sys.modules[name] = made
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, made)


module("horovod")
module("horovod.runner")
module("horovod.runner.util")
module("horovod.runner.util.threads", in_thread=in_thread)
sys.modules["horovod.torch"] = sys.modules["horovod"].torch = slurm_dt.torch
sys.modules["horovod.torch.mpi_ops"] = ops

os.environ.update(OMPI_COMM_WORLD_RANK=os.environ["PMIX_RANK"],
                  OMPI_COMM_WORLD_SIZE=os.environ["DT_TEST_SIZE"])
output, checkout, file = sys.argv[1:4]
with open(f"{output}.{os.environ['PMIX_RANK']}", "w") as stream:
    os.dup2(stream.fileno(), 1)
    os.dup2(1, 2)
if "adasum" in file:  # its tests run with MPI only: Adasum needs none here
    slurm_dt.torch.mpi_enabled = lambda: True
sys.exit(pytest.main([os.path.join(checkout, file), "-q", "-p",
                      "no:cacheprovider", "--rootdir", checkout, "-rs",
                      *sys.argv[4:]]))
