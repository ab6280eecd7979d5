# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""Horovod's functions for PyTorch, over libdt: ``import slurm_dt.torch as hvd``
in place of ``import horovod.torch as hvd``. doc/horovod.md has the differences.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as _error:
    raise ImportError(f"slurm_dt.torch needs PyTorch ({_error}): install "
                      "torch, 1.13 or later, for this Python") from None

from slurm_dt import HorovodInternalError
from slurm_dt.basics import (
    ccl_built, cross_rank, cross_size, cuda_built, ddl_built, gloo_built,
    gloo_enabled, init, is_homogeneous, is_initialized, local_rank, local_size,
    mpi_built, mpi_enabled, mpi_threads_supported, nccl_built, rank, rocm_built,
    shutdown, size, start_timeline, stats, stop_timeline)
from slurm_dt.torch.compression import Compression
from slurm_dt.torch.process_sets import (
    ProcessSet, add_process_set, global_process_set, remove_process_set)
from slurm_dt.torch.ops import *  # noqa: F401, F403
from slurm_dt.torch import ops as _ops
from slurm_dt.torch.functions import (
    allgather_object, broadcast_object, broadcast_optimizer_state,
    broadcast_parameters)
from slurm_dt.torch.optimizer import DistributedOptimizer
from slurm_dt.torch.sync_batch_norm import SyncBatchNorm
from slurm_dt.torch import elastic

__all__ = [
    "Compression", "DistributedOptimizer", "HorovodInternalError", "ProcessSet",
    "SyncBatchNorm", "add_process_set", "allgather_object", "broadcast_object",
    "broadcast_optimizer_state", "broadcast_parameters", "ccl_built",
    "cross_rank", "cross_size", "cuda_built", "ddl_built", "elastic",
    "global_process_set", "gloo_built", "gloo_enabled", "init",
    "is_homogeneous", "is_initialized", "local_rank", "local_size", "mpi_built",
    "mpi_enabled", "mpi_threads_supported", "nccl_built", "rank",
    "remove_process_set", "rocm_built", "shutdown", "size", "start_timeline",
    "stats", "stop_timeline", *_ops.__all__]
