# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""DistributedOptimizer: an optimizer whose gradients are those of all ranks."""

import warnings
import weakref
from contextlib import contextmanager
from typing import (Any, Callable, Dict, Iterable, Iterator, List, Optional,
                    Sequence, Tuple, Union)

import torch

from slurm_dt import _dt, basics
from slurm_dt.torch import ops
from slurm_dt.torch.compression import Compression
from slurm_dt.torch.ops import Adasum, Average, Sum
from slurm_dt.torch.process_sets import (
    ProcessSet, global_process_set, plans)

Named = Optional[Iterable[Tuple[str, torch.Tensor]]]

# types that a plan of libdt has: not those of 8 bits
_PLANNED = {torch.int32, torch.int64, torch.float16, torch.bfloat16,
            torch.float32, torch.float64}


def _named(groups: List[Dict[str, Any]],
           named_parameters: Named) -> Dict[torch.Tensor, str]:
    """A name for each parameter; ValueError unless they are unique and all."""
    if named_parameters is None:
        named_parameters = [(f"allreduce.noname.{i}.{j}", p)
                            for i, group in enumerate(groups)
                            for j, p in enumerate(group["params"])]
    named = list(named_parameters)
    if any(not isinstance(pair, tuple) for pair in named):
        raise ValueError("named_parameters: pairs of a name and a parameter "
                         "are expected, as model.named_parameters() gives them")
    names = [name for name, _ in named]
    twice = sorted({name for name in names if names.count(name) > 1}) \
        if len(set(names)) < len(names) else []
    if twice:
        raise ValueError("named_parameters: these names are there twice: "
                         f"{', '.join(twice)}")
    known = {p for _, p in named}
    unknown = sum(p not in known for group in groups for p in group["params"])
    if unknown:
        raise ValueError(f"named_parameters: {unknown} parameters of the "
                         "optimizer have no name in it")
    return {p: name for name, p in sorted(named, key=lambda pair: pair[0])}


def _check_groups(groups: Union[None, int, Sequence[Any]]) -> None:
    """Groups say what is sent together; a plan knows that by itself, and gives
    the same sums. So they are only checked."""
    if groups is None:
        return
    if not isinstance(groups, list):
        if not isinstance(groups, int) or groups < 0:
            raise ValueError("groups: a number that is not negative, or a list "
                             "of lists of tensors, is expected")
        return
    seen = set()
    for p in (p for group in groups for p in group):
        if not isinstance(p, torch.Tensor):
            raise ValueError("groups: lists of tensors are expected, not of "
                             f"{type(p).__name__}")
        if id(p) in seen:
            raise ValueError("groups: a parameter is in two groups")
        seen.add(id(p))


class _DistributedOptimizer(torch.optim.Optimizer):
    """The functions of a class that is made below, whose base is the class of
    the optimizer that was given; so self.__class__ stands for it."""

    def __init__(self, params: Any, named_parameters: Named, compression: Any,
                 backward_passes_per_step: int, op: int,
                 gradient_predivide_factor: float, groups: Any,
                 sparse_as_dense: bool, process_set: ProcessSet) -> None:
        super(self.__class__, self).__init__(params)
        self._parameter_names = _named(self.param_groups, named_parameters)
        _check_groups(groups)
        self.backward_passes_per_step = backward_passes_per_step
        self.op = op
        self.gradient_predivide_factor = gradient_predivide_factor
        self.sparse_as_dense = sparse_as_dense
        self.process_set = process_set
        self._compression = compression
        self._synchronized = False
        self._should_synchronize = True
        self._gradients = None
        self._finish: List[Callable[[], None]] = []
        self._rounded: Dict[str, Any] = {}  # gradients that go as int8
        self._residuals: Dict[str, torch.Tensor] = {}  # not restored yet
        if process_set.included() and basics.size() > 1:
            self._register()

    def _register(self) -> None:
        """Have each gradient call its object of the extension."""
        self._set = ops.Options(process_set=self.process_set).set
        self._gradients = _dt.gradients(
            self._set, self.backward_passes_per_step, torch.strided,
            getattr(torch._C, "_cuda_getCurrentRawStream", None))
        prescale = postscale = 1.0
        if self.op == Average:
            prescale = 1.0 / self.gradient_predivide_factor
            postscale = self.gradient_predivide_factor
        mine = weakref.ref(self)
        hooks: List[Any] = []
        # a model outlives an optimizer that was replaced by another
        weakref.finalize(self, _retire, hooks, self._gradients).atexit = False

        def other(gradient: Any) -> None:
            optimizer = mine()
            if optimizer is not None:
                optimizer._submit(gradient)

        for p in (p for group in self.param_groups for p in group["params"]):
            if not p.requires_grad:
                continue
            if p.device.type not in ops.DEVICES:
                raise ValueError(
                    f"DistributedOptimizer: '{self._parameter_names[p]}' is on "
                    f"{p.device}: parameters in the memory of the host or of a "
                    "CUDA GPU are expected")
            wire = getattr(self._compression, "wire", None)
            if wire is None or p.element_size() <= 2 or \
                    not p.is_floating_point():
                wire = p.dtype
            planned = p.dtype in _PLANNED and self.op in (Average, Sum) and (
                self._compression is Compression.none or
                getattr(self._compression, "wire", None) is not None)
            gradient = self._gradients.add(
                self._parameter_names[p], p, p.dtype,
                ops._TYPES.get(p.dtype, 0), ops._TYPES.get(wire, 0),
                ops._REDUCTIONS[self.op], tuple(p.shape), prescale, postscale,
                planned, other)
            hooks.append(_hook(p, gradient))
            if planned and wire == torch.int8:
                self._rounded[self._parameter_names[p]] = gradient

    def _submit(self, gradient: Any) -> None:
        """Called by the extension for a gradient that is not simply there:
        none, sparse, of another layout, or with a compressor of the user's."""
        p = gradient.param
        if p.grad is None:
            # a rank that has none adds zeros: another may have one
            p.grad = torch.zeros_like(p, requires_grad=False)
        if p.grad.requires_grad:
            raise AssertionError(f"the gradient of '{gradient.name}' requires "
                                 "a gradient: create_graph is not possible")
        if p.grad.is_sparse and not self.sparse_as_dense:
            self._submit_sparse(p, gradient.name)
            return
        tensor = p.grad.to_dense() if p.grad.is_sparse else \
            p.grad.contiguous()
        if tensor.dtype != p.dtype or not gradient.planned:
            self._submit_compressed(p, tensor, gradient.name)
            return
        gradient.submit(tensor)
        if tensor is not p.grad:
            self._finish.append(lambda: _assign(p, tensor))

    def _submit_sparse(self, p: torch.Tensor, name: str) -> None:
        result = ops.sparse_allreduce_async(p.grad, name, self.op,
                                            self.process_set)
        self._finish.append(lambda: _assign(p, result()))

    def _submit_compressed(self, p: torch.Tensor, tensor: torch.Tensor,
                           name: str) -> None:
        small, ctx = self._compression.compress(tensor)
        factor = self.gradient_predivide_factor if self.op == Average else 1.0
        handle = ops.allreduce_async(
            small, name=name, op=self.op, prescale_factor=1.0 / factor,
            postscale_factor=factor, process_set=self.process_set)
        self._finish.append(lambda: _assign(p, self._compression.decompress(
            ops.synchronize(handle), ctx)))

    def set_backward_passes_per_step(self, passes: int) -> None:
        """How many backward passes come before each step, from now on."""
        self.backward_passes_per_step = passes
        if self._gradients is not None:
            self._gradients.set_passes(passes)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> None:
        """As the optimizer's; gradients of an unfinished step are forgotten."""
        if self._gradients is not None:
            self._gradients.reset()
        self._finish.clear()
        self._synchronized = False
        self._should_synchronize = True
        super(self.__class__, self).load_state_dict(*args, **kwargs)

    def residuals(self) -> Dict[str, torch.Tensor]:
        """With Compression.int8: what rounding has taken away from each gradient
        of this rank, to be added in the next step: F32, by the parameters'
        names. A checkpoint has it, as the rank's own (slurm_dt.ckpt.Own), for
        the training to go on with the same bits. Between steps; local."""
        if self._gradients is None or not self._gradients.has_plan():
            return {name: r.clone() for name, r in self._residuals.items()}
        found = {}
        for name, gradient in self._rounded.items():
            found[name] = torch.empty(gradient.param.shape)
            gradient.residual(found[name].data_ptr(), False)
        return found

    def load_residuals(self, residuals: Dict[str, torch.Tensor]) -> None:
        """Put back what residuals() gave, before the next step. ValueError for
        other names or shapes."""
        shapes = {name: gradient.param.shape
                  for name, gradient in self._rounded.items()}
        for name, r in residuals.items():
            if shapes and shapes.get(name) != r.shape:
                raise ValueError(
                    f"load_residuals: '{name}' {list(r.shape)}: expected "
                    + (f"{list(shapes[name])}" if name in shapes else
                       "names of parameters with Compression.int8"))
        self._residuals = {name: r.detach().float().clone().contiguous()
                           for name, r in residuals.items()}
        if self._gradients is not None and self._gradients.has_plan():
            self._restore_residuals()

    def _restore_residuals(self) -> None:
        for name, r in self._residuals.items():
            if name in self._rounded:
                self._rounded[name].residual(r.data_ptr(), True)
        self._residuals = {}

    def _check_set(self) -> None:
        """ValueError for an optimizer of another world, whose process set is
        not the same in this one."""
        if self._gradients is None:
            same = basics.size() == 1 or not self.process_set.included()
        else:
            same = self._set == ops.Options(process_set=self.process_set).set
        if not same:
            raise ValueError(f"DistributedOptimizer: {self.process_set} has "
                             "other ranks or another number since the world "
                             "has changed: make the optimizer again")

    def synchronize(self) -> None:
        """Wait until the gradients are those of all ranks, which all call it.
        HorovodInternalError, on all, when that has failed."""
        if self._gradients is None or not self._gradients.has_plan():
            self._check_set()
        if self._gradients is not None:
            finish, self._finish = self._finish, []
            if not self._gradients.has_plan():
                _make_room(self.process_set, self._gradients)
                self._gradients.make_plan()
                self._restore_residuals()
            self._gradients.step()
            for function in finish + self._finish:
                function()
            self._finish.clear()
        self._synchronized = True

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Within it, step() does not call synchronize(): after a call of one's
        own, to clip gradients for example."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """synchronize(), then the optimizer's step."""
        if self._should_synchronize:
            if self._synchronized:
                warnings.warn(
                    "optimizer.step() called without "
                    "optimizer.skip_synchronize() context after "
                    "optimizer.synchronize(): gradients are reduced twice, "
                    "which takes time")
            self.synchronize()
        self._synchronized = False
        return super(self.__class__, self).step(closure)

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """As the optimizer's; AssertionError between backward() and step()."""
        if self._gradients is not None and self._gradients.pending():
            raise AssertionError(
                "optimizer.zero_grad() was called after loss.backward() but "
                "before optimizer.step() or optimizer.synchronize(): the "
                "gradients are on their way")
        super(self.__class__, self).zero_grad(*args, **kwargs)


def _hook(p: torch.Tensor, gradient: Any) -> Tuple[Any, Any]:
    """Have autograd call it after p's gradient was accumulated, as long as what
    is returned lives: a handle, and what it is a handle of."""
    if hasattr(p, "register_post_accumulate_grad_hook"):
        return p.register_post_accumulate_grad_hook(gradient), p
    accumulate = p.expand_as(p).grad_fn.next_functions[0][0]
    return accumulate.register_hook(gradient), accumulate


def _retire(hooks: List[Any], gradients: Any) -> None:
    """The optimizer is no more."""
    for handle, _ in hooks:
        handle.remove()
    hooks.clear()
    gradients.release()


def _make_room(process_set: ProcessSet, gradients: Any) -> None:
    """Before a plan is made, remove those whose optimizers are no more on any
    rank of the set. It takes all of these to remove one, and here they meet."""
    number = ops.Options(process_set=process_set).set
    others = plans.setdefault(number, [])
    if others:
        free = torch.tensor([g.is_free() for g in others], dtype=torch.uint8)
        ops.allreduce_(free, name="slurm_dt.plans", op=ops.Min,
                       process_set=process_set)
        for other in [g for g, gone in zip(others, free.tolist()) if gone]:
            other.destroy()
            others.remove(other)
    others.append(gradients)


def _assign(p: torch.Tensor, value: torch.Tensor) -> None:
    """Make it p's gradient, in p.grad itself, to which others may refer."""
    if not p.grad.is_sparse:
        if value is not p.grad:
            p.grad.copy_(value)
        return
    if not value.is_sparse:
        value = value.to_sparse(p.grad.sparse_dim())
    p.grad.zero_().add_(value)


class _DistributedAdasumOptimizer(torch.optim.Optimizer):
    """Adasum combines what the ranks' optimizers do, not their gradients: each
    makes its own step, and the differences are reduced."""

    def __init__(self, params: Any, named_parameters: Named, compression: Any,
                 backward_passes_per_step: int) -> None:
        super(self.__class__, self).__init__(params)
        self._parameter_names = _named(self.param_groups, named_parameters)
        self._compression = compression
        self.backward_passes_per_step = backward_passes_per_step

    def set_backward_passes_per_step(self, passes: int) -> None:
        self.backward_passes_per_step = passes

    def synchronize(self) -> None:
        """Nothing: the ranks meet in step()."""

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        raise AssertionError("skip_synchronize() is not for Adasum, whose "
                             "ranks meet after their steps")
        yield

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        params = [p for group in self.param_groups for p in group["params"]
                  if p.requires_grad]
        before = [p.detach().clone() for p in params]
        loss = super(self.__class__, self).step(closure)
        handles = []
        with torch.no_grad():
            for p, start in zip(params, before):
                small, ctx = self._compression.compress(p.detach() - start)
                handles.append((ops.allreduce_async_(
                    small.contiguous(), name=self._parameter_names[p],
                    op=Adasum), ctx))
            for p, start, (handle, ctx) in zip(params, before, handles):
                delta = self._compression.decompress(ops.synchronize(handle),
                                                     ctx)
                p.copy_(start + delta)
        return loss


def DistributedOptimizer(
        optimizer: torch.optim.Optimizer, named_parameters: Named = None,
        compression: Any = Compression.none, backward_passes_per_step: int = 1,
        op: int = Average, gradient_predivide_factor: float = 1.0,
        num_groups: int = 0, groups: Any = None, sparse_as_dense: bool = False,
        process_set: ProcessSet = global_process_set) -> torch.optim.Optimizer:
    """The optimizer, as one of a class derived from its own, which sums or
    averages the gradients of all ranks: each as soon as backward() has it, and
    step() waits for them. All ranks call step() and synchronize() together.

    named_parameters: names for all parameters, equal on all ranks.
    backward_passes_per_step: so many passes are accumulated before a step.
    op: Average, Sum, Min, Max, Product, or Adasum.
    gradient_predivide_factor: an average is divided by it before the sum, and
    by size / factor after it.
    groups, num_groups: taken, and not needed: buckets of the plan replace them.
    sparse_as_dense: sparse gradients are reduced as dense ones.
    process_set: the ranks that take part; on others it changes nothing.

    ValueError: names that are missing or there twice, and arguments that do not
    fit.
    """
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor is for op=Average only")
    if backward_passes_per_step <= 0:
        raise ValueError("backward_passes_per_step must be > 0")
    if num_groups:
        warnings.warn("num_groups is deprecated: use groups",
                      DeprecationWarning, stacklevel=2)
        groups = num_groups if groups is None else groups
    kind = type(optimizer)
    if op != Adasum or basics.size() == 1:
        functions = dict(_DistributedOptimizer.__dict__)
        arguments: Tuple[Any, ...] = (
            op, gradient_predivide_factor, groups, sparse_as_dense, process_set)
    elif process_set is not global_process_set:
        raise NotImplementedError("Adasum is for the global process set only")
    else:
        functions = dict(_DistributedAdasumOptimizer.__dict__)
        arguments = ()
    functions.pop("__dict__", None)
    functions.pop("__weakref__", None)
    made = type(kind.__name__, (kind,), functions)
    return made(optimizer.param_groups, named_parameters, compression,
                backward_passes_per_step, *arguments)
