# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""elastic.py - a training that goes on after losses, whose result tells whether
each sample counted once.

    elastic.py DIR [PHASE.RANK.STEP ...]

The process that the launcher started as RANK ends itself at that step or the
next that it comes to, once for each (a file in DIR tells). PHASE:

    before       it computes
    during       backward(): some gradients are on their way
    between      backward() and step()
    uncommitted  the step and the commit
    after        the commit
    opening      it starts the engine, for the STEPth time, from 0
    exit         during, by an exception
    error        during, by HorovodInternalError, which does not end it
"""

import faulthandler
import hashlib
import json
import os
import signal
import sys

import torch
import torch.nn.functional as F

import slurm_dt.torch as hvd
from slurm_dt import _dt

SAMPLES, BATCH, EPOCHS = 96, 4, 2
STARTED_AS = int(os.environ["PMIX_RANK"])
FOLDER, LOSSES = sys.argv[1], sys.argv[2:]


def is_time(phase, step):
    """Whether a loss in this phase is to be now, for the first time."""
    for loss in LOSSES:
        name, rank, when = loss.split(".")
        if name != phase or int(rank) != STARTED_AS or step < int(when):
            continue
        try:
            open(os.path.join(FOLDER, loss), "x").close()
            return True
        except FileExistsError:
            pass
    return False


def lose(phase, step):
    if is_time(phase, step):
        os.kill(os.getpid(), signal.SIGKILL)


def lose_in_backward(step):
    lose("during", step)
    if is_time("exit", step):
        raise SystemError("on purpose")
    if is_time("error", step):
        raise hvd.HorovodInternalError("on purpose")


def handles():
    """Threads and open files of this process."""
    return [len(os.listdir(f"/proc/self/{what}")) for what in ("task", "fd")]


open_engine, opened = _dt.open, 0


def open_or_lose(*args):
    global opened
    lose("opening", opened)
    opened += 1
    open_engine(*args)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 300)
        self.norm = hvd.SyncBatchNorm(300)
        self.second = torch.nn.Linear(300, 3)

    def forward(self, x, hook):
        hidden = torch.tanh(self.norm(self.first(x)))
        hidden.register_hook(lambda grad: hook())
        return self.second(hidden)


torch.manual_seed(0)
x, y = torch.rand(SAMPLES, 6), torch.arange(SAMPLES) % 3
faulthandler.dump_traceback_later(100, exit=True)
_dt.open = open_or_lose
first = hvd.ProcessSet([0, 1])
hvd.init(process_sets=[first])
torch.manual_seed(1 + STARTED_AS)  # the state's are those that count
model = Model()
optimizer = hvd.DistributedOptimizer(
    torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=0.1),
    named_parameters=model.named_parameters())
state = hvd.elastic.TorchState(
    model, optimizer, epoch=0, batch=0, steps=0, seen=[0] * SAMPLES,
    sampler=hvd.elastic.ElasticSampler(range(SAMPLES)))
state.register_reset_callbacks(
    [lambda: print(f"reset to {hvd.size()} ranks\n", end="", flush=True)])
timelines, most = [], []


def step(index):
    lose("before", state.steps)
    optimizer.zero_grad()
    output = model(x[index], lambda: lose_in_backward(state.steps))
    F.cross_entropy(output, y[index]).backward()
    lose("between", state.steps)
    optimizer.step()
    for sample in hvd.allgather(index).tolist():
        state.seen[sample] += 1
    state.sampler.record_batch(state.batch, len(index))
    state.batch += 1
    state.steps += 1
    lose("uncommitted", state.steps)
    state.commit()
    lose("after", state.steps)


def check_sets():
    """Those of init() are there again, as far as they can be; others are made
    again here."""
    assert (first.process_set_id is None) == (hvd.size() < 2)
    last = hvd.ProcessSet([hvd.size() - 1]) if hvd.size() > 1 else None
    if last:
        hvd.add_process_set(last)
        for ranks in (first, last):
            if ranks.included():
                total = hvd.allreduce(torch.ones(1), op=hvd.Sum,
                                      process_set=ranks)
                assert total.item() == ranks.size(), total


@hvd.elastic.run
def train(state):
    most.append(handles())
    for now, before in zip(most[-1], most[0]):
        assert now <= before, f"threads and files: {most}"
    check_sets()
    timelines.append(os.path.join(FOLDER, f"{os.getpid()}.{len(timelines)}"))
    hvd.start_timeline(timelines[-1])
    loader = torch.utils.data.DataLoader(range(SAMPLES), BATCH,
                                         sampler=state.sampler)
    while state.epoch < EPOCHS:
        assert hvd.broadcast_object(state.epoch, hvd.size() - 1) == state.epoch
        for index in loader:
            step(index)
        state.epoch += 1
        state.batch = 0
        state.sampler.set_epoch(state.epoch)
        state.commit()


train(state)
hvd.stop_timeline()
for path in timelines:
    if os.path.exists(path):
        with open(path) as file:
            json.load(file)
assert state.seen == [EPOCHS] * SAMPLES, state.seen
digest = hashlib.sha256()
for name, value in sorted(model.state_dict().items()):
    digest.update(value.numpy().tobytes())
print(f"trained on {hvd.size()} ranks: {digest.hexdigest()[:16]}\n", end="",
      flush=True)
