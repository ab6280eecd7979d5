# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""Process sets: ranks that run operations together."""

import weakref
from typing import Any, Dict, Iterable, List, Optional, Union

from slurm_dt import _dt, basics

_added: "weakref.WeakSet[ProcessSet]" = weakref.WeakSet()

# Of each set the gradients that have a plan, in an order equal on its ranks.
plans: Dict[int, List[Any]] = {}


def _forget() -> None:
    plans.clear()
    for process_set in _added:
        process_set.process_set_id = None
    _added.clear()


basics._World.on_shutdown.append(_forget)


class ProcessSet:
    """Some ranks of the world, given in any order; ValueError for what are no
    ranks. It can be used after :func:`add_process_set`, which gives it
    ``process_set_id``."""

    process_set_id: Optional[int] = None
    ranks: Optional[List[int]] = None

    def __init__(self, ranks: Iterable[int]) -> None:
        try:
            self.ranks = sorted(ranks)
        except TypeError:
            raise ValueError("ProcessSet: a list of ranks is expected, not "
                             f"{type(ranks).__name__}") from None
        if any(not isinstance(rank, int) for rank in self.ranks):
            raise ValueError(f"ProcessSet: {self.ranks} are not all ranks")

    def size(self) -> Optional[int]:
        """How many ranks it has, None if it was not added."""
        if self.process_set_id is None:
            return None
        return _dt.set_place(self.process_set_id)[1]

    def rank(self) -> Optional[int]:
        """This rank's number in the set, None if it was not added; ValueError
        on a rank that is none of it. The root of a broadcast is not such a
        number, but a rank of the world."""
        if self.process_set_id is None:
            return None
        rank = _dt.set_place(self.process_set_id)[0]
        if rank < 0:
            raise ValueError(f"this rank is none of {self}")
        return rank

    def included(self) -> Optional[bool]:
        """Whether this rank is one of the set."""
        if self.process_set_id == 0:
            return True
        return None if self.ranks is None else basics.rank() in self.ranks

    def __str__(self) -> str:
        return (f"ProcessSet(process_set_id={self.process_set_id}, "
                f"ranks={self.ranks})")


class _World(ProcessSet):
    def __init__(self) -> None:
        self.process_set_id = 0

    @property  # type: ignore[override]
    def ranks(self) -> List[int]:
        return list(range(basics.size())) if basics.is_initialized() else []

    @ranks.setter
    def ranks(self, ranks: List[int]) -> None:
        pass


global_process_set = _World()


def add_process_set(
        process_set: Union[ProcessSet, Iterable[int]]) -> ProcessSet:
    """Make a set of these ranks. All ranks of the world call it, and give the
    same; it blocks. ValueError, on all ranks: there is one of these ranks
    already, or a rank does not exist. HorovodInternalError: they disagree."""
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    process_set.process_set_id = _dt.set_add(process_set.ranks or [])
    _added.add(process_set)
    return process_set


def add_of_init(process_sets: Iterable[Any], elastic: bool) -> None:
    """Add those that init() was given; in an elastic job as far as the world,
    which may be smaller than it was, has them."""
    for process_set in process_sets:
        ranks = process_set.ranks or []
        if elastic and max(ranks, default=0) >= basics.size():
            continue
        if elastic and len(ranks) == basics.size():
            process_set.process_set_id = 0
            _added.add(process_set)
        else:
            add_process_set(process_set)


def remove_process_set(process_set: ProcessSet) -> bool:
    """Remove a set, of which nothing may be under way. All ranks of the world
    call it; it blocks. False for one that was not added, and for the world."""
    if not process_set.process_set_id:
        return False
    number, process_set.process_set_id = process_set.process_set_id, None
    _dt.set_remove(number)
    for gradients in plans.pop(number, ()):
        gradients.forget()  # the engine has removed them with the set
    return True


def process_set_ids_and_ranks() -> Dict[int, List[int]]:
    """The ranks of each set, by its number."""
    return {i: _dt.set_ranks(i) for i in _dt.set_list()}
