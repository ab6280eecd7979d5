# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""ckpt.py - what ckpt.t has each rank do with slurm_dt.ckpt: each function whose
name begins with test_, in order; "ok NAME" or "not ok NAME" is printed for
each."""

import ctypes
import errno
import faulthandler
import json
import os
import random
import resource
import shutil
import signal
import struct
import warnings

import torch

import checks
from slurm_dt import _dt, ckpt
from slurm_dt.basics import join_world
from slurm_dt.ckpt import ranks

RANK, SIZE = 0, 1
ROOT = os.environ["ROOT"]
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16,
          torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64,
          torch.bool, torch.complex64]


def path(name):
    return os.path.join(ROOT, f"{name}-{SIZE}")


def some(dtype, *shape, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(*shape, generator=generator) * 100).to(dtype)


def same(got, wanted):
    assert type(got) is type(wanted), f"{type(got)}, not {type(wanted)}"
    if isinstance(wanted, torch.Tensor):
        assert got.dtype == wanted.dtype and torch.equal(got, wanted), got
    elif isinstance(wanted, dict):
        assert list(got) == list(wanted), f"{list(got)}, not {list(wanted)}"
        for key in wanted:
            same(got[key], wanted[key])
    elif isinstance(wanted, (list, tuple)):
        assert len(got) == len(wanted)
        for g, w in zip(got, wanted):
            same(g, w)
    else:
        assert got == wanted or got != got and wanted != wanted, got


def fails(error, words, function, *args):
    try:
        function(*args)
    except error as e:
        text = f"{e}"
        for word in [words] if isinstance(words, str) else words:
            assert word in text, f"{text!r} has not {word!r}"
        assert len(text.splitlines()) == 1, text
        return e
    raise AssertionError(f"no {error.__name__}")


def once(function, *args):
    """On rank 0, while the others wait."""
    if RANK == 0:
        function(*args)
    ranks.barrier()


class Counter:
    """An object with a state, as a sampler."""

    def __init__(self, n):
        self.n = n

    def state_dict(self):
        return {"n": self.n}

    def load_state_dict(self, state):
        self.n = state["n"]


class Plain:
    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return self.x == other.x


def full():
    return {
        "tensors": {str(d).replace("torch.", ""): some(d, 3, 5)
                    for d in DTYPES},
        "scalar": torch.tensor(2.5), "empty": torch.empty(0, 3),
        "flags": torch.tensor([True, False]),
        "list": [some(torch.float32, 4), 1, "text", None, True, 2.5],
        "tuple": (some(torch.int16, 2), -1), "numbers": {1: 2, 2.5: 3, None: 4,
                                                         (1, "a"): 5},
        "nan": [float("nan"), float("inf"), -0.0, 1e300, 2 ** 80],
        "unicode \u00e4.b": "\u20ac", "%": some(torch.float32, 2),
        "long" * 60: some(torch.float32, 2), "none": {}, "bytes": b"\0\1",
        "object": Plain(3)}


def blank(value):
    """The same structure, other contents."""
    if isinstance(value, torch.Tensor):
        return torch.zeros_like(value)
    if isinstance(value, dict):
        return {k: blank(v) for k, v in value.items()}
    if type(value) in (list, tuple):
        return type(value)(blank(v) for v in value)
    return 0


def test_round_trip():
    with ckpt.Directory(path("full")) as directory:
        assert directory.load({}) is None and directory.latest() is None
        directory.save(full(), 7)
    with ckpt.Directory(path("full")) as directory:
        assert directory.latest() == 7
        state = blank(full())
        inner, tensor = state["tensors"], state["tensors"]["float32"]
        assert directory.load(state) == 7
        same(state, full())
        assert state["tensors"] is inner and inner["float32"] is tensor
        state = {}  # all of it is new
        assert directory.load(state) == 7
        same(state, full())


def test_what_the_program_has_not_yet():
    # an empty dict or None has room for it; names are escaped
    with ckpt.Directory(path("room")) as directory:
        directory.save({"\u00e4 %": {"x": torch.ones(2), "n": 5},
                        "none": some(torch.int16, 3)}, 1)
        state = {"\u00e4 %": {}, "none": None}
        assert directory.load(state) == 1
        same(state, {"\u00e4 %": {"x": torch.ones(2), "n": 5},
                     "none": some(torch.int16, 3)})
        fails(ckpt.Mismatch, "the program has not none:int16 of it",
              directory.load, {"\u00e4 %": {}})


def test_files_are_safetensors():
    for root, _, files in os.walk(path("full")):
        for name in files:
            if not name.endswith(".safetensors"):
                continue
            with open(os.path.join(root, name), "rb") as file:
                head = json.loads(file.read(
                    struct.unpack("<Q", file.read(8))[0]))
            if "tensors.float32" in head:
                assert head["tensors.float32"]["shape"] == [3, 5]
                return
    raise AssertionError("no file has it")


def test_saved_once():
    # what all ranks have is in one file, and the work is shared
    big = {f"w{i}": some(torch.float32, 1000, seed=i) for i in range(8)}
    with ckpt.Directory(path("once")) as directory:
        directory.save(big, 1)
        names = os.listdir(os.path.join(path("once"), "step-000000000001"))
        files = [n for n in names if n.endswith(".safetensors")]
        assert len(files) == SIZE, names
        total = sum(os.path.getsize(os.path.join(
            path("once"), "step-000000000001", n)) for n in files)
        assert total < 8 * 4000 + 4096 * SIZE, total


def model(seed=0, hidden=8):
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(4, hidden), torch.nn.BatchNorm1d(hidden),
        torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(hidden, 2))


def train(net, optimizer, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.rand(16, 4)).square().sum().backward()
        optimizer.step()


def test_resumed_training_has_the_same_bits():
    for make in (lambda p: torch.optim.Adam(p, lr=0.01),
                 lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9)):
        whole = model()
        optimizer = make(whole.parameters())
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
        state = {"model": whole, "optimizer": optimizer,
                 "scheduler": scheduler, "random": ckpt.Random()}
        where = path("bits" + type(optimizer).__name__)
        with ckpt.Directory(where) as directory:
            train(whole, optimizer, 3)
            directory.save_async(state, 3)
            scheduler.step()
            train(whole, optimizer, 4)  # while it is written
        resumed = model(seed=5)
        optimizer = make(resumed.parameters())
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
        random.seed(9)
        state = {"model": resumed, "optimizer": optimizer,
                 "scheduler": scheduler, "random": ckpt.Random()}
        with ckpt.Directory(where) as directory:
            assert directory.load(state) == 3
            scheduler.step()
            train(resumed, optimizer, 4)
            same(dict(resumed.state_dict()), dict(whole.state_dict()))
            directory.save(state, 7)
            directory.save(state, 8)


def test_objects_and_each_ranks_own():
    def make(n):
        return {"counter": Counter(n), "own": ckpt.Own(
            {"rank": RANK * n, "t": torch.full((3,), float(RANK * n))}),
            "ownc": ckpt.Own(Counter(10 * RANK * n)), "random": ckpt.Random()}

    with ckpt.Directory(path("own")) as directory:
        state = make(1)
        torch.manual_seed(RANK)
        random.seed(RANK)
        directory.save(state, 1)
        wanted = torch.rand(3), random.random()
        torch.manual_seed(77)
        random.seed(77)
        other = make(0)
        counter = other["ownc"].value
        assert directory.load(other) == 1
        same((torch.rand(3), random.random()), wanted)
        assert other["counter"].n == 1 and other["own"].value["rank"] == RANK
        same(other["own"].value["t"], torch.full((3,), float(RANK)))
        assert other["ownc"].value is counter and counter.n == 10 * RANK


def test_numpy():
    try:
        import numpy
    except ImportError:
        return
    with ckpt.Directory(path("numpy")) as directory:
        numpy.random.seed(RANK)
        state = {"array": numpy.arange(6, dtype=">i2").reshape(2, 3),
                 "scalar": numpy.float64(2.5), "random": ckpt.Random()}
        directory.save(state, 1)
        wanted = numpy.random.rand()
        numpy.random.seed(99)
        other = {"random": ckpt.Random()}
        other.update(array=None, scalar=None)
        directory.load(other)
        assert numpy.random.rand() == wanted
        assert (other["array"] == state["array"]).all()
        assert type(other["scalar"]) is numpy.float64


def test_tied_weights():
    def tied():
        net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
        net[1].weight = net[0].weight
        return net

    torch.manual_seed(3)
    one, other, loose = tied(), tied(), torch.nn.Sequential(
        torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    with ckpt.Directory(path("tied")) as directory:
        directory.save({"m": one}, 1)
        step = os.path.join(path("tied"), "step-000000000001", "manifest.json")
        with open(step) as file:
            things = json.load(file)["tensors"]
        assert things["m.0.weight"]["kind"] == "global"
        assert things["m.1.weight"]["kind"] == "blob"
        for net in (other, loose):
            assert directory.load({"m": net}) == 1
            same(dict(net.state_dict()), dict(one.state_dict()))
        assert other[1].weight is other[0].weight
        # and from weights that are not tied, into those that are
        directory.save({"m": loose}, 2)
        assert directory.load({"m": other}) == 2
        same(other[0].weight.data, one[0].weight.data)


def test_not_contiguous():
    base = some(torch.float32, 4, 6)
    state = {"t": base.t(), "every": base[:, ::2],
             "expanded": torch.ones(1).expand(5),
             "conj": some(torch.complex64, 3).conj()}
    with ckpt.Directory(path("strides")) as directory:
        directory.save(state, 1)
        base += 1
        directory.save(state, 2)
        target = torch.zeros(4, 6)
        other = {"t": target.t(), "every": torch.zeros(4, 3),
                 "expanded": torch.zeros(5), "conj": torch.zeros(
                     3, dtype=torch.complex64)}
        assert directory.load(other) == 2
        same(target, base)
        same(other["every"], base[:, ::2].contiguous())
        same(other["conj"], state["conj"].resolve_conj())


def test_tensors_that_move_and_change():
    # new memory each time, a shape that grows each time: many more saves than
    # a process can open directories
    with ckpt.Directory(path("moves"), keep=1) as directory:
        kept = []
        for step in range(1, 301 if SIZE == 1 else 20):
            kept.append(torch.full((step,), 1.0))
            moved = torch.full((4,), float(step))
            kept.append(moved)
            directory.save_async({"grows": kept[-2], "moves": moved,
                                  "stays": [1.0] * step}, step)
        directory.wait()
        state = {"grows": torch.zeros(2), "moves": torch.zeros(4), "stays": []}
        assert directory.load(state) == step
        same(state["moves"], torch.full((4,), float(step)))
        same(state["grows"], torch.ones(step))
        assert len(state["stays"]) == step


def test_need_and_the_notice():
    assert not ckpt.should_exit()
    assert ckpt.time_left() < 0 and ckpt.restart_count() == 0
    assert isinstance(ckpt.run_id(), str) and ckpt.EXIT_REQUEUE == 75
    with ckpt.Directory(path("need")) as directory:
        for step in range(1, 6):
            assert not directory.need(step)
        # libdt asks the others at the calls 1, 2, 4, 8 by itself
        if RANK == SIZE - 1:
            os.kill(os.getpid(), signal.SIGTERM)
        assert directory.need(6) and ckpt.should_exit()


def test_a_forked_child_is_ended_by_sigterm():
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os.write(writer, b"x")
        while True:
            signal.pause()
    os.read(reader, 1)
    os.kill(child, signal.SIGTERM)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGTERM


def test_keep():
    with ckpt.Directory(path("keep"), keep=1) as directory:
        for step in range(4):
            directory.save({"x": torch.ones(3)}, step)
        ranks.barrier()
        assert os.listdir(path("keep")).count("step-000000000003") == 1
        assert len([n for n in os.listdir(path("keep"))
                    if n.startswith("step-")]) == 1


def test_another_model():
    net = model()
    with ckpt.Directory(path("other")) as directory:
        directory.save({"model": net, "epoch": 3}, 1)
        wider = model(hidden=9)
        before = wider[0].weight.clone()
        fails(ckpt.Mismatch, ["step-000000000001", path("other"),
                              "model.0.weight is F32 [8, 4] there and F32 [9, "
                              "4] in the program"], directory.load,
              {"model": wider})
        same(wider[0].weight.data, before.data)
        other = torch.nn.ModuleDict({"0": torch.nn.Linear(4, 8),
                                     "7": torch.nn.Linear(8, 2)})
        fails(ckpt.Mismatch,
              ["it has not model.7.bias, model.7.weight of the program",
               "the program has not model.1.bias, model.1.num_batches_tracked, "
               "model.1.running_mean and 4 more of it"], directory.load,
              {"model": other})
        fails(ckpt.Mismatch, "is F32 [8, 4] there and F64", directory.load,
              {"model": model().double()})
        fails(ckpt.Mismatch, "it has not mask:bool", directory.load,
              {"model": model(), "mask": torch.ones(2).bool()})
        # the one that is of this model still loads
        assert directory.load({"model": model()}) == 1


def test_a_newer_version():
    with ckpt.Directory(path("newer")) as directory:
        directory.save({"x": torch.ones(2)}, 1)

    def raise_version():
        name = os.path.join(path("newer"), "step-000000000001",
                            "manifest.json")
        with open(name) as file:
            manifest = json.load(file)
        manifest["version"] = 99
        del manifest["checksum"]
        text = json.dumps(manifest, sort_keys=True,
                          separators=(",", ":")).encode()
        xxh3 = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
        xxh3.restype = ctypes.c_uint64
        manifest["checksum"] = f"{xxh3(text, ctypes.c_size_t(len(text))):016x}"
        with open(name, "w") as file:
            json.dump(manifest, file, sort_keys=True, separators=(",", ":"))

    once(raise_version)
    with ckpt.Directory(path("newer")) as directory:
        fails(ValueError, "version 99", directory.load, {"x": torch.ones(2)})


def test_damaged_ones_are_passed_over():
    x = torch.ones(1000)
    with ckpt.Directory(path("damaged")) as directory:
        directory.save({"x": x}, 1)
        x += 1
        directory.save({"x": x, "y": torch.ones(3)}, 2)

    def damage():
        folder = os.path.join(path("damaged"), "step-000000000002")
        for name in os.listdir(folder):
            if name.endswith(".safetensors"):
                os.truncate(os.path.join(folder, name), 10)

    once(damage)
    with ckpt.Directory(path("damaged")) as directory:
        state = {"x": torch.zeros(1000)}
        assert directory.load(state) == 1
        same(state["x"], torch.ones(1000))
    once(shutil.rmtree, os.path.join(path("damaged"), "step-000000000001"))
    with ckpt.Directory(path("damaged")) as directory:
        error = fails(OSError, "no intact checkpoint", directory.load,
                      {"x": torch.zeros(1000), "y": torch.zeros(3)})
        assert error.errno == errno.EBADMSG


def test_a_disk_that_takes_no_more():
    # a limit of the size of files stands for it
    x = torch.ones(1 << 18)
    with ckpt.Directory(path("disk")) as directory:
        directory.save({"x": x}, 1)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        for save in (directory.save, directory.save_async):
            x += 1
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, limits[1]))
            try:
                def both():
                    save({"x": x}, 2)
                    directory.wait()

                fails(OSError, "File too large", both)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            assert directory.latest() == 1
        directory.save({"x": x}, 3)
        assert directory.latest() == 3


def test_a_directory_that_is_away_for_a_while():
    # other tensors, so that it is to be opened again
    with ckpt.Directory(path("away")) as directory:
        directory.save({"x": torch.ones(2)}, 1)

        def replace():
            os.rename(path("away"), path("away") + ".real")
            open(path("away"), "w").close()

        def restore():
            os.remove(path("away"))
            os.rename(path("away") + ".real", path("away"))

        once(replace)
        for step in (2, 3):
            fails(OSError, "Not a directory", directory.save_async,
                  {"y": torch.ones(2)}, step)
            directory.wait()
            assert directory.need(step)
        once(restore)
        directory.save_async({"y": torch.ones(2)}, 4)
        directory.wait()
        assert directory.latest() == 4


def test_bad_states():
    with ckpt.Directory(path("bad")) as directory:
        fails(ValueError, "a state is a dict", directory.save, [1], 1)
        fails(ValueError, "a state is a dict", directory.load, torch.ones(1))
        fails(ValueError, "x: a tensor of layout torch.sparse_coo",
              directory.save, {"x": torch.eye(2).to_sparse()}, 1)
        fails(ValueError, "a.x: a tensor on device meta: those on cpu and cuda",
              directory.save, {"a": {"x": torch.empty(2, device="meta")}}, 1)
        fails(ValueError, "two tensors of the state have this name",
              directory.save, {"a.b": torch.ones(1), "a": {
                  "b": torch.ones(2)}}, 1)
        fails(ValueError, "names do not begin with slurm_dt.",
              directory.save, {"slurm_dt": {"x": torch.ones(1)}}, 1)
        fails((ValueError, RuntimeError), "f: a function cannot be saved",
              directory.save, {"f": lambda: 1}, 1)
        fails(ValueError, "step", directory.save, {"x": torch.ones(1)}, -1)
        assert directory.latest() is None
        if SIZE > 1:
            fails(ValueError, ["the states of the ranks differ: y is",
                               "absent", "Own()"], directory.save,
                  {"x": torch.ones(1), **({"y": torch.ones(2)} if RANK else
                                          {})}, 1)
            fails(ValueError, "x is F32 [1] on rank 0 and F32 [2] on rank 1",
                  directory.save, {"x": torch.ones(min(RANK, 1) + 1)}, 1)

            def on_one_rank():
                if RANK == 1:
                    return {"x": torch.eye(2).to_sparse()}
                return {"x": torch.ones(2)}

            fails((RuntimeError, ValueError), "layout torch.sparse_coo",
                  directory.save, on_one_rank(), 1)
        directory.save({"x": torch.ones(1)}, 1)
        assert directory.latest() == 1
    fails(ValueError, "closed", directory.save, {"x": torch.ones(1)}, 2)


def test_one_directory_at_a_time():
    with ckpt.Directory(path("lock")):
        error = fails(OSError, path("lock"), ckpt.Directory, path("lock"))
        assert error.errno == errno.EBUSY
    fails(OSError, "/proc/nowhere", ckpt.Directory, "/proc/nowhere")
    fails(ValueError, "keep", ckpt.Directory, path("lock"), -5)


def test_extension():
    directory = _dt.checkpoint(path("ext"), -1)
    x = (ctypes.c_float * 6)(*range(6))
    where = ctypes.addressof(x)
    directory.add("x", where, 6, (2, 3), None, None, x)
    fails(ValueError, "already", directory.add, "x", where, 6, (2, 3), None,
          None, x)
    fails(ValueError, "element type", directory.add, "y", where, 99, (1,), None,
          None, x)
    fails(ValueError, "offset", directory.add, "y", where, 6, (2, 3), (0,),
          (2,), x)
    fails(ValueError, "too many", directory.add, "y", where, 6, (1,) * 33, None,
          None, x)
    directory.set_blob("b", b"\0one", True)
    assert directory.get_blob("b") == b"\0one"
    assert directory.get_blob("none") is None and directory.latest() is None
    directory.save(4)
    x[5] = 0
    assert directory.load() == 4 and x[5] == 5.0
    directory.close()
    directory.close()
    fails(ValueError, "closed", directory.save, 5)


def test_what_a_program_in_c_has_saved():
    net = torch.nn.Linear(3, 2)
    weight, bias = some(torch.float32, 2, 3), some(torch.float32, 2)
    directory = _dt.checkpoint(path("c"), -1)
    for name, t in (("net.weight", weight), ("net.bias", bias)):
        directory.add(name, t.data_ptr(), 6, t.shape, None, None, t)
    directory.set_blob("sampler", b"of its own", True)
    directory.save(3)
    directory.close()
    with ckpt.Directory(path("c")) as directory:
        turned = torch.zeros(3, 2).t()
        state = {"net": net, "n": 1}
        assert directory.load(state) == 3 and state["n"] == 1
        same(dict(net.state_dict()), {"weight": weight, "bias": bias})
        state = {"net": {"weight": turned, "bias": torch.zeros(2)}}
        assert directory.load(state) == 3
        assert torch.equal(turned, weight)
        fails(ckpt.Mismatch, "it has not other", directory.load,
              {"net": net, "other": torch.ones(1)})


def main():
    global RANK, SIZE
    faulthandler.dump_traceback_later(250, exit=True)
    warnings.simplefilter("ignore")
    join_world()
    RANK, SIZE = _dt.place()[:2]
    checks.run(globals())


main()
