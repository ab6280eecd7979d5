# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""Which samples of a dataset each rank trains on: every one once per epoch,
also when the training stops, and goes on with another number of ranks.

    from slurm_dt import data

    sampler = data.Sampler(dataset, batch_size=32)
    loader = torch.utils.data.DataLoader(dataset, batch_sampler=sampler)
    for epoch in range(sampler.epoch, epochs):
        sampler.set_epoch(epoch)
        for batch in loader:
            train(batch)
            sampler.record()

The sampler belongs in the state that slurm_dt.ckpt saves.
"""

from typing import Any, Dict, Iterator, List, Optional, Sized, Union

try:
    import torch
except ImportError as _error:
    raise ImportError(f"slurm_dt.data needs PyTorch ({_error}): install torch, "
                      "1.13 or later, for this Python") from None

from slurm_dt import _dt
from slurm_dt.basics import join_world

__all__ = ["Sampler"]


class Sampler(torch.utils.data.Sampler):
    """A batch sampler, for ``DataLoader(dataset, batch_sampler=...)``: yields
    lists of indices, the batches of this rank.

    ``dataset``: what has a length, or the length. ``batch_size``: the samples
    of a rank in one training step. With ``shuffle``, the order is that of
    ``DistributedSampler``, by ``seed + epoch``; it does not depend on the
    number of ranks. All arguments but ``rank`` are equal on all ranks.

    All ranks make the same number of training steps. Where the samples do not
    divide into whole steps, the last step of the epoch has what is left, as
    evenly as can be; fewer than one for each rank are added to the step before,
    whose batches then have ``batch_size`` or one more. ``pad=True`` fills the
    last step up with the first samples of the order instead; ``drop_last=True``
    leaves out what fills no step. A step with fewer samples than ranks, which
    there is when fewer are left at a restart, or the dataset is that small, is
    filled up to one for each.

    ``rank`` and ``num_replicas``: of what trains on data of its own, where that
    is not each rank; both or none. By default they are those of the world at
    each start of an iteration; the first one, or len(), joins it: a call that
    all ranks make, and that blocks until they have.
    """

    def __init__(self, dataset: Union[Sized, int], batch_size: int,
                 shuffle: bool = True, seed: int = 0, pad: bool = False,
                 drop_last: bool = False, rank: Optional[int] = None,
                 num_replicas: Optional[int] = None) -> None:
        self.length = dataset if isinstance(dataset, int) else len(dataset)
        if self.length < 0 or batch_size < 1:
            raise ValueError(
                f"Sampler: {self.length} samples in batches of {batch_size}: "
                f"the size of a batch has to be 1 or more")
        if pad and drop_last:
            raise ValueError("Sampler: pad=True and drop_last=True: what is "
                             "dropped cannot be filled up; give one of them")
        if (rank is None) != (num_replicas is None) or (
                rank is not None and num_replicas is not None and
                not 0 <= rank < num_replicas):
            raise ValueError(
                f"Sampler: rank={rank}, num_replicas={num_replicas}: give a "
                f"rank from 0 to num_replicas - 1, or neither")
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.pad = pad
        self.drop_last = drop_last
        self._place = (rank, num_replicas)
        self._replicas: Optional[int] = None  # of the last iteration
        self.epoch = 0
        self.consumed = 0  # samples of this epoch, of all ranks

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch; nothing changes if it has begun, as after a load.
        Call it before each, on all ranks."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.consumed = 0

    def record(self) -> None:
        """This rank has trained on one batch, and every other rank on one, too.
        Call it after each training step: what a loader has prefetched does not
        count. RuntimeError when there are no more in the epoch."""
        if self._replicas is None:
            raise RuntimeError("Sampler: record() before the first iteration: "
                               "call it after each batch of the loader")
        left = self.length - self.consumed
        step = self._step(left, self._replicas)
        if not step:
            raise RuntimeError(
                f"Sampler: record() was called more often than there are "
                f"batches in epoch {self.epoch}: call it once for each, and "
                f"set_epoch() before each epoch")
        self.consumed += step
        if self.drop_last and not self._step(left - step, self._replicas):
            self.consumed = self.length

    def state_dict(self) -> Dict[str, Any]:
        """The epoch, and how many of its samples were trained on: the same on
        all ranks, whatever their number."""
        return {"epoch": self.epoch, "consumed": self.consumed,
                "length": self.length, "shuffle": self.shuffle,
                "seed": self.seed}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Go on from there at the next iteration. ValueError, and nothing is
        changed, if the samples or their order were others."""
        for name in "length", "shuffle", "seed":
            if state_dict[name] != getattr(self, name):
                raise ValueError(
                    f"Sampler: {name} is {getattr(self, name)}, and was "
                    f"{state_dict[name]} when the state was saved: give the "
                    f"same, or begin without this state")
        self.epoch = state_dict["epoch"]
        self.consumed = state_dict["consumed"]

    def _of_ranks(self) -> Any:
        rank, replicas = self._place
        if replicas is None:
            join_world()
            rank, replicas = _dt.place()[:2]
        return rank, replicas

    def _step(self, left: int, replicas: int) -> int:
        """How many of those left all ranks together take in a step; 0: none."""
        whole = self.batch_size * replicas
        if self.drop_last:
            return whole if left >= whole else 0
        if left >= whole + (1 if self.pad else replicas):
            return whole
        return min(left, whole) if self.pad else left

    def __iter__(self) -> Iterator[List[int]]:
        """The batches of this rank from what was recorded on. Ranks and their
        number are those at this moment."""
        rank, self._replicas = self._of_ranks()
        return self._batches(self.epoch, self.consumed, rank, self._replicas)

    def _batches(self, epoch: int, at: int, rank: int, replicas: int
                 ) -> Iterator[List[int]]:
        if self.shuffle:
            random = torch.Generator()
            random.manual_seed(self.seed + epoch)
            order = torch.randperm(self.length, generator=random)
        else:
            order = torch.arange(self.length)
        while True:
            step = self._step(self.length - at, replicas)
            if not step:
                return
            wanted = self.batch_size * replicas if self.pad else replicas
            count = max(step, wanted)  # those beyond are the first of the order
            begin, end = (count * r // replicas for r in (rank, rank + 1))
            yield [int(order[i if i < at + step else (i - at - step) %
                             self.length])
                   for i in range(at + begin, at + end)]
            at += step

    def __len__(self) -> int:
        """Batches of this rank that are left in the epoch."""
        replicas = self._of_ranks()[1]
        left, count = self.length - self.consumed, 0
        whole = self.batch_size * replicas
        if left > 2 * whole:  # those that are whole for sure
            count = left // whole - 2
            left -= count * whole
        while step := self._step(left, replicas):
            left -= step
            count += 1
        return count
