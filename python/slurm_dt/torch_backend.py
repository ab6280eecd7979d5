# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""The backend "dt" of torch.distributed: importing this module registers it.

    import slurm_dt.torch_backend
    torch.distributed.init_process_group("dt")

Tensors are in the memory of the host. Collectives begin when they are called,
and go on in the background; doc/torch.md has what is served.
"""

import atexit
import os
import re
import socket
import sys
import threading
import time
from datetime import timedelta
from typing import Any, Callable, Iterator, List, Optional, Sequence, Set

try:
    import torch
    import torch.distributed as dist
except ImportError as _error:
    raise ImportError(
        f"slurm_dt.torch_backend needs PyTorch ({_error}): install torch"
    ) from None

_LEAST = (2, 15)  # the first whose Backend can be a Python class
_version = re.match(r"(\d+)\.(\d+)", torch.__version__)
if not _version or tuple(map(int, _version.groups())) < _LEAST:
    raise ImportError(
        f"slurm_dt.torch_backend needs PyTorch 2.15 or later, and this is "
        f"{torch.__version__}: use slurm_dt.torch, with Horovod's names, or a "
        f"newer torch")

from slurm_dt import _dt  # noqa: E402
from slurm_dt.basics import join_world  # noqa: E402
from torch._C._distributed_c10d import Backend, ReduceOp  # noqa: E402

__all__ = ["DtBackend"]

# the order of enum kind in ext/collective.c
(_ALLREDUCE, _REDUCE, _BCAST, _ALLGATHER, _REDUCE_SCATTER, _ALLTOALL, _GATHER,
 _SCATTER, _BARRIER, _SEND, _RECV) = range(11)

# dt_dtype_t; what is not here has no reduction, and moves as bytes
_U8 = 1
_DTYPES = {
    torch.int8: 0, torch.uint8: _U8, torch.int32: 2, torch.int64: 3,
    torch.float16: 4, torch.bfloat16: 5, torch.float32: 6, torch.float64: 7,
    torch.float8_e4m3fn: 8, torch.float8_e5m2: 9}

_SLICE = 0.1  # seconds, after which a wait looks for what has changed
_MIN, _MAX = 1, 2  # dt_op_t
_OPS = {ReduceOp.SUM: 0, ReduceOp.MIN: _MIN, ReduceOp.MAX: _MAX,
        ReduceOp.AVG: 3, ReduceOp.PRODUCT: 4}
_BOOL_OPS = {ReduceOp.SUM: _MAX, ReduceOp.MAX: _MAX, ReduceOp.BOR: _MAX,
             ReduceOp.PRODUCT: _MIN, ReduceOp.MIN: _MIN, ReduceOp.BAND: _MIN}


# ---- what is over, and when ----

class _Progress:
    """Completes what nobody waits for, in a thread, which sleeps when there is
    none: libdt makes progress in its calls only."""

    def __init__(self) -> None:
        self.works: Set["_Work"] = set()  # keeps tensors until they are over
        self.wanted = threading.Event()
        self.stopped = False
        self.thread: Optional[threading.Thread] = None

    def want(self) -> None:
        """Complete what is in works from now on."""
        if not self.thread:
            self.thread = threading.Thread(target=self.run, daemon=True,
                                           name="slurm_dt progress")
            atexit.register(self.stop)  # before the world is left
            self.thread.start()
        self.wanted.set()

    def run(self) -> None:
        while not self.stopped:
            self.wanted.wait()
            known = _dt.started()
            works = list(self.works)
            if not works:
                self.wanted.clear()
                if self.works or self.stopped:
                    self.wanted.set()
                continue
            pending = [w.pending() for w in works]
            if all(pending):
                _dt.poll([r for p in pending for r in p], known, _SLICE)
            for work in works:
                work.complete()

    def stop(self) -> None:
        self.stopped = True
        self.wanted.set()
        if self.thread:
            self.thread.join()


_progress = _Progress()
_alive: Set["DtBackend"] = set()  # what wraps a group does not keep its methods


def _asked_by_torch() -> bool:
    """Whether DDP's reducer, which is C++, called the function that asks."""
    try:
        caller = sys._getframe(2)
    except ValueError:  # a thread of autograd
        return True
    return caller.f_globals.get("__name__") == "torch.autograd.graph"


class _Work(dist._Work):
    """What one call has started."""

    def __init__(self, group: "DtBackend", what: str, requests: List[Any],
                 outputs: List[Any], finish: Sequence[Callable[[], None]],
                 seconds: float) -> None:
        super().__init__()
        self.group = group
        self.what = what
        self.is_message = what in ("send", "recv")
        self.requests = requests
        self.outputs = outputs
        self.finish = finish  # to be called when the requests are over
        self.seconds = seconds
        self.lock = threading.Lock()
        self.over = False
        self.error: Optional[BaseException] = None
        self.started: Optional[Any] = None  # what the future follows
        self.future: Optional[Any] = None
        _progress.works.add(self)

    def pending(self) -> List[Any]:
        """The requests that are not over."""
        return [r for r in self.requests if not r.test()]

    def complete(self) -> None:
        """Put the results where they belong, once, if all requests are over."""
        if self.pending():
            return
        _progress.works.discard(self)
        with self.lock:
            if self.over:
                return
            try:
                for request in self.requests:
                    request.wait(0)
                with torch.no_grad():
                    for function in self.finish:
                        function()
            except Exception as error:
                self.fail(error)
            self.over = True
        if self.started:
            self.started.set_result(None)

    def abort(self) -> None:
        """It has failed here, whatever its requests do."""
        with self.lock:
            if self.over:
                return
            self.fail(RuntimeError("the process group was aborted"))
            self.over = True
        if self.started:
            self.started.set_result(None)

    def fail(self, error: BaseException) -> None:
        if not self.error:
            self.error = dist.DistBackendError(f"dt: {self.what}: {error}")

    def value(self, _started: Any) -> List[Any]:
        if self.error:
            raise self.error
        return self.outputs

    def wait_for(self, request: Any, until: float) -> bool:
        """Whether it is over by then. abort() in another thread ends it."""
        while not self.over:
            left = max(until - time.monotonic(), 0)
            if request.wait(min(left, _SLICE)):
                break
            if left == 0:
                return False
        return True

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        """Until it is over. DistBackendError when it failed, or is not over
        after that time, by default the group's; then it goes on."""
        seconds = timeout.total_seconds() if timeout else 0
        if seconds <= 0:
            seconds = self.seconds
        until = time.monotonic() + seconds
        try:
            done = all(self.wait_for(r, until) for r in self.requests)
        except KeyboardInterrupt:
            _progress.want()
            raise
        except Exception as error:
            self.fail(error)
            _progress.want()  # of what the others still use
            done = True
        if not done:
            _progress.want()
            raise dist.DistBackendError(
                f"dt: {self.what} was not over after {seconds:g} s: have all "
                f"ranks of the group called it? The timeout of "
                f"init_process_group or new_group sets this time")
        self.complete()
        if self.error:
            raise self.error
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        self.complete()
        return self.over

    def is_success(self) -> bool:
        return self.is_completed() and not self.error

    def exception(self) -> Optional[BaseException]:
        return self.error

    def result(self) -> List[Any]:
        return self.outputs

    def get_future(self) -> Any:
        """A future of the outputs.

        As with NCCL, it is complete when a program gets it, so what it calls
        runs in the order of the program: a hook of DDP may start collectives
        there, which all ranks have to start in one order. DDP's own reducer
        does not, and has its futures set in the background."""
        if not self.is_message and not _asked_by_torch():
            try:
                self.wait()
            except dist.DistBackendError:
                if not self.over:
                    raise
        with self.lock:
            over = self.over
            if not self.started:
                # set_exception() would not reach the C++ side; this does
                self.started = torch.futures.Future()
                self.future = self.started.then(self.value)
                if over:
                    self.started.set_result(None)
        if not over:
            _progress.want()
        return self.future


# ---- tensors ----

def _check(what: str, tensors: Sequence[Any], dtype: Any = None) -> None:
    """ValueError for a tensor that libdt cannot read and write in place."""
    for tensor in tensors:
        if tensor.device.type != "cpu":
            raise ValueError(
                f"dt: {what}: a tensor is on {tensor.device}, and dt serves "
                f"the memory of the host: move it there by .cpu()")
        if tensor.layout is not torch.strided:
            raise ValueError(f"dt: {what}: a tensor is {tensor.layout}: make "
                             f"it dense by .to_dense()")
        if not tensor.is_contiguous():
            raise ValueError(f"dt: {what}: a tensor is not contiguous: use "
                             f".contiguous()")
        if tensor.dtype is not (dtype or tensor.dtype):
            raise ValueError(f"dt: {what}: tensors of {dtype} and of "
                             f"{tensor.dtype}: they have to be of one type")


def _equal(what: str, wanted: int, got: int) -> None:
    if wanted != got:
        raise ValueError(f"dt: {what}: {got} elements where {wanted} belong")


def _only(what: str, tensors: Sequence[Any]) -> Any:
    """The one of a list that torch gives per device."""
    if len(tensors) != 1:
        raise ValueError(f"dt: {what}: one tensor was expected, and there are "
                         f"{len(tensors)}")
    return tensors[0]


def _bytes(tensor: Any, count: int) -> Any:
    """How many of which dt_dtype_t to move."""
    dtype = _DTYPES.get(tensor.dtype)
    if dtype is None:
        return _U8, count * tensor.element_size()
    return dtype, count


def _reduction(what: str, tensor: Any, op: Any) -> Any:
    """dt_dtype_t and dt_op_t of a reduction, or ValueError."""
    op = getattr(op, "op", op)
    if tensor.dtype is torch.bool:
        dtype, number = _U8, _BOOL_OPS.get(op)
    else:
        dtype, number = _DTYPES.get(tensor.dtype), _OPS.get(op)
    if dtype is None:
        raise ValueError(f"dt: {what}: there is no reduction of {tensor.dtype}"
                         f": convert the tensor to another type")
    if number is None:
        raise ValueError(f"dt: {what}: there is no reduction {op} of "
                         f"{tensor.dtype}: sum, avg, product, min and max are "
                         f"there, on bool also band and bor")
    return dtype, number


def _scatter_back(flat: Any, outputs: Sequence[Any]) -> Callable[[], None]:
    """Copies the parts of a flat tensor into its outputs."""
    def finish() -> None:
        at = 0
        for output in outputs:
            output.copy_(flat[at:at + output.numel()].view_as(output))
            at += output.numel()
    return finish


def _flatten(tensors: Sequence[Any]) -> Any:
    with torch.no_grad():
        return torch.cat([t.reshape(-1) for t in tensors])


class DtBackend(Backend):
    """What torch asks of a backend, over one communicator of libdt. Its methods
    have the names, arguments and meaning of torch's Backend; each starts the
    collective and returns its work."""

    def __init__(self, rank: int, size: int, timeout: timedelta,
                 comm: Any, ranks: List[int]) -> None:
        super().__init__(rank, size)
        self._comm = comm  # None once the group is destroyed
        self._ranks = ranks  # their numbers in the world
        self._pid = os.getpid()
        self._window: Optional[List[_Work]] = None  # that is being coalesced
        self._sequence = 0
        self._options = Backend.Options("dt", timeout)
        self._options.global_ranks_in_group = ranks
        self._seconds = timeout.total_seconds()
        _alive.add(self)

    # -- the group --

    @property
    def options(self) -> Any:
        return self._options

    @property
    def supports_coalescing(self) -> bool:
        return True

    @property
    def supports_splitting(self) -> bool:
        return True

    def getBackendName(self) -> str:
        return "dt"

    def set_timeout(self, timeout: timedelta) -> None:
        self._options._timeout = timeout
        self._seconds = timeout.total_seconds()

    def _set_default_timeout(self, timeout: timedelta) -> None:
        self.set_timeout(timeout)

    def _set_sequence_number_for_group(self) -> None:
        self._sequence = 0

    def _get_sequence_number_for_group(self) -> int:
        return self._sequence

    def eager_connect_single_device(self, device: Any = None) -> None:
        """Ranks are connected from the beginning."""

    def perform_nocolor_split(self, device: Any) -> None:
        """Those who are none of a new group have no part in it."""

    def split(self, store: Any, ranks: Sequence[int], opts: Any) -> Any:
        ranks = list(ranks)
        if self.rank() not in ranks:
            return None
        timeout = opts._timeout if opts else self._options._timeout
        return _group(ranks.index(self.rank()), len(ranks), timeout,
                      [self._ranks[r] for r in ranks])

    def _own_works(self) -> List[_Work]:
        return [w for w in list(_progress.works) if w.group is self]

    def shutdown(self) -> None:
        """Complete what is under way, and leave the group; all its ranks do.
        After the loss of a rank it waits for nobody."""
        if os.getpid() != self._pid:
            return
        _alive.discard(self)
        for work in self._own_works():
            try:
                work.wait()
            except dist.DistBackendError:
                if not work.over:
                    raise
        comm, self._comm = self._comm, None
        if comm:
            comm.destroy()

    def abort(self) -> None:
        """Leave the group without waiting for others: what is under way fails
        on this rank."""
        _alive.discard(self)
        comm, self._comm = self._comm, None
        if comm:
            comm.abandon()
        for work in self._own_works():
            work.abort()
        _progress.want()  # tensors stay until libdt does not use them

    # -- starting --

    def _start(self, kind: int, tensor: Any, out: Any, count: int, dtype: int,
               op: int = 0, root: int = 0, counts: Any = None) -> Any:
        if os.getpid() != self._pid:
            raise RuntimeError(
                "dt: this process was forked from the one that is in the group,"
                " and is none of its ranks: use the group there")
        if not self._comm:
            raise RuntimeError("dt: the process group is destroyed")
        try:
            return self._comm.start(
                kind, tensor.data_ptr() if tensor is not None else 0,
                out.data_ptr() if out is not None else 0, count, dtype, op,
                root, counts, (tensor, out))
        except _dt.HorovodInternalError as error:
            raise dist.DistBackendError(f"dt: {error}") from None

    def _work(self, what: str, requests: List[Any], outputs: List[Any],
              opts: Any = None, finish: Sequence[Callable[[], None]] = ()
              ) -> _Work:
        self._sequence += 1
        seconds = opts.timeout.total_seconds() if opts else 0
        work = _Work(self, what, requests, outputs, finish,
                     seconds if seconds > 0 else self._seconds)
        if self._window is not None:
            self._window.append(work)
        if opts is None or opts.asyncOp:
            _progress.want()
        return work

    def start_coalescing(self) -> None:
        self._window = []

    def end_coalescing(self) -> _Work:
        works, self._window = self._window or [], None
        return self._work(
            "coalesced operations", [r for w in works for r in w.requests],
            [t for w in works for t in w.outputs],
            finish=[w.complete for w in works])

    # -- reductions --

    def allreduce(self, tensors: List[Any], opts: Any) -> _Work:
        return self._allreduce("all_reduce", [_only("all_reduce", tensors)],
                               opts)

    def allreduce_coalesced(self, tensors: List[Any], opts: Any) -> _Work:
        return self._allreduce("all_reduce_coalesced", tensors, opts)

    def _allreduce(self, what: str, tensors: List[Any], opts: Any) -> _Work:
        _check(what, tensors)
        kinds = [_reduction(what, t, opts.reduceOp) for t in tensors]
        return self._work(
            what, [self._start(_ALLREDUCE, t, t, t.numel(), *kind)
                   for t, kind in zip(tensors, kinds)], tensors, opts)

    def reduce(self, tensors: List[Any], opts: Any) -> _Work:
        tensor = _only("reduce", tensors)
        _check("reduce", tensors)
        kind = _reduction("reduce", tensor, opts.reduceOp)
        request = self._start(_REDUCE, tensor, tensor, tensor.numel(), *kind,
                              opts.rootRank)
        return self._work("reduce", [request], tensors, opts)

    def reduce_scatter(self, outputs: List[Any], inputs: List[List[Any]],
                       opts: Any) -> _Work:
        what = "reduce_scatter"
        output, parts = _only(what, outputs), _only(what, inputs)
        _check(what, [output, *parts], output.dtype)
        _equal(what + ", inputs", self.size(), len(parts))
        _equal(what, parts[self.rank()].numel(), output.numel())
        kind = _reduction(what, output, opts.reduceOp)
        counts = ([t.numel() for t in parts],)
        request = self._start(_REDUCE_SCATTER, _flatten(parts), output, 0,
                              *kind, 0, counts)
        return self._work(what, [request], outputs, opts)

    def _reduce_part(self, output: Any, tensor: Any, opts: Any) -> Any:
        what = "reduce_scatter_tensor"
        _check(what, [output, tensor], output.dtype)
        _equal(what, self.size() * output.numel(), tensor.numel())
        return self._start(_REDUCE_SCATTER, tensor, output, output.numel(),
                           *_reduction(what, output, opts.reduceOp))

    def reduce_scatter_single(self, output: Any, tensor: Any, opts: Any
                              ) -> _Work:
        request = self._reduce_part(output, tensor, opts)
        return self._work("reduce_scatter_tensor", [request], [output], opts)

    def reduce_scatter_single_coalesced(self, outputs: List[Any],
                                        tensors: List[Any], opts: Any) -> _Work:
        requests = [self._reduce_part(o, t, opts)
                    for o, t in zip(outputs, tensors)]
        return self._work("reduce_scatter_tensor", requests, outputs, opts)

    # -- moving --

    def broadcast(self, tensors: List[Any], opts: Any) -> _Work:
        _check("broadcast", tensors)
        requests = []
        for tensor in tensors:
            dtype, count = _bytes(tensor, tensor.numel())
            requests.append(self._start(_BCAST, None, tensor, count, dtype, 0,
                                        opts.rootRank))
        return self._work("broadcast", requests, tensors, opts)

    def allgather(self, outputs: List[List[Any]], tensors: List[Any],
                  opts: Any) -> _Work:
        return self._allgather("all_gather", outputs, tensors, opts)

    def allgather_coalesced(self, outputs: List[List[Any]],
                            tensors: List[Any], opts: Any) -> _Work:
        # here the outer list has the ranks
        lists = [[of_rank[i] for of_rank in outputs]
                 for i in range(len(tensors))]
        return self._allgather("all_gather_coalesced", lists, tensors, opts)

    def _allgather(self, what: str, outputs: List[List[Any]],
                   tensors: List[Any], opts: Any) -> _Work:
        requests, finish = [], []
        for parts, tensor in zip(outputs, tensors):
            _check(what, [tensor, *parts], tensor.dtype)
            _equal(what + ", outputs", self.size(), len(parts))
            _equal(what, parts[self.rank()].numel(), tensor.numel())
            flat = tensor.new_empty(sum(t.numel() for t in parts))
            dtype, unit = _bytes(tensor, 1)
            counts = ([t.numel() * unit for t in parts],)
            requests.append(self._start(_ALLGATHER, tensor, flat, 0, dtype,
                                        counts=counts))
            finish.append(_scatter_back(flat, parts))
        return self._work(what, requests, outputs, opts, finish)

    def _gather_parts(self, output: Any, tensor: Any) -> Any:
        what = "all_gather_into_tensor"
        _check(what, [output, tensor], output.dtype)
        _equal(what, self.size() * tensor.numel(), output.numel())
        dtype, count = _bytes(tensor, tensor.numel())
        return self._start(_ALLGATHER, tensor, output, count, dtype)

    def all_gather_single(self, output: Any, tensor: Any, opts: Any) -> _Work:
        request = self._gather_parts(output, tensor)
        return self._work("all_gather_into_tensor", [request], [output], opts)

    def all_gather_single_coalesced(self, outputs: List[Any],
                                    tensors: List[Any], opts: Any) -> _Work:
        requests = [self._gather_parts(o, t) for o, t in zip(outputs, tensors)]
        return self._work("all_gather_into_tensor", requests, outputs, opts)

    def gather(self, outputs: List[List[Any]], tensors: List[Any], opts: Any
               ) -> _Work:
        tensor, parts = _only("gather", tensors), []
        if self.rank() == opts.rootRank:
            parts = _only("gather", outputs)
            _equal("gather, outputs", self.size(), len(parts))
        _check("gather", [tensor, *parts], tensor.dtype)
        for part in parts:
            _equal("gather", tensor.numel(), part.numel())
        flat = tensor.new_empty(len(parts) * tensor.numel())
        dtype, count = _bytes(tensor, tensor.numel())
        request = self._start(_GATHER, tensor, flat, count, dtype, 0,
                              opts.rootRank)
        return self._work("gather", [request], [parts], opts,
                          [_scatter_back(flat, parts)])

    def scatter(self, outputs: List[Any], inputs: List[List[Any]], opts: Any
                ) -> _Work:
        output, parts, flat = _only("scatter", outputs), [], None
        if self.rank() == opts.rootRank:
            parts = _only("scatter", inputs)
            _equal("scatter, inputs", self.size(), len(parts))
        _check("scatter", [output, *parts], output.dtype)
        for part in parts:
            _equal("scatter", output.numel(), part.numel())
        if parts:
            flat = _flatten(parts)
        dtype, count = _bytes(output, output.numel())
        request = self._start(_SCATTER, flat, output, count, dtype, 0,
                              opts.rootRank)
        return self._work("scatter", [request], outputs, opts)

    def alltoall(self, outputs: List[Any], tensors: List[Any], opts: Any
                 ) -> _Work:
        what = "all_to_all"
        _check(what, [*outputs, *tensors],
               tensors[0].dtype if tensors else None)
        _equal(what + ", inputs", self.size(), len(tensors))
        _equal(what + ", outputs", self.size(), len(outputs))
        flat = _flatten(tensors)
        back = flat.new_empty(sum(t.numel() for t in outputs))
        dtype, unit = _bytes(flat, 1)
        counts = ([t.numel() * unit for t in tensors],
                  [t.numel() * unit for t in outputs])
        request = self._start(_ALLTOALL, flat, back, 0, dtype, counts=counts)
        return self._work(what, [request], outputs, opts,
                          [_scatter_back(back, outputs)])

    def _rows(self, what: str, tensor: Any, splits: List[int]) -> List[int]:
        """The elements of each rank, by rows: the splits, or equal parts."""
        size, rows = self.size(), tensor.size(0) if tensor.dim() else 1
        if not splits:
            if rows % size:
                raise ValueError(f"dt: {what}: {rows} rows are not divisible "
                                 f"by {size} ranks: give splits")
            splits = [rows // size] * size
        if len(splits) != size or sum(splits) != rows or min(splits) < 0:
            raise ValueError(f"dt: {what}: splits {list(splits)} of {rows} "
                             f"rows for {size} ranks: they have to add up")
        row = tensor.numel() // rows if rows else 0
        return [n * row for n in splits]

    def all_to_all_single(self, output: Any, tensor: Any,
                          output_splits: List[int], input_splits: List[int],
                          opts: Any) -> _Work:
        what = "all_to_all_single"
        _check(what, [output, tensor], output.dtype)
        dtype, unit = _bytes(tensor, 1)
        counts = tuple([n * unit for n in self._rows(what, t, splits)]
                       for t, splits in ((tensor, input_splits),
                                         (output, output_splits)))
        request = self._start(_ALLTOALL, tensor, output, 0, dtype,
                              counts=counts)
        return self._work(what, [request], [output], opts)

    def barrier(self, opts: Any) -> _Work:
        request = self._start(_BARRIER, None, None, 0, _U8)
        return self._work("barrier", [request], [], opts)

    # -- point to point --

    def _message(self, what: str, kind: int, tensors: List[Any], peer: int,
                 tag: int) -> _Work:
        tensor = _only(what, tensors)
        _check(what, tensors)
        if tag:
            raise ValueError(f"dt: {what}: tag {tag}: messages between two "
                             f"ranks arrive in order, and have no tags: use 0")
        dtype, count = _bytes(tensor, tensor.numel())
        request = self._start(kind, tensor, tensor, count, dtype, 0, peer)
        return self._work(what, [request], tensors)

    def send(self, tensors: List[Any], peer: int, tag: int = 0) -> _Work:
        return self._message("send", _SEND, tensors, peer, tag)

    def recv(self, tensors: List[Any], peer: int, tag: int = 0) -> _Work:
        return self._message("recv", _RECV, tensors, peer, tag)

    def recv_anysource(self, tensors: List[Any], tag: int = 0) -> _Work:
        raise ValueError("dt: recv: name the rank to receive from: src=")

    # as older callers name them
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single


# ---- groups ----

def _group(rank: int, size: int, timeout: timedelta, ranks: List[int]
           ) -> DtBackend:
    """A group of these ranks of the world, in which this one has number rank;
    ranks is empty for the world itself."""
    join_world()
    own, world = _dt.place()[:2]
    number = ranks[rank] if ranks else rank
    if number != own or (not ranks and size != world):
        raise ValueError(
            f"dt: torch.distributed has rank {number}"
            f"{'' if ranks else f' of {size}'} where libdt has rank {own} of "
            f"{world}: give RANK and WORLD_SIZE as the launcher does, or "
            f"init_method=\"dt://\"")
    comm = _dt.comm(ranks or None)
    return DtBackend(rank, size, timeout, comm, ranks or list(range(world)))


def _create(opts: Any, backend_options: Any) -> DtBackend:
    ranks = list(opts.global_ranks_in_group)
    if not dist.is_initialized():
        ranks = []  # the first group is the world
    return _group(opts.group_rank, opts.group_size, opts.timeout, ranks)


def _rendezvous(url: str, timeout: timedelta = timedelta(minutes=30),
                **_: Any) -> Iterator[Any]:
    """init_method="dt://": the ranks of the world, without any variable."""
    join_world()
    rank, size, _local_rank, _local_size, _node, nodes = _dt.place()
    where = torch.zeros(512, dtype=torch.uint8)
    store = None
    if rank == 0:
        host = socket.gethostname() if nodes > 1 else "127.0.0.1"
        store = dist.TCPStore(host, 0, size, True, timeout,
                              wait_for_workers=False)
        text = f"{host} {store.port}".encode()
        where[:len(text)] = torch.tensor(list(text), dtype=torch.uint8)
    comm = _dt.comm(None)
    try:
        request = comm.start(_BCAST, 0, where.data_ptr(), len(where), _U8, 0, 0,
                             None, where)
        if not request.wait(timeout.total_seconds()):
            raise dist.DistBackendError("dt: the ranks did not find each other")
    finally:
        comm.destroy()
    if store is None:
        host, port = bytes(where.tolist()).rstrip(b"\0").decode().split()
        store = dist.TCPStore(host, int(port), size, False, timeout)
    yield store, rank, size
    raise RuntimeError("dt:// finds the ranks once per process group")


dist.Backend.register_backend("dt", _create, extended_api=True,
                              devices=["cpu"])
dist.register_rendezvous_handler("dt", _rendezvous)
