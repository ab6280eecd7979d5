# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""sampler.py - what sampler.t has each rank do with slurm_dt.data.Sampler: each
function whose name begins with test_, in order."""

import collections
import itertools
import os
import random

import torch
from torch.utils.data import DataLoader, DistributedSampler

import checks
from slurm_dt import ckpt, data
from slurm_dt.basics import join_world
from slurm_dt.ckpt import ranks

join_world()


def samplers(size, *args, **kwargs):
    """Those of all ranks of a world of that size."""
    return [data.Sampler(*args, rank=rank, num_replicas=size, **kwargs)
            for rank in range(size)]


def train(of_ranks, state=None, most=None):
    """Train for so many steps, or to the end; the state, and the batches of all
    ranks for each step."""
    steps = []
    for sampler in of_ranks:
        if state is not None:
            sampler.load_state_dict(state)
    length = {len(sampler) for sampler in of_ranks}
    batches = [list(sampler) for sampler in of_ranks]
    assert {len(b) for b in batches} == length, (length, batches)
    for step in list(zip(*batches))[:most]:
        steps.append(step)
        for sampler in of_ranks:
            sampler.record()
    states = [sampler.state_dict() for sampler in of_ranks]
    assert all(s == states[0] for s in states), states
    return states[0], steps


def flat(steps):
    return [i for step in steps for batch in step for i in batch]


def test_every_sample_once_across_restarts():
    chance = random.Random(1)
    for length, batch, first in itertools.product(
            (1, 2, 5, 24, 25, 97), (1, 2, 7), (1, 2, 3, 8)):
        seen, state, size, repeated = [], None, first, 0
        while True:
            before = state["consumed"] if state else 0
            made = samplers(size, length, batch, seed=3)
            state, steps = train(made, state, chance.choice((1, 2, 3, None)))
            repeated += len(flat(steps)) - (state["consumed"] - before)
            assert len(flat(steps)) == state["consumed"] - before or (
                length - before < size and len(steps) == 1)
            for step in steps:
                sizes = {len(b) for b in step}
                assert max(sizes) - min(sizes) <= 1 and min(sizes) >= 1
                assert max(sizes) <= batch + 1
            seen += flat(steps)
            if state["consumed"] == length:
                break
            size = chance.choice((1, 2, 3, 5, 8))
        count = collections.Counter(seen)
        assert set(count) == set(range(length)), (length, batch, first, seen)
        assert sum(count.values()) == length + repeated
        assert not list(made[0])


def test_padded_steps_are_whole():
    for length, batch, size in itertools.product(
            (3, 24, 25), (1, 4), (1, 2, 5)):
        state, steps = train(samplers(size, length, batch, pad=True))
        assert {len(b) for step in steps for b in step} == {batch}
        assert set(flat(steps)) == set(range(length))
        assert len(steps) == -(-length // (batch * size))
        assert state["consumed"] == length


def test_dropped_are_those_of_no_whole_step():
    for length, batch, size in itertools.product(
            (3, 24, 25), (1, 4), (1, 2, 5)):
        state, steps = train(samplers(size, length, batch, drop_last=True))
        assert len(flat(steps)) == len(set(flat(steps)))
        assert len(steps) == length // (batch * size)
        assert state["consumed"] == (length if steps else 0)


def test_the_order_is_that_of_distributed_sampler():
    for epoch, shuffle in itertools.product((0, 4), (True, False)):
        of_ranks = samplers(3, 30, 1, seed=5, shuffle=shuffle)
        theirs = [DistributedSampler(range(30), 3, rank, shuffle, 5)
                  for rank in range(3)]
        for sampler in of_ranks + theirs:
            sampler.set_epoch(epoch)
        order = [i for step in zip(*theirs) for i in step]
        assert flat(train(of_ranks)[1]) == order
        other = samplers(2, 30, 5, seed=5, shuffle=shuffle)
        for sampler in other:
            sampler.set_epoch(epoch)
        assert flat(train(other)[1]) == order


def test_epochs():
    sampler = data.Sampler(8, 2, rank=0, num_replicas=2)
    epochs = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        epochs.append(list(sampler))
        sampler.record()
        sampler.set_epoch(epoch)
        assert sampler.consumed == 4 and len(sampler) == 1
    assert epochs[0] != epochs[1]
    assert sampler.state_dict()["epoch"] == 1


def test_what_workers_prefetch_does_not_count():
    sampler = data.Sampler(60, 2, seed=2)
    loader = DataLoader(torch.arange(60), batch_sampler=sampler, num_workers=2,
                        prefetch_factor=4)
    seen = []
    for number, batch in enumerate(loader):
        if number == 3:
            break  # this one was loaded, and not trained on
        seen += batch.tolist()
        sampler.record()
    state = sampler.state_dict()
    size = len(ranks.gather(0))
    assert state["consumed"] == 3 * 2 * size
    later = data.Sampler(60, 2, seed=2)
    later.load_state_dict(state)
    for batch in DataLoader(torch.arange(60), batch_sampler=later):
        seen += batch.tolist()
        later.record()
    assert sorted(i for s in ranks.gather(seen) for i in s) == list(range(60))


def refused(text, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except (ValueError, RuntimeError) as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"no error with {text}")


def test_errors():
    refused("1 or more", data.Sampler, 8, 0)
    refused("give one of them", data.Sampler, 8, 1, pad=True, drop_last=True)
    refused("or neither", data.Sampler, 8, 1, rank=2, num_replicas=2)
    refused("or neither", data.Sampler, 8, 1, rank=0)
    sampler = data.Sampler(8, 4, rank=0, num_replicas=1)
    refused("before the first", sampler.record)
    for _ in sampler:
        sampler.record()
    refused("more often", sampler.record)
    state = sampler.state_dict()
    other = data.Sampler(9, 4, rank=0, num_replicas=1)
    refused("length is 9, and was 8", other.load_state_dict, state)
    assert other.consumed == 0
    other = data.Sampler(8, 4, seed=1, rank=0, num_replicas=1)
    refused("seed is 1, and was 0", other.load_state_dict, state)


def test_in_a_checkpoint_of_another_number_of_ranks():
    """Each run makes a step of epoch 1; the last one the rest of it."""
    sampler = data.Sampler(41, 3, seed=7)
    directory = ckpt.Directory(os.environ["ROOT"])
    seen = {"first": []}
    state = {"sampler": sampler, "seen": seen}
    step = directory.load(state) or 0
    sampler.set_epoch(1)
    last = "LAST" in os.environ
    for batch in sampler:
        seen["first"] += [i for b in ranks.gather(batch) for i in b]
        sampler.record()
        step += 1
        directory.save(state, step)
        if not last:
            break
    directory.close()
    if last:
        assert sorted(seen["first"]) == list(range(41)), seen


checks.run(globals())
