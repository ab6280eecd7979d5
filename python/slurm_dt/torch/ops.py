# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""Operations on tensors, which all ranks of a process set start by name.

Each has up to eight variants, made at the end of this file from one table:
``NAME`` waits and is differentiable, ``NAME_async`` returns a handle for
:func:`synchronize`, those that end in an underscore write into the tensor that
they are given, and ``grouped_NAME`` takes a list of tensors, which begin
together.

Errors. What is wrong on this rank alone is a ValueError at the call (a type, a
shape, a root or splits that cannot be, a name that is under way, a process set
that this rank is none of); no other rank notices. A name is under way until
synchronize(); that of a handle that was dropped, until a later wait finds the
operation complete. What the ranks disagree about
(type, shape, op, root, factors), and what a lost rank leaves incomplete, is a
HorovodInternalError on all ranks of the set, from the wait.
"""

import warnings
from typing import (Any, Callable, Dict, List, NamedTuple, Optional, Sequence,
                    Tuple)

import torch

from slurm_dt import _dt, basics
from slurm_dt.torch.compression import Compression
from slurm_dt.torch.process_sets import ProcessSet, global_process_set

Tensors = List[torch.Tensor]

Average = 0
Sum = 1
Adasum = 2
Min = 3
Max = 4
Product = 5

# dt_op_t and DT_GRAD_ADASUM
_REDUCTIONS = {Average: 3, Sum: 0, Adasum: 5, Min: 1, Max: 2, Product: 4}

# dt_dtype_t
_TYPES = {torch.int8: 0, torch.uint8: 1, torch.int32: 2, torch.int64: 3,
          torch.float16: 4, torch.bfloat16: 5, torch.float32: 6,
          torch.float64: 7}

_ALLREDUCE, _ALLGATHER, _BROADCAST, _ALLTOALL, _REDUCESCATTER, _BARRIER = \
    range(6)  # dt_grad_kind_t


class Options(NamedTuple):
    """The arguments of an operation, but for its tensors."""

    name: Optional[str] = None
    op: int = Sum
    prescale: float = 1.0
    postscale: float = 1.0
    process_set: ProcessSet = global_process_set
    root: int = 0  # rank of the world
    splits: Any = None
    compression: Any = Compression.none

    @property
    def set(self) -> int:
        if self.process_set.process_set_id is None:
            raise ValueError(f"{self.process_set} was not added: call "
                             "add_process_set() first")
        return self.process_set.process_set_id


class Handle:
    """An operation that was started: for poll() and synchronize()."""

    __slots__ = ("_work", "_result")

    def __init__(self, work: Any, result: Callable[[Any], Any]) -> None:
        self._work = work
        self._result = result

    def _wait(self) -> Any:
        if self._work is not None:
            self._work.wait()
            result = self._result(self._work)
            self._work = None
            self._result = lambda work: result
        return self._result(None)


def poll(handle: Handle) -> bool:
    """Whether synchronize() would return at once."""
    return handle._work is None or handle._work.test()


def synchronize(handle: Handle) -> Any:
    """Wait for an operation; its output: a tensor, a list of them for a group,
    and for alltoall with received_splits after it. HorovodInternalError when it
    has failed, on all ranks of its set."""
    return handle._wait()


# ---- starting ----

DEVICES = ("cpu", "cuda")


def stream_of(tensors: Sequence[torch.Tensor]) -> int:
    """The current stream of the GPU that the tensors are on, after which libdt
    reads them; 0 for tensors of the host, and 1, cudaStreamLegacy, for the
    default stream. What libdt writes is complete when a wait has returned, so
    that any stream may use it; until then the tensors are kept alive, and so
    need no record_stream()."""
    device = tensors[0].device
    if any(t.device != device for t in tensors):
        raise ValueError("tensors on several devices: "
                         f"{', '.join(sorted({str(t.device) for t in tensors}))}"
                         ": those of one call are on one")
    if device.type == "cpu":
        return 0
    return torch.cuda.current_stream(device).cuda_stream or 1


def _describe(kind: int, tensor: torch.Tensor, output: Optional[torch.Tensor],
              splits: Optional[List[int]]) -> Tuple[Any, ...]:
    """The tensor as _dt.start() wants it; ValueError for one that cannot be."""
    code = _TYPES.get(tensor.dtype)
    if code is None and kind in (_ALLREDUCE, _REDUCESCATTER):
        raise ValueError(f"tensors of type {tensor.dtype} cannot be reduced: "
                         f"convert it to one of {', '.join(map(str, _TYPES))}")
    if tensor.layout is not torch.strided or \
            tensor.device.type not in DEVICES:
        raise ValueError(f"a {tensor.layout} tensor on {tensor.device}: a "
                         "dense one in the memory of the host or of a CUDA GPU "
                         "is expected")
    if not tensor.is_contiguous() or not (output is None or
                                          output.is_contiguous()):
        raise ValueError("the tensor is not contiguous: call contiguous()")
    shape = tuple(tensor.shape)
    if splits is not None and shape and 0 <= sum(splits) < shape[0]:
        shape = (sum(splits),) + shape[1:]  # the rest goes nowhere
    return (code or 0, code or 0, 0 if code is not None else
            tensor.element_size(), shape, tensor.data_ptr(),
            output.data_ptr() if output is not None else 0, splits)


def _start(table: "_Operation", tensors: Sequence[torch.Tensor],
           outputs: Optional[Tensors], options: Options,
           grouped: bool) -> Handle:
    """Start it on these tensors; outputs None: they are made."""
    tensors = list(tensors)
    if not tensors:
        raise ValueError(f"{table.name}: at least one tensor is expected")
    for tensor in tensors:
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"{table.name}: a tensor is expected, not "
                             f"{type(tensor).__name__}")
    if options.op not in _REDUCTIONS:
        raise ValueError(f"{table.name}: there is no op {options.op}")
    if table.kind == _REDUCESCATTER and options.op not in (Average, Sum):
        raise NotImplementedError("reducescatter: op is Sum or Average")
    if options.op == Adasum and options.process_set is not global_process_set:
        raise NotImplementedError("Adasum is for the global process set only")
    splits = _splits(options.splits)
    if outputs is None and table.output:
        outputs = [table.output(t, options) for t in tensors]
    root = options.root
    if table.kind == _BROADCAST and options.set != 0:
        if root not in (options.process_set.ranks or ()):
            raise ValueError(f"broadcast: root {root} is none of "
                             f"{options.process_set}")
        root = options.process_set.ranks.index(root)
    described = tuple(
        _describe(table.kind, tensor, outputs[i] if outputs else None, splits)
        for i, tensor in enumerate(tensors))
    stream = stream_of([*tensors, *(outputs or ())])
    name = f"{table.name}.{options.name}" if options.name is not None else None
    work = _dt.start(table.kind, name, _REDUCTIONS[options.op], options.set,
                     root, float(options.prescale), float(options.postscale),
                     described, (tensors, outputs), stream)

    def result(work: Any) -> Any:
        each = outputs or [_take(work, i, t) for i, t in enumerate(tensors)]
        if table.kind == _ALLTOALL:
            each = [(t, _received(work, i, options.splits))
                    for i, t in enumerate(each)]
        return each if grouped else each[0]

    return Handle(work, result)


def _splits(splits: Any) -> Optional[List[int]]:
    if splits is None:
        return None
    if isinstance(splits, torch.Tensor):
        if splits.dtype not in (torch.int32, torch.int64) or splits.dim() != 1:
            raise ValueError("alltoall: splits is a vector of 32-bit integers")
        return splits.tolist()
    return [int(n) for n in splits]


def _take(work: Any, i: int, like: torch.Tensor) -> torch.Tensor:
    output = torch.empty(work.output(i)[0], dtype=like.dtype,
                         device=like.device)
    work.take(i, output.data_ptr(), stream_of([output]))
    return output


def _received(work: Any, i: int, splits: Any) -> torch.Tensor:
    rows = torch.tensor(work.output(i)[1], dtype=torch.int32)
    return rows.to(splits) if isinstance(splits, torch.Tensor) else rows


# ---- gradients of the operations ----

def _again(grads: Tensors, o: Options, shapes: Any) -> Tensors:
    return _run("allreduce", grads, o)


def _of_allgather(grads: Tensors, o: Options, shapes: Any) -> Tensors:
    """Mine are the rows after those of the ranks before me."""
    averaged = _run("allreduce", grads, o._replace(op=Average))
    rows = torch.tensor([[shape[0] for shape in shapes]])
    before = _run("allgather", [rows], o)[0][:o.process_set.rank()].sum(0)
    return [g.narrow(0, int(before[i]), shapes[i][0])
            for i, g in enumerate(averaged)]


def _of_broadcast(grads: Tensors, o: Options, shapes: Any) -> Tensors:
    averaged = _run("allreduce", grads, o._replace(op=Average))
    return averaged if basics.rank() == o.root else \
        [torch.zeros_like(g) for g in averaged]


def _of_alltoall(grads: Tensors, o: Options, shapes: Any) -> Tensors:
    back = _run("alltoall", grads, o)[0][0]
    missing = shapes[0][0] - back.shape[0]  # rows that were not sent
    return [torch.nn.functional.pad(back.transpose(0, -1), (0, missing))
            .transpose(0, -1) if missing else back]


def _of_reducescatter(grads: Tensors, o: Options, shapes: Any) -> Tensors:
    factor = o.prescale * o.postscale
    if o.op == Sum:
        factor *= o.process_set.size()
    return _run("allgather", [g * factor if factor != 1.0 else g
                              for g in grads], o)


def _run(name: str, tensors: Tensors, options: Options) -> Any:
    """The operation without autograd; the name is that of the backward pass."""
    handle = _start(_TABLE[name], [t.contiguous() for t in tensors], None,
                    options._replace(name=None), True)
    return synchronize(handle)


class _Differentiable(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: "_Operation", options: Options, grouped: bool,
                *tensors: torch.Tensor) -> Any:
        ctx.table, ctx.options = table, options
        each = synchronize(_start(table, tensors, None, options, True))
        ctx.shapes = [t.shape for t in tensors]
        if table.kind != _ALLTOALL:
            return tuple(each) if grouped else each[0]
        output, received = each[0]
        ctx.options = options._replace(splits=received)
        if options.splits is None:
            return output
        ctx.mark_non_differentiable(received)
        return output, received

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        used = list(grads[:len(ctx.shapes)])
        back = ctx.table.gradient(used, ctx.options, ctx.shapes)
        return (None, None, None, *back)


# ---- arguments ----

def _reduction(op: Optional[int], average: Optional[bool]) -> int:
    if average is None:
        return Average if op is None else op
    if op is not None:
        raise ValueError("average and op are both given: give op only")
    warnings.warn("average is deprecated: use op=Average or op=Sum",
                  DeprecationWarning, stacklevel=4)
    return Average if average else Sum


def _allreduce_async(average=None, name=None, op=None, prescale_factor=1.0,
                     postscale_factor=1.0, process_set=global_process_set):
    return Options(name, _reduction(op, average), prescale_factor,
                   postscale_factor, process_set)


def _allreduce(average=None, name=None, compression=Compression.none, op=None,
               prescale_factor=1.0, postscale_factor=1.0,
               process_set=global_process_set):
    return Options(name, _reduction(op, average), prescale_factor,
                   postscale_factor, process_set, compression=compression)


def _allgather(name=None, process_set=global_process_set):
    return Options(name, process_set=process_set)


def _broadcast(root_rank, name=None, process_set=global_process_set):
    return Options(name, process_set=process_set, root=root_rank)


def _alltoall(splits=None, name=None, process_set=global_process_set):
    return Options(name, process_set=process_set, splits=splits)


def _reducescatter_async(name=None, op=Average, process_set=global_process_set,
                         prescale_factor=1.0, postscale_factor=1.0):
    return Options(name, op, prescale_factor, postscale_factor, process_set)


def _reducescatter(name=None, compression=Compression.none, op=Average,
                   process_set=global_process_set, prescale_factor=1.0,
                   postscale_factor=1.0):
    return Options(name, op, prescale_factor, postscale_factor, process_set,
                   compression=compression)


def _same_shape(tensor: torch.Tensor, options: Options) -> torch.Tensor:
    return torch.empty_like(tensor, requires_grad=False)


def _my_rows(tensor: torch.Tensor, options: Options) -> torch.Tensor:
    if tensor.dim() == 0:
        raise ValueError("reducescatter: a tensor with rows is expected, and "
                         "this one is a scalar")
    n = options.process_set.size()
    rows = tensor.shape[0] // n + \
        (options.process_set.rank() < tensor.shape[0] % n)
    return torch.empty((rows, *tensor.shape[1:]), dtype=tensor.dtype,
                       device=tensor.device)


# ---- the table, and the functions made from it ----

class _Operation(NamedTuple):
    name: str
    kind: int
    options: Callable[..., Options]  # of the async variants
    blocking: Callable[..., Options]  # of the others
    output: Optional[Callable[[torch.Tensor, Options], torch.Tensor]]
    gradient: Callable[[Tensors, Options, Any], Tensors]
    in_place: bool
    grouped: bool
    text: str


_TABLE: Dict[str, _Operation] = {table.name: table for table in (
    _Operation(
        "allreduce", _ALLREDUCE, _allreduce_async, _allreduce, _same_shape,
        _again, True, True,
        "Reduce a tensor over the ranks: op is Average (the default), Sum, "
        "Min, Max, Product or Adasum. Shapes and types are equal on all ranks, "
        "and those of the output. prescale_factor is applied before the sum, "
        "postscale_factor after it. An average of integers is truncated."),
    _Operation(
        "allgather", _ALLGATHER, _allgather, _allgather, None, _of_allgather,
        False, True,
        "Concatenate the ranks' tensors along the first dimension, which may "
        "differ between ranks; the other dimensions are equal."),
    _Operation(
        "broadcast", _BROADCAST, _broadcast, _broadcast, _same_shape,
        _of_broadcast, True, False,
        "Give all ranks the tensor of root_rank, a rank of the world. Shapes "
        "and types are equal on all ranks."),
    _Operation(
        "alltoall", _ALLTOALL, _alltoall, _alltoall, None, _of_alltoall, False,
        False,
        "Send rows to each rank, splits[i] of them to rank i of the set, and "
        "all the same number without splits; the output has what came from "
        "each, in their order. With splits it is (output, received_splits)."),
    _Operation(
        "reducescatter", _REDUCESCATTER, _reducescatter_async, _reducescatter,
        _my_rows, _of_reducescatter, False, True,
        "Reduce a tensor over the ranks, by Average (the default) or Sum, and "
        "give each rank some rows of the result; where they cannot be equal, "
        "the first ranks get one more."),
)}


def _start_function(table: _Operation, grouped: bool,
                    in_place: bool) -> Callable[..., Handle]:
    if grouped:
        def start(tensors: Sequence[torch.Tensor], *args: Any,
                  **kwargs: Any) -> Handle:
            tensors = list(tensors)
            return _start(table, tensors, tensors if in_place else None,
                          table.options(*args, **kwargs), True)
    else:
        def start(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Handle:
            return _start(table, [tensor], [tensor] if in_place else None,
                          table.options(*args, **kwargs), False)
    return start


def _wait_function(table: _Operation, grouped: bool) -> Callable[..., Any]:
    def run(tensors: Sequence[torch.Tensor], options: Options) -> Any:
        c = options.compression
        pairs = [c.compress(t) for t in tensors]
        out = _Differentiable.apply(table, options, grouped,
                                    *(t for t, _ in pairs))
        if table.kind == _ALLTOALL:
            return out
        each = [c.decompress(t, ctx) for t, (_, ctx) in
                zip(out if grouped else [out], pairs)]
        return each if grouped else each[0]

    if grouped:
        def function(tensors: Sequence[torch.Tensor], *args: Any,
                     **kwargs: Any) -> Any:
            return run(list(tensors), table.blocking(*args, **kwargs))
    else:
        def function(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            return run([tensor], table.blocking(*args, **kwargs))
    return function


def _in_place_function(start: Callable[..., Handle]) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        return synchronize(start(*args, **kwargs))
    return function


def _publish(name: str, function: Callable[..., Any], table: _Operation,
             arguments: Callable[..., Options], first: str, text: str) -> str:
    import inspect
    signature = inspect.signature(arguments)
    tensor = inspect.Parameter(first, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{table.text}\n\n{text}"
    function.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[tensor, *signature.parameters.values()],
        return_annotation=inspect.Signature.empty)
    globals()[name] = function
    return name


def _make(table: _Operation, grouped: bool) -> List[str]:
    """All variants of an operation, of one tensor or of a list."""
    stem = ("grouped_" if grouped else "") + table.name
    first = "tensors" if grouped else "tensor"
    starts = "Returns a handle at once. The tensors are not to be changed " \
        "until synchronize() has returned."
    names = [
        _publish(stem, _wait_function(table, grouped), table, table.blocking,
                 first, "Waits, and is differentiable."),
        _publish(f"{stem}_async", _start_function(table, grouped, False), table,
                 table.options, first, starts)]
    if table.in_place:
        start = _start_function(table, grouped, True)
        names += [
            _publish(f"{stem}_", _in_place_function(start), table,
                     table.options, first,
                     "Waits; the output is in the input."),
            _publish(f"{stem}_async_", start, table, table.options, first,
                     f"{starts} The output is in the input.")]
    return names


__all__ = ["Adasum", "Average", "Handle", "Max", "Min", "Product", "Sum",
           "barrier", "join", "poll", "sparse_allreduce_async", "synchronize"]
for _table in _TABLE.values():
    __all__ += _make(_table, False)
    if _table.grouped:
        __all__ += _make(_table, True)


# ---- those that are not of the table ----

def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Wait until all ranks of the set have called it."""
    options = Options(process_set=process_set)
    work = _dt.start(_BARRIER, None, _REDUCTIONS[Sum], options.set, 0, 1.0, 1.0,
                     ((0, 0, 0, (), 0, 0, None),), None)
    work.wait()


def join(device: int = -1) -> int:
    """This rank has no more data: until all ranks have joined, it adds zeros to
    the allreduces that the others start, whose average is still over all ranks.
    Returns the rank that was the last to join. ``device`` is without effect."""
    return _dt.join()


def sparse_allreduce_async(
        tensor: torch.Tensor, name: Optional[str] = None, op: int = Average,
        process_set: ProcessSet = global_process_set
) -> Callable[[], torch.Tensor]:
    """Sum or average a sparse COO tensor, by gathering indices and values of
    all ranks. Returns a function, which waits and gives the result; equal
    indices in it are not summed yet: coalesce() does that."""
    if op not in (Average, Sum):
        raise NotImplementedError("sparse_allreduce_async: op is Sum or "
                                  "Average")
    options = Options(name and f"{name}.indices", process_set=process_set)
    indices = _start(_TABLE["allgather"], [tensor._indices().t().contiguous()],
                     None, options, False)
    values = _start(_TABLE["allgather"], [tensor._values().contiguous()], None,
                    options._replace(name=name and f"{name}.values"), False)

    def result() -> torch.Tensor:
        all_values, all_indices = synchronize(values), synchronize(indices)
        if op == Average:
            all_values = all_values / process_set.size()
        return torch.sparse_coo_tensor(all_indices.t(), all_values,
                                       tensor.shape)

    return result
