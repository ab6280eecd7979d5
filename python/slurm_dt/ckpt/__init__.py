# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""Checkpoints for PyTorch, by libdt: complete or absent, saved in the
background, loaded on any number of ranks. doc/torch.md has the whole of it.

    from slurm_dt import ckpt

    state = {"model": model, "optimizer": optimizer, "random": ckpt.Random()}
    directory = ckpt.Directory("ckpt", keep=2)
    first = directory.load(state) or 0
    for step in range(first, steps):
        train()
        if directory.need(step + 1):
            directory.save_async(state, step + 1)
        if ckpt.should_exit():
            directory.close()
            sys.exit(ckpt.EXIT_REQUEUE)

Of torch.distributed.checkpoint, :class:`Writer` and :class:`Reader` are the
storage, from PyTorch 2.15 on.
"""

from typing import Any

try:
    import torch as _torch  # noqa: F401
except ImportError as _error:
    raise ImportError(f"slurm_dt.ckpt needs PyTorch ({_error}): install torch, "
                      "1.13 or later, for this Python") from None

from slurm_dt import _dt
from slurm_dt.ckpt.directory import Directory
from slurm_dt.ckpt.tree import Own, Random

__all__ = ["Directory", "EXIT_REQUEUE", "Mismatch", "Own", "Random", "Reader",
           "Writer", "restart_count", "run_id", "should_exit", "time_left"]

Mismatch = _dt.Mismatch
EXIT_REQUEUE = 75  # the exit code that asks the batch script to requeue the job


def should_exit() -> bool:
    """Whether the job has notice to leave (preemption, time limit,
    ``dt-requeue``): the same on all ranks, as of the last
    :meth:`Directory.need`. Never blocks. The first call makes SIGTERM a notice,
    unless the program has its own handler."""
    return _dt.should_exit()


def time_left() -> float:
    """Seconds until Slurm ends this job, as was planned when it started; 0 when
    that has passed, negative where there is no limit or nobody knows it. Never
    blocks."""
    return _dt.time_left()


def restart_count() -> int:
    """How often Slurm has started this job before: 0 on the first run."""
    return _dt.run()[1]


def run_id() -> str:
    """The name of this training run, the same after each requeue."""
    return _dt.run()[0]


def __getattr__(name: str) -> Any:
    if name not in ("Reader", "Writer"):
        raise AttributeError(f"module 'slurm_dt.ckpt' has no attribute "
                             f"'{name}'")
    from slurm_dt.ckpt import dcp
    return getattr(dcp, name)
