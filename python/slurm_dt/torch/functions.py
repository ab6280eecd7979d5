# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""Broadcasts and gathers of what is more than one tensor."""

import pickle
from typing import Any, Dict, List, Optional, Tuple

import torch

from slurm_dt import basics
from slurm_dt.torch import ops
from slurm_dt.torch.process_sets import ProcessSet, global_process_set

try:  # it takes functions of the main program, too
    import cloudpickle as _pickle
except ImportError:
    _pickle = pickle  # type: ignore[assignment]


def broadcast_parameters(params: Any, root_rank: int) -> None:
    """Give all ranks root_rank's tensors, in place.

    params: model.state_dict(), or a list of tensors, or of pairs of a name and
    a tensor, as list(model.named_parameters()). ValueError for anything else.
    """
    if isinstance(params, dict):
        pairs = sorted(params.items())
    elif isinstance(params, list):
        pairs = [p if isinstance(p, tuple) else (None, p) for p in params]
    else:
        raise ValueError("broadcast_parameters: a dict or a list is expected, "
                         f"not {type(params).__name__}")
    started = []
    for name, p in pairs:
        whole = p.data if p.is_contiguous() else p.data.contiguous()
        started.append((p, whole, ops.broadcast_async_(whole, root_rank, name)))
    for p, whole, handle in started:
        ops.synchronize(handle)
        if not p.is_contiguous():
            p.data.copy_(whole)


def _fill_state(optimizer: torch.optim.Optimizer,
                model: Optional[torch.nn.Module]) -> None:
    """Have an optimizer make its state, by a step with gradients of zero, which
    leaves the parameters as they are, also where weights decay."""
    before = [(p, p.detach().clone()) for group in optimizer.param_groups
              for p in group["params"]]
    sparse = {p for m in (model.modules() if model else ())
              if isinstance(m, torch.nn.Embedding) and m.sparse
              for p in m.parameters()}
    for p in (p for group in optimizer.param_groups for p in group["params"]):
        if not p.requires_grad:
            continue
        p.grad = torch.zeros_like(p, requires_grad=False)
        if isinstance(optimizer, torch.optim.SparseAdam) or \
                (isinstance(optimizer, torch.optim.SGD) and p in sparse):
            p.grad = p.grad.to_sparse()
    if hasattr(optimizer, "_parameter_names"):  # ours: not on all ranks
        super(optimizer.__class__, optimizer).step()
    else:
        optimizer.step()
    with torch.no_grad():
        for p, value in before:
            p.copy_(value)


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int,
                              model: Optional[torch.nn.Module] = None) -> None:
    """Give all ranks root_rank's state and options of an optimizer, in place.

    model: tells which parameters have sparse gradients. ValueError for L-BFGS,
    whose state is not one per parameter.
    """
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("broadcast_optimizer_state: L-BFGS is not supported")
    if not optimizer.state_dict()["state"]:
        _fill_state(optimizer, model)
    state_dict = optimizer.state_dict()
    tensors: List[Tuple[str, torch.Tensor]] = []
    values: Dict[Tuple[Any, ...], Any] = {}
    for i, group in enumerate(state_dict["param_groups"]):
        for option, value in group.items():
            if option != "params":
                values["option", i, option] = value
        for j, number in enumerate(group["params"]):
            for name, value in state_dict["state"].get(number, {}).items():
                if torch.is_tensor(value):
                    tensors.append((f"{name}.{i}.{j}", value))
                else:
                    values["state", number, name] = value
    broadcast_parameters(tensors, root_rank)
    values = broadcast_object(values, root_rank, "optimizer_values")
    for (what, i, name), value in values.items():
        if what == "option":
            optimizer.param_groups[i][name] = value
        else:  # the dicts of the state are the optimizer's own
            state_dict["state"][i][name] = value


def _to_bytes(obj: Any) -> torch.Tensor:
    return torch.frombuffer(bytearray(_pickle.dumps(obj)), dtype=torch.uint8)


def _from_bytes(tensor: torch.Tensor) -> Any:
    return pickle.loads(tensor.numpy().tobytes())


def broadcast_object(obj: Any, root_rank: int = 0, name: Optional[str] = None,
                     process_set: ProcessSet = global_process_set) -> Any:
    """root_rank's object, on all ranks of the set; it is pickled, by
    cloudpickle where that is installed. The other ranks' objects are not looked
    at."""
    name = name or "object"
    mine = basics.rank() == root_rank
    tensor = _to_bytes(obj) if mine else torch.empty(0, dtype=torch.uint8)
    length = torch.tensor([tensor.shape[0]])
    ops.broadcast_(length, root_rank, f"{name}.length", process_set)
    if not mine:
        tensor = torch.empty(int(length), dtype=torch.uint8)
    ops.broadcast_(tensor, root_rank, f"{name}.bytes", process_set)
    return obj if mine else _from_bytes(tensor)


def allgather_object(obj: Any, name: Optional[str] = None,
                     process_set: ProcessSet = global_process_set) -> List[Any]:
    """The objects of all ranks of the set, in their order. As
    broadcast_object()."""
    name = name or "object"
    tensor = _to_bytes(obj)
    lengths = ops.allgather(torch.tensor([tensor.shape[0]]), f"{name}.length",
                            process_set)
    everything = ops.allgather(tensor, f"{name}.bytes", process_set)
    return [_from_bytes(part)
            for part in torch.split(everything, lengths.tolist())]
