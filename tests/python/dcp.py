# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""dcp.py - what ckpt.t has each rank do with DTensors, FSDP2 and
torch.distributed.checkpoint (PyTorch 2.15): each function whose name begins with
test_, in order. PHASE=save writes what PHASE=load reads on other ranks."""

import faulthandler
import os
import warnings

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import (
    get_state_dict, set_state_dict)
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import (
    DTensor, Replicate, Shard, distribute_tensor)

import checks
import slurm_dt.torch_backend  # noqa: F401
from slurm_dt import ckpt

RANK, SIZE, MESH = 0, 1, None
ROOT, PHASE = os.environ["ROOT"], os.environ.get("PHASE", "")


def path(name):
    """A directory that is shared by both phases."""
    return os.path.join(ROOT, name)


def whole():
    return {"rows": torch.arange(21.0).reshape(7, 3),
            "columns": torch.arange(20).reshape(4, 5).to(torch.int16),
            "both": torch.arange(6.0, dtype=torch.float64),
            "flags": torch.arange(9) % 2 == 0,
            "few": torch.arange(2.0), "scalar": torch.tensor(2.5)}


def spread(values):
    place = {"rows": Shard(0), "columns": Shard(1), "both": Replicate(),
             "flags": Shard(0), "few": Shard(0), "scalar": Replicate()}
    return {name: distribute_tensor(value, MESH, [place[name]])
            for name, value in values.items()}


def blank():
    return spread({k: torch.zeros_like(v) for k, v in whole().items()})


def same(got, wanted):
    for name, value in wanted.items():
        full = got[name].full_tensor()
        assert torch.equal(full, value) and full.dtype == value.dtype, name


def fails(error, words, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except error as e:
        assert words in f"{e}", f"{f'{e}'!r} has not {words!r}"
        return
    raise AssertionError(f"no {error.__name__}")


def model(seed=0):
    torch.manual_seed(seed)
    net = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ReLU(),
                              torch.nn.Linear(7, 3))
    for layer in (net[0], net[2], net):
        fully_shard(layer, mesh=MESH)
    return net


def train(net, optimizer, steps, seed):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.rand(8, 5, generator=generator)).square().sum().backward()
        optimizer.step()


def weights(net):
    return [p.full_tensor() for p in net.parameters()]


def fsdp_state(net, optimizer):
    of_model, of_optimizer = get_state_dict(net, optimizer)
    return {"model": of_model, "optimizer": of_optimizer, "step": 5}


def test_dtensors():
    with ckpt.Directory(path("dtensors")) as directory:
        if PHASE == "save":
            directory.save({"t": spread(whole()), "plain": torch.ones(2)}, 1)
        state = {"t": blank(), "plain": torch.zeros(2)}
        assert directory.load(state) == 1
        same(state["t"], whole())
        assert torch.equal(state["plain"], torch.ones(2))
        # into whole tensors, too
        state = {"t": {k: torch.zeros_like(v) for k, v in whole().items()},
                 "plain": torch.zeros(2)}
        assert directory.load(state) == 1
        for name, value in whole().items():
            assert torch.equal(state["t"][name], value), name
        if SIZE > 1:
            fails(ckpt.Mismatch, "is spread over the ranks", directory.load,
                  {"t": {}, "plain": torch.zeros(2)})


def test_partial():
    with ckpt.Directory(path("partial")) as directory:
        from torch.distributed.tensor import Partial
        some = DTensor.from_local(torch.ones(2), MESH, [Partial()])
        fails((ValueError, RuntimeError), "placements ['Partial']",
              directory.save, {"x": some}, 1)


def test_fsdp2():
    net = model()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    with ckpt.Directory(path("fsdp")) as directory:
        if PHASE == "save":
            train(net, optimizer, 3, 1)
            directory.save_async(fsdp_state(net, optimizer), 3)
            whole = weights(net)
            if RANK == 0:
                torch.save(whole, path("whole.pt"))
            train(net, optimizer, 2, 2)
        other = model(9)
        moments = torch.optim.Adam(other.parameters(), lr=0.01)
        state = fsdp_state(other, moments)
        state["step"] = 0
        assert directory.load(state) == 3 and state["step"] == 5
        set_state_dict(other, moments, model_state_dict=state["model"],
                       optim_state_dict=state["optimizer"])
        dist.barrier()
        for got, wanted in zip(weights(other), torch.load(path("whole.pt"))):
            assert torch.equal(got, wanted)
        if PHASE == "save":  # as many ranks: the same bits
            train(other, moments, 2, 2)
            for got, wanted in zip(weights(other), weights(net)):
                assert torch.equal(got, wanted)
        # as an object with a state
        third = model(8)
        assert directory.load({"model": third, "optimizer": fsdp_state(
            third, torch.optim.Adam(third.parameters()))["optimizer"]}) == 3
        for got, wanted in zip(weights(third), torch.load(path("whole.pt"))):
            assert torch.equal(got, wanted)


def test_collectives_under_way():
    many = [torch.full((10000,), i + 1.0) for i in range(20)]
    works = [dist.all_reduce(x, async_op=True) for x in many]
    with ckpt.Directory(path(f"way-{SIZE}-{PHASE}")) as directory:
        works += [dist.all_reduce(x, async_op=True) for x in many]
        assert not directory.need(1) and directory.latest() is None
        directory.save({"x": torch.ones(3)}, 1)
        works += [dist.all_reduce(x, async_op=True) for x in many]
        assert directory.load({"x": torch.zeros(3)}) == 1
    for work in works:
        work.wait()
    for i, x in enumerate(many):
        assert x[0].item() == (i + 1) * SIZE ** 3


def test_dcp():
    state = {"t": spread(whole()), "plain": torch.ones(2), "number": 3,
             "nested": {"list": [1, {"x": torch.full((3,), 2.0)}]},
             "text": "\u20ac", "scalar": torch.tensor(7)}
    if PHASE == "save":
        writer = ckpt.Writer(path("dcp"))
        dcp.save(state, checkpoint_id=4, storage_writer=writer)
        writer.close()
    reader = ckpt.Reader(path("dcp"))
    got = {"t": blank(), "plain": torch.zeros(2), "number": 0,
           "nested": {"list": [0, {"x": torch.zeros(3)}]}, "text": "",
           "scalar": torch.tensor(0)}
    dcp.load(got, storage_reader=reader)
    assert reader.step == 4
    same(got["t"], whole())
    assert torch.equal(got["plain"], torch.ones(2)), got
    assert (got["number"], got["text"], got["scalar"].item()) == (3, "\u20ac",
                                                                  7)
    assert got["nested"]["list"][0] == 1
    assert torch.equal(got["nested"]["list"][1]["x"], torch.full((3,), 2.0))
    # a part of it
    rows = {"t": {"rows": blank()["rows"]}}
    dcp.load(rows, storage_reader=reader)
    same(rows["t"], {"rows": whole()["rows"]})
    fails(BaseException, "other", dcp.load, {"other": torch.ones(1)},
          storage_reader=reader)
    reader.close()


def test_dcp_of_a_model_again_and_again():
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    writer = ckpt.Writer(path(f"again-{SIZE}-{PHASE}"), background=True, keep=2)
    for step in range(4):
        train(net, optimizer, 1, step)
        dcp.save(fsdp_state(net, optimizer), storage_writer=writer)
    wanted = weights(net)
    writer.wait()
    train(net, optimizer, 1, 9)
    writer.close()
    state = fsdp_state(net, optimizer)
    reader = ckpt.Reader(path(f"again-{SIZE}-{PHASE}"))
    dcp.load(state, storage_reader=reader)
    reader.close()
    assert reader.step == 3
    set_state_dict(net, optimizer, model_state_dict=state["model"],
                   optim_state_dict=state["optimizer"])
    for got, value in zip(weights(net), wanted):
        assert torch.equal(got, value)


def test_dcp_errors():
    reader = ckpt.Reader(path(f"nothing-{SIZE}"))
    fails(BaseException, "no checkpoint in", dcp.load, {"x": torch.zeros(1)},
          storage_reader=reader)
    reader.close()
    writer = ckpt.Writer(path(f"errors-{SIZE}"))
    fails(ValueError, "number of the training step", dcp.save,
          {"x": torch.ones(1)}, checkpoint_id="some/where",
          storage_writer=writer)
    with ckpt.Directory(path(f"errors-{SIZE}-2")) as directory:
        directory.save({"x": torch.ones(1)}, 1)
    if SIZE > 1:
        # one rank alone cannot save
        fails(BaseException, "all of them call dcp.save", dcp.save,
              {"x": torch.ones(1)}, no_dist=True, storage_writer=writer)
    future = dcp.async_save({"x": torch.ones(1)}, storage_writer=writer)
    fails(BaseException, "background=True", future.result)
    writer.close()


def main():
    global RANK, SIZE, MESH
    faulthandler.dump_traceback_later(250, exit=True)
    warnings.simplefilter("ignore")
    dist.init_process_group("dt", init_method="dt://")
    RANK, SIZE = dist.get_rank(), dist.get_world_size()
    MESH = dist.init_device_mesh("cpu", (SIZE,))
    checks.run(globals())
    dist.destroy_process_group()


main()
