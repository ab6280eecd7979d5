# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""hvd.py - slurm_dt.torch with tensors on real GPUs, against what PyTorch
computes itself. On a machine with a GPU and a PyTorch with CUDA:

    dt-run -n 2 python3 tests/device/hvd.py

Several ranks may share a GPU. Each rank prints what it checked, and "ok", and
exits 0; or a line that begins with "skip" where there is no GPU. It ends by
itself within a minute, also when something hangs.
"""

import faulthandler
import os
import sys
import time

faulthandler.dump_traceback_later(58, exit=True)
os.environ.setdefault("DT_TIMEOUT", "40")

try:
    import torch
except ImportError as error:
    print(f"skip: there is no PyTorch ({error})")
    sys.exit(0)
if not torch.cuda.is_available():
    print("skip: PyTorch sees no CUDA GPU")
    sys.exit(0)

import slurm_dt.torch as hvd  # noqa: E402

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.uint8, torch.int8, torch.int32, torch.int64]
counts = {}


def check(what, right):
    counts[what] = counts.get(what, 0) + 1
    if not right:
        raise AssertionError(f"rank {hvd.rank()}: {what} is wrong")


def equal(a, b):
    return a.device == b.device and a.dtype == b.dtype and \
        a.shape == b.shape and bool(torch.equal(a, b))


def numbers(shape, dtype, rank, salt=0):
    """Small whole numbers, whose sums and products are exact in each type."""
    g = torch.Generator().manual_seed(1000 * salt + rank)
    return torch.randint(0, 3, shape, generator=g).to(dtype)


def of_all(shape, dtype, salt=0):
    return [numbers(shape, dtype, r, salt).to(device)
            for r in range(hvd.size())]


def mine(shape, dtype, salt=0):
    return numbers(shape, dtype, hvd.rank(), salt).to(device)


# ---- operations ----

def reductions():
    for dtype in FLOATS + INTEGERS:
        for shape in [(), (1,), (1000, 3), (300001,)]:
            every = torch.stack([t.double() for t in of_all(shape, dtype)])
            wanted = {hvd.Sum: every.sum(0), hvd.Min: every.amin(0),
                      hvd.Max: every.amax(0), hvd.Product: every.prod(0)}
            for op, value in wanted.items():
                x = mine(shape, dtype)
                got = hvd.allreduce(x, op=op)
                check("allreduce", equal(got, value.to(dtype)))
                check("input", equal(x, mine(shape, dtype)))
            got = hvd.allreduce(mine(shape, dtype), op=hvd.Average)
            average = every.sum(0) / hvd.size()
            check("average", torch.allclose(
                got.double(), average.trunc() if dtype in INTEGERS
                else average, rtol=1e-2))
            x = mine(shape, dtype)
            hvd.allreduce_(x, op=hvd.Sum)
            check("in place", equal(x, wanted[hvd.Sum].to(dtype)))
        if dtype in FLOATS:
            got = hvd.allreduce(mine((999,), dtype), op=hvd.Sum,
                                prescale_factor=0.5, postscale_factor=4.0)
            every = torch.stack([t.double() for t in of_all((999,), dtype)])
            check("factors", equal(got, (every.sum(0) * 2).to(dtype)))


def host_bits():
    """What does not come out exactly has the bits of tensors on the host."""
    g = torch.Generator().manual_seed(hvd.rank())
    for dtype in FLOATS:
        x = torch.randn(20011, generator=g).to(dtype)
        for op in (hvd.Sum, hvd.Average):
            host = hvd.allreduce(x, op=op, prescale_factor=0.3,
                                 postscale_factor=1.7)
            there = hvd.allreduce(x.to(device), op=op, prescale_factor=0.3,
                                  postscale_factor=1.7)
            check("bits", equal(there, host.to(device)))
    if hvd.size() & (hvd.size() - 1) == 0:
        x = torch.randn(501, generator=g)
        check("Adasum", equal(hvd.allreduce(x.to(device), op=hvd.Adasum),
                              hvd.allreduce(x, op=hvd.Adasum).to(device)))


def compressed():
    x = mine((1000,), torch.float32)
    total = torch.stack(of_all((1000,), torch.float32)).sum(0)
    for compression in (hvd.Compression.fp16, hvd.Compression.bf16):
        check("compression", equal(
            hvd.allreduce(x, op=hvd.Sum, compression=compression), total))


def moves():
    n, r = hvd.size(), hvd.rank()
    for dtype in FLOATS + INTEGERS + [torch.bool, torch.complex64]:
        parts = [numbers((i + 1, 5), dtype, i).to(device) for i in range(n)]
        check("allgather", equal(hvd.allgather(parts[r]), torch.cat(parts)))
        for root in range(n):
            x = mine((77, 3), dtype, 3)
            check("broadcast", equal(hvd.broadcast(x, root),
                                     numbers((77, 3), dtype, root, 3)
                                     .to(device)))
            hvd.broadcast_(x, root)
            check("broadcast", equal(x, numbers((77, 3), dtype, root, 3)
                                     .to(device)))
        splits = torch.arange(1, n + 1, dtype=torch.int32)
        rows = int(splits.sum())
        got, received = hvd.alltoall(mine((rows, 2), dtype, 4), splits)
        before = int(splits[:r].sum())
        check("alltoall", equal(got, torch.cat(
            [t[before:before + r + 1] for t in of_all((rows, 2), dtype, 4)])))
        check("received", received.tolist() == [r + 1] * n and
              received.device.type == "cpu")
        received = hvd.alltoall(mine((rows, 2), dtype, 4),
                                splits.to(device))[1]
        check("received", received.device == device)
    for dtype in FLOATS:
        rows = 2 * n + 1
        every = torch.stack(of_all((rows, 3), dtype, 5)).double().sum(0)
        lengths = [rows // n + (i < rows % n) for i in range(n)]
        got = hvd.reducescatter(mine((rows, 3), dtype, 5), op=hvd.Sum)
        check("reducescatter",
              equal(got, every.to(dtype).split(lengths)[r]))


def empty():
    n, r = hvd.size(), hvd.rank()
    parts = [numbers((i, 2), torch.float32, i).to(device) for i in range(n)]
    check("empty", equal(hvd.allgather(parts[r]), torch.cat(parts)))
    check("empty", hvd.allreduce(torch.empty(0, 3, device=device)).shape ==
          (0, 3))
    rows = torch.zeros(n, dtype=torch.int32)
    got, received = hvd.alltoall(torch.empty(0, 2, device=device), rows)
    check("empty", got.shape == (0, 2) and received.tolist() == [0] * n)


def grouped():
    shapes = [(3,), (1000, 7), (), (250000,)]
    ts = [mine(s, torch.float32, i) for i, s in enumerate(shapes)]
    every = [torch.stack(of_all(s, torch.float32, i)).sum(0)
             for i, s in enumerate(shapes)]
    for a, b in zip(hvd.grouped_allreduce(ts, op=hvd.Sum), every):
        check("group", equal(a, b))
    hvd.grouped_allreduce_(ts, op=hvd.Sum)
    for a, b in zip(ts, every):
        check("group", equal(a, b))
    rows = [mine((4, 2), torch.float64, i) for i in range(3)]
    for i, got in enumerate(hvd.grouped_allgather(rows)):
        check("group", equal(got, torch.cat(of_all((4, 2), torch.float64, i))))


def sparse():
    i = torch.tensor([[hvd.rank(), hvd.size()]], device=device)
    v = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device=device)
    t = torch.sparse_coo_tensor(i, v, (hvd.size() + 1, 2))
    got = hvd.sparse_allreduce_async(t, "sparse", op=hvd.Sum)().to_dense()
    wanted = torch.cat([torch.tensor([[1.0, 2.0]] * hvd.size()),
                        torch.tensor([[3.0, 4.0]]) * hvd.size()])
    check("sparse", equal(got, wanted.to(device)))


def objects():
    check("object", hvd.broadcast_object({"a": hvd.rank()}, 0) == {"a": 0})
    check("object", hvd.allgather_object(hvd.rank()) ==
          list(range(hvd.size())))


def process_sets():
    if hvd.size() < 2:
        return
    evens = hvd.add_process_set(list(range(0, hvd.size(), 2)))
    odds = hvd.add_process_set(list(range(1, hvd.size(), 2)))
    own = evens if evens.included() else odds
    got = hvd.allreduce(mine((5000,), torch.float32), op=hvd.Sum,
                        process_set=own)
    every = of_all((5000,), torch.float32)
    check("process set", equal(got, torch.stack(
        [every[r] for r in own.ranks]).sum(0)))
    hvd.remove_process_set(evens)
    hvd.remove_process_set(odds)


def autograd():
    x = mine((10, 2), torch.float32).requires_grad_()
    hvd.allreduce(x, op=hvd.Sum).sum().backward()
    check("backward", equal(x.grad, torch.full_like(x, hvd.size())))
    x = mine((hvd.rank() + 1, 2), torch.float32).requires_grad_()
    hvd.allgather(x).sum().backward()
    check("backward", equal(x.grad, torch.ones_like(x)))


def wrong():
    """A tensor on the host of one rank, on the GPU of the others."""
    if hvd.size() < 2:
        return
    x = torch.ones(5) if hvd.rank() == 0 else torch.ones(5, device=device)
    try:
        hvd.allreduce(x, name="split")
    except hvd.HorovodInternalError as error:
        check("mismatch", "'allreduce.split'" in str(error) and
              "a tensor on a GPU" in str(error) and
              "in the memory of the host" in str(error))
    else:
        check("mismatch", False)


# ---- streams ----

def slow(x):
    """Kernels that take a while before x is there."""
    a = torch.eye(2048, device=device)
    for _ in range(30):
        a = a @ a
    return x * a[0, 0]


def streams():
    side = torch.cuda.Stream(device)
    wanted = torch.stack(of_all((100000,), torch.float32)).sum(0)
    source = mine((100000,), torch.float32)
    torch.cuda.synchronize(device)
    for i in range(6):
        with torch.cuda.stream(side):
            x = slow(source)
            handle = hvd.allreduce_async(x, name="side", op=hvd.Sum)
        got = hvd.synchronize(handle) + 0  # at once, on another stream
        check("streams", equal(got, wanted))
        x = slow(source)  # the default stream
        hvd.allreduce_(x, op=hvd.Sum)
        check("streams", equal(x + 0, wanted))
        del x, got


# ---- training ----

def model(where):
    torch.manual_seed(3)
    return torch.nn.Sequential(
        torch.nn.Linear(64, 256), torch.nn.Tanh(),
        torch.nn.Linear(256, 128, bias=False), torch.nn.Tanh(),
        torch.nn.Linear(128, 10)).double().to(where)


def batch(rank, step):
    g = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(16, 64, generator=g, dtype=torch.float64)


def train(net, steps, step_of):
    for step in range(steps):
        step_of(net, step)
    return [p.detach().cpu() for p in net.parameters()]


def optimizers():
    def alone(net, step):
        loss = sum(net(batch(r, step).to(device)).square().mean()
                   for r in range(hvd.size())) / hvd.size()
        opt.zero_grad()
        loss.backward()
        opt.step()

    def together(net, step):
        opt.zero_grad()
        net(batch(hvd.rank(), step).to(where)).square().mean().backward()
        opt.step()

    net = model(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    wanted = train(net, 8, alone)
    results = {}
    for where in (device, torch.device("cpu")):
        for name, tolerance in (("none", 1e-9), ("fp16", 1e-2),
                                ("bf16", 5e-2), ("int8", 5e-2)):
            net = model(where)
            opt = hvd.DistributedOptimizer(
                torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9),
                named_parameters=net.named_parameters(),
                compression=getattr(hvd.Compression, name))
            before = hvd.stats()["buckets"]
            got = train(net, 8, together)
            for a, b in zip(got, wanted):
                check(f"optimizer, {name}",
                      torch.allclose(a, b, rtol=tolerance, atol=tolerance))
            if name != "int8":
                check("plan", hvd.stats()["buckets"] > before or
                      hvd.size() == 1)
            results[where.type, name] = got
    net = model(device).float()
    opt = hvd.DistributedOptimizer(
        torch.optim.Adam(net.parameters()), op=hvd.Sum,
        named_parameters=net.named_parameters(), backward_passes_per_step=2)
    for step in range(3):
        for part in range(2):
            x = batch(hvd.rank(), 10 * step + part).float().to(device)
            net(x).square().mean().backward()
        opt.step()
        opt.zero_grad()
    for p in net.parameters():
        every = hvd.allgather(p.detach()[None])
        check("equal on all ranks", bool((every == every[:1]).all()))


def states():
    torch.manual_seed(hvd.rank())
    net = torch.nn.Linear(30, 20).to(device)
    opt = torch.optim.Adam(net.parameters(), lr=0.1 * (hvd.rank() + 1))
    net(torch.ones(2, 30, device=device)).sum().backward()
    opt.step()
    hvd.broadcast_parameters(net.state_dict(), 0)
    hvd.broadcast_optimizer_state(opt, 0)
    check("lr", opt.param_groups[0]["lr"] == 0.1)
    moments = [s["exp_avg"] for s in opt.state.values()]
    for t in [*net.parameters(), *moments]:
        every = hvd.allgather(t.detach()[None])
        check("broadcast state", bool((every == every[:1]).all()) and
              t.device == device)


def batch_norm():
    n = hvd.size()
    torch.manual_seed(1)
    x = torch.randn(4 * n, 3, 5, dtype=torch.float64).to(device)
    whole = torch.nn.BatchNorm1d(3).double().to(device)
    ours = hvd.SyncBatchNorm(3).double().to(device)
    wanted = whole(x).split(4)[hvd.rank()]
    check("SyncBatchNorm", torch.allclose(
        ours(x.split(4)[hvd.rank()]), wanted))
    check("SyncBatchNorm", torch.allclose(ours.running_var,
                                          whole.running_var))


def joined():
    for _ in range(hvd.rank() + 1):
        hvd.allreduce(torch.ones(100, device=device), name="uneven")
    hvd.join()
    check("join", True)


hvd.init()
index = hvd.local_rank() % torch.cuda.device_count()
torch.cuda.set_device(index)
device = torch.device("cuda", index)
start = time.monotonic()
for part in (reductions, host_bits, compressed, moves, empty, grouped, sparse,
             objects, process_sets, autograd, wrong, streams, optimizers,
             states, batch_norm, joined):
    began = time.monotonic()
    part()
    if hvd.rank() == 0:
        print(f"# {part.__name__}: {time.monotonic() - began:.1f} s",
              flush=True)
hvd.barrier()
took = time.monotonic() - start
stats = hvd.stats()
hvd.shutdown()
print(f"rank {os.environ.get('PMIX_RANK', 0)} on {torch.cuda.get_device_name()}"
      f": {sum(counts.values())} checks "
      f"({', '.join(f'{k} {v}' for k, v in sorted(counts.items()))}), "
      f"{stats['buckets']} buckets, {took:.1f} s: ok", flush=True)
