# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""The world: init, shutdown, ranks and sizes, what is built, the timeline."""

import atexit
import os
import signal
import sys
import threading
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

from slurm_dt import _dt
from slurm_dt._dt import HorovodInternalError


class _World:
    """What this process is in; one of it."""

    pid: Optional[int] = None  # of the process that called init first
    is_open = False
    timeline = False
    process_sets: List[Any] = []  # that init() was given
    on_shutdown: List[Callable[[], None]] = []  # forget what is of the engine
    on_reset: List[Callable[[], None]] = []  # close what is of the world


@contextmanager
def _ended_by_interrupt() -> Iterator[None]:
    """Have Ctrl-C end the program at once while ranks wait for each other, as
    no exception can be raised before they have come; unless the program handles
    it."""
    handler = signal.getsignal(signal.SIGINT)
    mine = (handler is signal.default_int_handler and
            threading.current_thread() is threading.main_thread())
    if mine:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        if mine:
            signal.signal(signal.SIGINT, handler)


def join_world() -> None:
    """Join the job's world, without the engine of :func:`init`; a second call
    does nothing. All ranks call it; it blocks, and Ctrl-C ends the program. It
    leaves the world at its end. Raises HorovodInternalError when the ranks do
    not find each other.
    """
    if _World.pid is None:
        with _ended_by_interrupt():
            _dt.init()
        _World.pid = os.getpid()
        atexit.register(_leave)


def init(comm: Optional[Sequence[int]] = None,
         process_sets: Optional[Sequence[Any]] = None) -> None:
    """Join the job's world and start the engine. All ranks call it; it blocks.

    A second call does nothing. After :func:`shutdown` it starts again, in the
    same world. ``process_sets``: sets of :class:`ProcessSet` to add, equal on
    all ranks; the text "dynamic" is taken for none, as sets can be added at any
    time. In an elastic job they are added again in each new world, but for
    those with a rank that it does not have; one of all its ranks is the
    world's. ``comm``, a part of the world, is not supported.

    Raises HorovodInternalError when the ranks do not find each other.
    """
    if comm:
        raise NotImplementedError(
            "init(comm=...): the world is always the whole step; use "
            "add_process_set() for a part of it")
    if _World.is_open:
        return
    join_world()
    _World.process_sets = list(process_sets or ()) \
        if process_sets != "dynamic" else []
    _start_over_losses()


def _is_elastic() -> bool:
    return bool(os.environ.get("DT_ELASTIC"))


def _start() -> None:
    """Start the engine, with the process sets that init() was given."""
    with _ended_by_interrupt():
        _dt.open(0, 0, 0.0, 0.0)
    _World.is_open = True
    if _World.process_sets:
        from slurm_dt.torch.process_sets import add_of_init
        add_of_init(_World.process_sets, _is_elastic())


def _start_over_losses() -> None:
    """Start the engine; in an elastic job, where a rank is lost before all have
    started it, in the next world."""
    for left in reversed(range(100)):  # one loss after the other
        try:
            _start()
            return
        except HorovodInternalError:
            if not left or not _is_elastic():
                raise
        _leave_world()


def _leave_world() -> None:
    """Stop the engine, and join the world of those that live."""
    _dt.revoke()  # so that the others come, and nobody waits for them
    try:
        shutdown()
    except (HorovodInternalError, OSError):  # as after a loss
        pass
    for leave in _World.on_reset:
        leave()
    with _ended_by_interrupt():
        _dt.reinit()


def shutdown() -> None:
    """Stop the engine. All ranks call it; it returns when all have. What cannot
    complete any more fails. The world stays, for another :func:`init`."""
    if _World.is_open:
        try:
            stop_timeline()
        finally:
            _World.is_open = False
            for forget in _World.on_shutdown:
                forget()
            _dt.close()


def reset() -> None:
    """Go on after the loss of a rank: join a new world, of the ranks that live
    and the replacements of the others. All of them call it, or join the world
    for the first time; it blocks, and Ctrl-C ends the program. rank() and
    size() may be new. The engine of :func:`init` is started again if it was
    open, which then all do. Where the job is not elastic the engine is all that
    is started again: ranks that were lost stay so.

    Process groups of torch.distributed are destroyed before, else RuntimeError.
    HorovodInternalError: fewer ranks live than the job needs; the job is not
    elastic, and there was no engine.
    """
    was_open = _World.is_open
    if _is_elastic() or not was_open:
        _leave_world()
    else:
        try:
            shutdown()
        except HorovodInternalError:
            pass
    if was_open:
        _start_over_losses()


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
    """0: tensors of GPUs go by libdt's own kernels, unless DT_GPU_WAY says
    otherwise."""
    return 0


def ddl_built() -> bool:
    """False."""
    return False


def ccl_built() -> bool:
    """False."""
    return False


def cuda_built() -> bool:
    """True: tensors may be on CUDA GPUs, where libdt finds the driver."""
    return True


def rocm_built() -> bool:
    """False: of GPUs, NVIDIA's are served."""
    return False
