# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""State that is restored after a failed collective, and a sampler that goes on
where it was.

In an elastic job (``dt-run --elastic``, ``srun --dt-elastic``) the training goes
on after the loss of ranks, with those that live and the replacements of the
others. In any other the ranks of the world stay the same: after a loss run()
raises the error, and the job begins again from its checkpoint (``sbatch
--dt-requeue``).
"""

import copy
import functools
import random
import traceback
import uuid
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch

from slurm_dt import HorovodInternalError, basics
from slurm_dt.torch import functions

__all__ = ["ElasticSampler", "HostsUpdatedInterrupt", "ObjectState", "State",
           "TorchState", "run"]


_root = 0  # the rank whose state the others take
_process = uuid.uuid4().hex  # a replacement is another one


def _take_newest(state: "State", failures: int) -> Tuple[Any, int]:
    """Choose the rank whose state counts: the first of those with most commits,
    as a replacement has none, and as a rank may not have come to the last one.
    Returns who the ranks are and how many commits that one has, and how often
    any of them has failed: the same on all."""
    global _root
    every = functions.allgather_object(
        (_process, state._commits, failures), "commits")
    processes, commits, failed = zip(*every)
    _root = commits.index(max(commits))
    state._commits = commits[_root]
    return (processes, state._commits), max(failed)


def _broadcast_object(obj: Any) -> Any:
    return functions.broadcast_object(obj, _root)


class HostsUpdatedInterrupt(RuntimeError):
    """Asks run() to synchronize the state again, without restoring it."""

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__("the ranks are to synchronize again")
        self.skip_sync = skip_sync


class State:
    """What run() keeps: the functions that a state has."""

    def __init__(self, **kwargs: Any) -> None:
        self._reset_callbacks: List[Callable[[], None]] = []
        self._commits = 0

    def register_reset_callbacks(
            self, callbacks: List[Callable[[], None]]) -> None:
        """Functions to be called after the engine was started again."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        """Called when the engine was started again."""
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def commit(self) -> None:
        """Keep the state as it is now: restore() comes back to it."""
        self.save()
        self._commits += 1
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Nothing: ranks come only when others are lost."""

    def save(self) -> None:
        """Keep the state in memory."""
        raise NotImplementedError

    def restore(self) -> None:
        """Go back to what was kept."""
        raise NotImplementedError

    def sync(self) -> None:
        """Take the state of the rank with the newest commit."""
        raise NotImplementedError

    def reset(self) -> None:
        """To be overridden: called before sync() after a failure."""


class ObjectState(State):
    """Python objects, which are attributes of it. They are copied when they are
    kept, and pickled for other ranks."""

    def __init__(self,
                 bcast_object: Callable[[Any], Any] = _broadcast_object,
                 get_rank: Callable[[], int] = basics.rank,
                 **kwargs: Any) -> None:
        super().__init__()
        self._bcast_object = bcast_object
        self._rank = get_rank
        self._saved_state = kwargs
        self.restore()

    def save(self) -> None:
        self._saved_state = copy.deepcopy(
            {name: getattr(self, name) for name in self._saved_state})

    def restore(self) -> None:
        for name, value in copy.deepcopy(self._saved_state).items():
            setattr(self, name, value)

    def sync(self) -> None:
        if self._saved_state:
            self.save()
            self._saved_state = self._bcast_object(self._saved_state)
            ObjectState.restore(self)


class _Handler:
    """Keeps what has a state_dict()."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.save()

    def save(self) -> None:
        self.saved = copy.deepcopy(self.value.state_dict())

    def restore(self) -> None:
        self.value.load_state_dict(self.saved)

    def sync(self) -> None:
        """Take that of the rank whose state counts, and keep it."""
        self.take()
        self.save()

    def take(self) -> None:
        self.value.load_state_dict(
            _broadcast_object(self.value.state_dict()))


class _ModelHandler(_Handler):
    def take(self) -> None:
        functions.broadcast_parameters(self.value.state_dict(), _root)


class _OptimizerHandler(_Handler):
    def take(self) -> None:
        functions.broadcast_optimizer_state(self.value, _root)


class ElasticSampler(torch.utils.data.Sampler):
    """Divides a dataset among the ranks; what was recorded as processed is left
    out when it is divided again, which sync() of a state does.

    seed is equal on all ranks. Call record_batch() after each batch, and
    set_epoch() after each epoch.
    """

    def __init__(self, dataset: Any, shuffle: bool = True,
                 seed: int = 0) -> None:
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        self.processed_num = 0
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch, with nothing processed."""
        self.epoch = epoch
        self.processed_num = 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """All ranks have processed a batch of this size."""
        self.processed_num += batch_size * self.num_replicas

    def state_dict(self) -> Dict[str, int]:
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state_dict: Dict[str, int]) -> None:
        self.epoch = state_dict["epoch"]
        self.processed_num = state_dict["processed_num"]
        if basics.is_initialized():  # else the ranks are not known yet
            self.reset()

    def reset(self) -> None:
        """Divide what was not processed among the ranks there are."""
        self.num_replicas = basics.size()
        self.rank = basics.rank()
        order = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(order)
        self.remaining_indices = order[self.processed_num:]
        self.num_samples = -(-len(self.remaining_indices) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        left = self.remaining_indices
        # the last ones are the first ones again, so that all get as many
        padded = (left * (self.total_size // max(len(left), 1) + 1))
        return iter(padded[self.rank:self.total_size:self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples


_HANDLERS: Tuple[Tuple[type, type], ...] = (
    (torch.nn.Module, _ModelHandler),
    (torch.optim.Optimizer, _OptimizerHandler),
    (ElasticSampler, _Handler))


class TorchState(ObjectState):
    """A model, an optimizer, samplers and other objects, which are attributes
    of it."""

    def __init__(self, model: Optional[torch.nn.Module] = None,
                 optimizer: Optional[torch.optim.Optimizer] = None,
                 **kwargs: Any) -> None:
        kwargs.update(model=model, optimizer=optimizer)
        self._handlers: Dict[str, _Handler] = {}
        for name in list(kwargs):
            handler = next((handler for kind, handler in _HANDLERS
                            if isinstance(kwargs[name], kind)), None)
            if handler:
                value = kwargs.pop(name)
                super().__setattr__(name, value)
                self._handlers[name] = handler(value)
        super().__init__(**kwargs)

    def save(self) -> None:
        for handler in self._handlers.values():
            handler.save()
        super().save()

    def restore(self) -> None:
        for handler in self._handlers.values():
            handler.restore()
        super().restore()

    def sync(self) -> None:
        for handler in self._handlers.values():
            handler.sync()
        super().sync()

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__.get("_handlers", ()):
            self._handlers[name].value = value
            self._handlers[name].save()
        super().__setattr__(name, value)


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a function whose first argument is a state. The state is
    synchronized before the function is called. When a collective fails, or the
    function raises HorovodInternalError on any rank, the engine is started
    again, in an elastic job with the ranks that live; the state goes back to
    its last commit, and the function is called again. If it fails once more
    without a commit in between and with the same ranks, or if the engine does
    not start, the error is raised.

    A replacement begins with the program: between init() and this function it
    has no collective that the others would not have again.
    """

    @functools.wraps(func)
    def wrapper(state: State, *args: Any, **kwargs: Any) -> Any:
        error = HorovodInternalError("others have failed twice")
        last, failures = None, 0
        while True:
            try:
                now, failures = _take_newest(state, failures)
                if now != last:
                    last, failures = now, 0
                if failures >= 2:
                    break
                state.sync()
                return func(state, *args, **kwargs)
            except HorovodInternalError as e:
                error = e
                failures += 1
                traceback.clear_frames(e.__traceback__)  # what they hold
                try:
                    basics.reset()
                finally:
                    state.restore()
            except HostsUpdatedInterrupt:
                basics.reset()
            state.on_reset()
        raise error

    return wrapper
