# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""The world: init, shutdown, ranks and sizes, what is built, the timeline."""

import atexit
import os
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence

from slurm_dt import _dt
from slurm_dt._dt import HorovodInternalError


class _World:
    """What this process is in; one of it."""

    pid: Optional[int] = None  # of the process that called init first
    is_open = False
    timeline = False
    on_shutdown: List[Callable[[], None]] = []  # forget what is of the engine
    on_reset: List[Callable[[], None]] = []  # close what is of the world


def join_world() -> None:
    """Join the job's world, without the engine of :func:`init`; a second call
    does nothing. All ranks call it; it blocks. The program leaves the world at
    its end. Raises HorovodInternalError when the ranks do not find each other.
    """
    if _World.pid is None:
        _dt.init()
        _World.pid = os.getpid()
        atexit.register(_leave)


def init(comm: Optional[Sequence[int]] = None,
         process_sets: Optional[Sequence[Any]] = None) -> None:
    """Join the job's world and start the engine. All ranks call it; it blocks.

    A second call does nothing. After :func:`shutdown` it starts again, in the
    same world. ``process_sets``: sets of :class:`ProcessSet` to add, equal on
    all ranks; the text "dynamic" is taken for none, as sets can be added at any
    time. ``comm``, a part of the world, is not supported.

    Raises HorovodInternalError when the ranks do not find each other.
    """
    if comm:
        raise NotImplementedError(
            "init(comm=...): the world is always the whole step; use "
            "add_process_set() for a part of it")
    if _World.is_open:
        return
    join_world()
    _dt.open(0, 0, 0.0, 0.0)
    _World.is_open = True
    if process_sets and process_sets != "dynamic":
        from slurm_dt.torch.process_sets import add_process_set
        for process_set in process_sets:
            add_process_set(process_set)


def shutdown() -> None:
    """Stop the engine. All ranks call it; it returns when all have. What cannot
    complete any more fails. The world stays, for another :func:`init`."""
    if _World.is_open:
        stop_timeline()
        _World.is_open = False
        for forget in _World.on_shutdown:
            forget()
        _dt.close()


def reset() -> None:
    """Start the engine again after a collective has failed; in an elastic job
    in a new world, of the ranks that live and the replacements of the others:
    rank() and size() may be new. All of them call it; it blocks.

    Raises HorovodInternalError when fewer ranks live than the job needs.
    """
    try:
        shutdown()
    except HorovodInternalError:  # as after a loss
        pass
    if os.environ.get("DT_ELASTIC"):
        for leave in _World.on_reset:
            leave()
        _dt.reinit()
    init()


def _leave() -> None:
    """At the end of the program. One that ends by an exception does not wait
    for the others, which may be in the middle of something: its launcher sees
    it."""
    failed = hasattr(sys, "last_type") or hasattr(sys, "last_exc")
    if os.getpid() != _World.pid or failed:
        return
    try:
        shutdown()
        _dt.finalize()
    except RuntimeError as error:
        print(f"slurm_dt: at exit: {error}", file=sys.stderr)


def is_initialized() -> bool:
    """Whether init() was called, and shutdown() not after it."""
    return _World.is_open


def _place(i: int) -> int:
    if not _World.is_open:
        raise ValueError("slurm_dt is not initialized: call init() first")
    return _dt.place()[i]


def rank() -> int:
    """This process's number in the world. ValueError before init()."""
    return _place(0)


def size() -> int:
    """How many ranks the world has. ValueError before init()."""
    return _place(1)


def local_rank() -> int:
    """This process's number on its node. ValueError before init()."""
    return _place(2)


def local_size() -> int:
    """How many ranks this node has. ValueError before init()."""
    return _place(3)


def cross_rank() -> int:
    """The number of this node. ValueError before init()."""
    return _place(4)


def cross_size() -> int:
    """How many nodes there are. ValueError before init()."""
    return _place(5)


def is_homogeneous() -> bool:
    """Whether all nodes have the same number of ranks."""
    return cross_size() * local_size() == size()


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """Write what happens to each tensor to a file from now on, on rank 0 only,
    for Chrome's tracing and Perfetto. One that is being written is ended first.
    ``mark_cycles`` is without effect: there are no cycles. OSError when the
    file cannot be written."""
    stop_timeline()
    if rank() == 0:
        _dt.timeline(file_path)
        _World.timeline = True


def stop_timeline() -> None:
    """End the timeline and make its file complete."""
    if _World.timeline:
        _World.timeline = False
        _dt.timeline(None)


def stats() -> Dict[str, Any]:
    """What the engine of this rank did since init(): dt_grad_stats_t of
    dt_grad.h as a dict."""
    return _dt.stats()


# What a program asks before it chooses a way. The engine is the counterpart of
# Gloo: it communicates by itself, on memory of the host, without MPI.

def mpi_threads_supported() -> bool:
    """False: there is no MPI."""
    return False


def mpi_enabled() -> bool:
    """False: there is no MPI."""
    return False


def mpi_built() -> bool:
    """False: there is no MPI."""
    return False


def gloo_enabled() -> bool:
    """True: collectives work without MPI."""
    return True


def gloo_built() -> bool:
    """True: collectives work without MPI."""
    return True


def nccl_built() -> int:
    """0: tensors are in the memory of the host."""
    return 0


def ddl_built() -> bool:
    """False."""
    return False


def ccl_built() -> bool:
    """False."""
    return False


def cuda_built() -> bool:
    """False: tensors are in the memory of the host."""
    return False


def rocm_built() -> bool:
    """False: tensors are in the memory of the host."""
    return False
