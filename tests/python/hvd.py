# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""hvd.py - what hvd.t has each rank do: each function whose name begins with
test_, in order; "ok NAME" or "not ok NAME" is printed for each."""

import gc
import json
import os
import tempfile
import warnings
import weakref

import torch

import checks
import slurm_dt.torch as hvd

RANK, SIZE = 0, 1
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTS = [torch.int8, torch.uint8, torch.int32, torch.int64]


def mine(n=5, dtype=torch.float32, rank=None):
    """A vector that differs between ranks, of small integers."""
    rank = RANK if rank is None else rank
    return (torch.arange(n) + 1 + 10 * rank).to(dtype)


def every(function):
    return [function(rank) for rank in range(SIZE)]


def same(got, wanted):
    assert got.dtype == wanted.dtype, f"{got.dtype}, not {wanted.dtype}"
    assert torch.equal(got, wanted), f"{got}, not {wanted}"


def fails(error, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except error as e:
        assert len(str(e).splitlines()) == 1, str(e)
        return str(e)
    raise AssertionError(f"no {error.__name__}")


def test_place():
    assert (hvd.rank(), hvd.size()) == (int(os.environ["PMIX_RANK"]), SIZE)
    assert (hvd.local_rank(), hvd.local_size()) == (RANK, SIZE)
    assert (hvd.cross_rank(), hvd.cross_size()) == (0, 1)
    assert hvd.is_homogeneous() and hvd.is_initialized()
    assert not hvd.mpi_built() and not hvd.nccl_built()


def test_allreduce_of_each_type():
    for dtype in FLOATS + INTS:
        all_of = torch.stack(every(lambda r: mine(dtype=dtype, rank=r)))
        exact = all_of.double() if dtype in FLOATS else all_of.long()
        for op, wanted in ((hvd.Sum, exact.sum(0)), (hvd.Min, exact.amin(0)),
                           (hvd.Max, exact.amax(0))):
            same(hvd.allreduce(mine(dtype=dtype), op=op), wanted.to(dtype))
        if dtype != torch.bfloat16:  # 13/2 has its exact value in the others
            wanted = exact.double().mean(0)
            got = hvd.allreduce(mine(dtype=dtype))
            if dtype in INTS:
                same(got, wanted.trunc().to(dtype))
            else:
                assert torch.allclose(got.double(), wanted, rtol=1e-3)
    small = torch.tensor([1 + RANK, 2])
    wanted = torch.tensor([[1, 2, 6][SIZE - 1], 2 ** SIZE])
    same(hvd.allreduce(small, op=hvd.Product), wanted)


def test_scale():
    same(hvd.allreduce(mine(), op=hvd.Sum, prescale_factor=0.5,
                       postscale_factor=4.0),
         sum(every(lambda r: mine(rank=r))) * 2)
    same(hvd.allreduce(torch.tensor([3, -3]), op=hvd.Sum, prescale_factor=0.5),
         torch.tensor([1, -1]) * SIZE)


def test_variants():
    total = sum(every(lambda r: mine(rank=r)))
    t = mine()
    assert hvd.allreduce_(t, op=hvd.Sum) is t
    same(t, total)
    t = mine()
    handle = hvd.allreduce_async_(t, op=hvd.Sum, name="a name")
    assert hvd.synchronize(handle) is t and hvd.poll(handle)
    assert hvd.synchronize(handle) is t
    pair = [mine(), mine(3, torch.int32)]
    got = hvd.grouped_allreduce(pair, op=hvd.Sum)
    same(got[0], total)
    same(got[1], sum(every(lambda r: mine(3, torch.int32, r))).int())
    got = hvd.synchronize(hvd.grouped_allreduce_async_(pair, op=hvd.Sum))
    assert got[0] is pair[0] and got[1] is pair[1]
    same(pair[0], total)
    same(hvd.allreduce(tensor=mine(), op=hvd.Sum), total)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        same(hvd.allreduce(mine(), average=False), total)
    assert "average" in str(seen[0].message)
    same(hvd.allreduce(mine(), op=hvd.Sum, compression=hvd.Compression.bf16),
         total)


def test_poll():
    handle = hvd.allreduce_async(mine(), name="polled") if RANK == 0 else None
    if RANK == 0:
        assert not hvd.poll(handle)
    hvd.barrier()
    handle = handle or hvd.allreduce_async(mine(), name="polled")
    while not hvd.poll(handle):
        pass
    hvd.synchronize(handle)


def test_gpu_without_driver():
    """A tensor with a stream of a GPU; where there is one, it is not there."""
    from slurm_dt.torch import ops
    found, ops.stream_of = ops.stream_of, lambda tensors: 1
    try:
        fails((NotImplementedError, ValueError), hvd.allreduce_, torch.ones(3))
    finally:
        ops.stream_of = found
    assert hvd.cuda_built()
    hvd.allreduce(torch.ones(3))


def test_allgather():
    for dtype in (torch.bool, torch.int16, torch.float64, torch.complex64):
        rows = every(lambda r: torch.full((r, 2), r + 1).to(dtype))
        same(hvd.allgather(rows[RANK]), torch.cat(rows))
    got = hvd.grouped_allgather([mine(2), mine(RANK + 1, torch.int64)])
    same(got[0], torch.cat(every(lambda r: mine(2, rank=r))))
    same(got[1], torch.cat(every(lambda r: mine(r + 1, torch.int64, r))))


def test_broadcast():
    for root in range(SIZE):
        t = mine()
        same(hvd.broadcast(t, root), mine(rank=root))
        same(t, mine())
        assert hvd.broadcast_(t, root_rank=root) is t
        same(t, mine(rank=root))
    same(hvd.broadcast(torch.tensor(RANK == 0), 0), torch.tensor(True))
    parameter = torch.nn.Parameter(mine())
    hvd.broadcast_(parameter, 0)
    same(parameter.data, mine(rank=0))


def test_alltoall():
    n = SIZE * (SIZE + 1) // 2
    splits = torch.arange(1, SIZE + 1, dtype=torch.int32)
    begin = RANK * (RANK + 1) // 2
    wanted = torch.cat(every(lambda r: mine(n, rank=r)[begin:begin + RANK + 1]))
    got, received = hvd.alltoall(mine(n), splits)
    same(got, wanted)
    same(received, torch.full((SIZE,), RANK + 1, dtype=torch.int32))
    got, received = hvd.alltoall(mine(n + 3), splits.tolist())
    assert torch.equal(got - got[0], wanted - wanted[0])
    same(hvd.alltoall(mine(SIZE)),
         torch.stack(every(lambda r: mine(SIZE, rank=r)[RANK])))


def test_reducescatter():
    n = 2 * SIZE + 1
    total = sum(every(lambda r: mine(n, rank=r)))
    begin = 2 * RANK + min(RANK, 1)
    wanted = total[begin:begin + 2 + (RANK == 0)]
    same(hvd.reducescatter(mine(n), op=hvd.Sum), wanted)
    got = hvd.grouped_reducescatter([mine(n), mine(n) * 2], op=hvd.Sum)
    same(got[1], wanted * 2)


def test_autograd():
    def gradient(function, n=SIZE):
        x = torch.ones(n, requires_grad=True)
        y = function(x)
        (y * (RANK + 1)).sum().backward()
        return x.grad

    ones, mean = torch.ones(SIZE), (SIZE + 1) / 2
    same(gradient(lambda x: hvd.allreduce(x)), ones * mean)
    same(gradient(lambda x: hvd.allreduce(x, op=hvd.Sum)), ones * mean * SIZE)
    same(gradient(lambda x: hvd.grouped_allreduce([x * 2, x])[1]), ones * mean)
    same(gradient(hvd.allgather), ones * mean)
    assert gradient(hvd.allgather, RANK + 1).tolist() == [mean] * (RANK + 1)
    same(gradient(lambda x: hvd.broadcast(x, 0)), ones * mean * (RANK == 0))
    same(gradient(hvd.alltoall), torch.arange(1.0, SIZE + 1))
    splits = [1] * (SIZE - 1) + [0]
    same(gradient(lambda x: hvd.alltoall(x, splits)[0]),
         torch.tensor([float(i + 1) * splits[i] for i in range(SIZE)]))
    same(gradient(lambda x: hvd.reducescatter(x, op=hvd.Sum)),
         torch.arange(1.0, SIZE + 1) * SIZE)


def test_local_errors_are_of_one_rank():
    if RANK == 0:
        t = mine()
        fails(ValueError, hvd.allreduce, t.bool())
        fails(ValueError, hvd.allreduce, "text")
        fails(ValueError, hvd.allreduce, torch.ones(2, 3).t())
        fails(ValueError, hvd.allreduce, torch.eye(2).to_sparse())
        fails(ValueError, hvd.allreduce, t, op=99)
        fails(ValueError, hvd.allreduce, t, average=True, op=hvd.Sum)
        fails(ValueError, hvd.grouped_allreduce, [])
        fails(ValueError, hvd.allgather, torch.tensor(1))
        fails(ValueError, hvd.reducescatter, torch.tensor(1))
        fails(RuntimeError, hvd.reducescatter, t, op=hvd.Adasum)
        fails(ValueError, hvd.broadcast, t, SIZE)
        fails(ValueError, hvd.alltoall, t, [9] * SIZE)
        fails(ValueError, hvd.alltoall, t, [1])
        fails(ValueError, hvd.alltoall, torch.ones(SIZE + 1))
        fails(ValueError, hvd.alltoall, t, torch.ones(SIZE))
        fails(ValueError, hvd.allreduce, t, process_set=hvd.ProcessSet([0]))
        hvd.allreduce_async(t, name="twice")
        text = fails(ValueError, hvd.allreduce_async, t, name="twice")
        assert "twice" in text
        gc.collect()  # the first one still has its tensors
    hvd.barrier()
    if RANK != 0:
        hvd.allreduce(mine(), name="twice")
    same(hvd.allreduce(mine(1)), sum(every(lambda r: mine(1, rank=r))) / SIZE)


def test_a_name_is_free_after_a_wait():
    """Whether the operation is complete before that does not matter."""
    for keep in (True, False):
        handle = hvd.allreduce_async(mine(), name="again")
        done = hvd.allreduce_async(mine(), name="done after it")
        while not (hvd.poll(handle) and hvd.poll(done)):
            pass
        handle = handle if keep else None
        fails(ValueError, hvd.allreduce_async, mine(), name="again")
        hvd.synchronize(handle or done)
        hvd.synchronize(done)
    hvd.allreduce(mine(), name="again")


def test_errors_of_all_ranks():
    t = mine(dtype=torch.float32 if RANK == 0 else torch.float64)
    fails(hvd.HorovodInternalError, hvd.allreduce, t)
    fails(hvd.HorovodInternalError, hvd.allreduce, mine(5 + RANK))
    fails(hvd.HorovodInternalError, hvd.allreduce, mine(),
          op=hvd.Sum if RANK == 0 else hvd.Max)
    fails(hvd.HorovodInternalError, hvd.broadcast, mine(), RANK)
    fails(hvd.HorovodInternalError, hvd.allgather, torch.ones(2, RANK + 1))
    assert issubclass(hvd.HorovodInternalError, RuntimeError)
    same(hvd.allreduce(mine(1)), sum(every(lambda r: mine(1, rank=r))) / SIZE)


def test_process_sets():
    first = hvd.add_process_set([0])
    rest = hvd.add_process_set(hvd.ProcessSet(range(SIZE - 1, 0, -1)))
    assert rest.ranks == list(range(1, SIZE)) and rest.size() == SIZE - 1
    ours, other = (first, rest) if RANK == 0 else (rest, first)
    assert ours.included() and not other.included()
    assert ours.rank() == ours.ranks.index(RANK)
    fails(ValueError, other.rank)
    fails(ValueError, hvd.add_process_set, [0])
    fails(ValueError, hvd.allreduce, mine(), process_set=other)
    same(hvd.allreduce(mine(), op=hvd.Sum, process_set=ours),
         sum(mine(rank=r) for r in ours.ranks))
    root = ours.ranks[-1]
    same(hvd.broadcast(mine(), root, process_set=ours), mine(rank=root))
    fails(ValueError, hvd.broadcast, mine(), other.ranks[0], process_set=ours)
    assert hvd.allgather_object(RANK, process_set=ours) == ours.ranks
    hvd.barrier(ours)
    assert hvd.remove_process_set(rest) and hvd.remove_process_set(first)
    assert not hvd.remove_process_set(first)
    assert not hvd.remove_process_set(hvd.global_process_set)
    assert first.size() is None
    assert hvd.global_process_set.ranks == list(range(SIZE))


def test_join():
    if RANK != SIZE - 1:
        same(hvd.allreduce(mine(rank=0), op=hvd.Sum, name="before the join"),
             mine(rank=0) * (SIZE - 1))
    last = hvd.join()
    assert last != SIZE - 1, last
    assert hvd.allgather_object(last) == [last] * SIZE


def test_objects():
    thing = {"rank": RANK, "text": "x" * (RANK * 1000)}
    assert hvd.broadcast_object(thing, 1) == {"rank": 1, "text": "x" * 1000}
    assert hvd.broadcast_object(None if RANK else [1]) == [1]
    assert [t["rank"] for t in hvd.allgather_object(thing)] == list(range(SIZE))


def model_of(rank, kind=torch.nn.ReLU):
    torch.manual_seed(rank)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), kind(),
                               torch.nn.Linear(8, 3))


def batch_of(rank, step):
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(4, 6, generator=generator, dtype=torch.float64)


def train(steps, step_of, model, optimizer):
    for i in range(steps):
        optimizer.zero_grad()
        step_of(model, i)
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def reference(steps, factor=1.0, passes=1):
    """What one process computes with the batches of all ranks."""
    model = model_of(0).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step_of(model, i):
        for j in range(passes):
            for r in range(SIZE):
                (factor * model(batch_of(r, passes * i + j)).square().sum()
                 ).backward()
    return train(steps, step_of, model, optimizer)


def distributed(steps, passes=1, change=None, **options):
    model = model_of(RANK).double()
    hvd.broadcast_parameters(model.state_dict(), 0)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        model.named_parameters(), backward_passes_per_step=passes, **options)

    def step_of(model, i):
        for j in range(passes):
            model(batch_of(RANK, passes * i + j)).square().sum().backward()
        if change:
            change(model)
    return train(steps, step_of, model, optimizer), optimizer


def near(got, wanted, tolerance=1e-10):
    assert torch.allclose(got, wanted, rtol=tolerance, atol=tolerance), \
        f"off by {(got - wanted).abs().max()}"
    everywhere = hvd.allgather(got[None])
    assert all(torch.equal(row, got) for row in everywhere)


def test_optimizer():
    weights = distributed(5)[0]
    near(weights, reference(5, 1 / SIZE))
    same(distributed(5)[0], weights)  # the same bits
    near(distributed(5, op=hvd.Sum)[0], reference(5))
    near(distributed(5, passes=2)[0], reference(5, 1 / SIZE, 2))
    near(distributed(5, gradient_predivide_factor=2.0)[0],
         reference(5, 1 / SIZE))
    near(distributed(5, groups=2)[0], reference(5, 1 / SIZE))


def test_optimizer_with_hooks_of_later_versions():
    """As PyTorch 2.1 and later call: with the parameter alone."""
    def register(p, hook):
        node = p.expand_as(p).grad_fn.next_functions[0][0]
        handle = node.register_hook(lambda *unused: hook(p))
        handle.node = node
        return handle
    name = "register_post_accumulate_grad_hook"
    if not hasattr(torch.Tensor, name):
        setattr(torch.Tensor, name, register)
        try:
            near(distributed(3)[0], reference(3, 1 / SIZE))
        finally:
            delattr(torch.Tensor, name)


def test_optimizer_needs_no_negotiation():
    model = model_of(0)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())

    def step():
        model(batch_of(RANK, 0).float()).sum().backward()
        optimizer.step()
    for _ in range(3):
        step()
    hvd.barrier()
    before = hvd.stats()
    for _ in range(10):
        step()
    after = hvd.stats()
    assert after["steps"] - before["steps"] == 10
    assert after["gradients"] - before["gradients"] == 40
    assert after["buckets"] > before["buckets"]
    assert after["breaks"] == before["breaks"]
    assert after["rounds"] - before["rounds"] <= 1, (before, after)


def packed(text):
    """The rows of a timeline, in the order in which they were packed."""
    events = json.loads(text)
    rows = {e["tid"]: e["args"]["name"] for e in events
            if e["name"] == "thread_name"}
    return [rows[e["tid"]] for e in events if e["name"] == "pack"]


def sent_order(uses, passes=1):
    """Matrices of 256 KiB, one of which fills the first bucket, as the second
    step sends them, when forward uses them in this order."""
    matrices = {name: torch.nn.Parameter(torch.ones(256, 256))
                for name in ("one", "unused", "two", "three")}
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(matrices.values(), lr=0.1), matrices.items(),
        backward_passes_per_step=passes)

    def step():
        optimizer.zero_grad()
        for _ in range(passes):
            loss = torch.zeros(())
            for name in uses:
                loss = loss + matrices[name].sum()
            loss.backward()
        optimizer.step()
        for name, p in matrices.items():
            same(p.grad, torch.full_like(p, passes * (name in uses)).detach())
    step()
    order = None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "timeline")
        hvd.start_timeline(path)
        step()
        hvd.stop_timeline()
        if RANK == 0:
            with open(path) as file:
                order = [row for row in packed(file.read()) if row in matrices]
    return hvd.broadcast_object(order, 0)  # so that all ranks judge it


def test_optimizer_sends_in_the_order_of_backward():
    """What is there first is sent first, while backward goes on."""
    for passes in (1, 2):
        order = sent_order(["one", "two", "three"], passes)
        assert order == ["three", "two", "one", "unused"], order
    orders = (["one", "three", "two"], ["two", "one", "three"],
              ["three", "two", "one"])  # that of the first rank counts
    order = sent_order(orders[RANK])
    assert order == ["two", "three", "one", "unused"], order


def test_optimizer_leaves_nothing():
    """Many optimizers, one after the other, have the memory of two."""
    def memory(n):
        for _ in range(n):
            model = torch.nn.Linear(50, 50)
            optimizer = hvd.DistributedOptimizer(
                torch.optim.SGD(model.parameters(), lr=0.1))
            for _ in range(2):
                model(torch.ones(1, 50)).sum().backward()
                optimizer.step()
            del model, optimizer
            gc.collect()
        return hvd.stats()["held_bytes"]
    first = memory(2)
    assert 0 < memory(5) <= first, "plans of old optimizers are kept"


def test_optimizer_compression():
    for kind in (hvd.Compression.fp16, hvd.Compression.bf16,
                 hvd.Compression.int8):
        near(distributed(2, compression=kind)[0], reference(2, 1 / SIZE), 0.1)

    class Twice(hvd.Compression.none):
        @staticmethod
        def compress(tensor):
            return tensor.float(), tensor.dtype

        @staticmethod
        def decompress(tensor, ctx):
            return tensor.to(ctx)
    near(distributed(3, compression=Twice)[0], reference(3, 1 / SIZE), 1e-4)


def test_optimizer_eight_bits():
    """8 bits are fewer than 16."""
    def sent(kind):
        model = torch.nn.Linear(256, 64)
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.1), compression=kind)
        for step in range(4):
            if step == 2:  # the plan stands
                before = hvd.stats()["wire_bytes"]
            model(torch.ones(1, 256)).sum().backward()
            optimizer.step()
        return hvd.stats()["wire_bytes"] - before
    if SIZE > 1:
        assert 0 < sent(hvd.Compression.int8) < sent(hvd.Compression.fp16)


def test_optimizer_residuals():
    """With what rounding took away, an interrupted training has the bits of
    an undisturbed one."""
    def make(model):
        return hvd.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.1),
            model.named_parameters(), compression=hvd.Compression.int8)

    def step_of(first):
        def step(model, i):
            model(batch_of(RANK, first + i)).square().sum().backward()
        return step
    model = model_of(0).double()
    undisturbed = train(6, step_of(0), model, make(model))
    model = model_of(0).double()
    optimizer = make(model)
    assert optimizer.residuals() == {}
    train(3, step_of(0), model, optimizer)
    kept = optimizer.residuals()
    names = [name for name, _ in model.named_parameters()]
    if SIZE > 1:
        assert sorted(kept) == sorted(names)
        assert any(r.abs().max() > 0 for r in kept.values())
    again = model_of(1).double()
    again.load_state_dict(model.state_dict())
    other = make(again)
    other.load_residuals(kept)
    assert all(torch.equal(r, kept[n]) for n, r in other.residuals().items())
    assert torch.equal(train(3, step_of(3), again, other), undisturbed)
    if SIZE > 1:
        fails(ValueError, other.load_residuals, {names[0]: torch.ones(1)})
        fails(ValueError, other.load_residuals, {"none": torch.ones(1)})


def test_optimizer_layouts():
    """Gradients whose memory has another order on one rank."""
    def values(p, factor):
        return torch.arange(p.numel()).view(p.shape).to(p) * factor
    model = model_of(0).double()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
    for _ in range(2):
        for p in model.parameters():
            p.grad = values(p, RANK)
            if RANK == 0 and p.dim() == 2:
                p.grad = values(p, RANK).t().contiguous().t()
        grads = [p.grad for p in model.parameters()]
        optimizer.synchronize()
        for p, grad in zip(model.parameters(), grads):
            assert p.grad is grad
            same(grad.contiguous(), values(p, (SIZE - 1) / 2))


def test_optimizer_lets_go_of_gradients():
    model = model_of(0)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
    for _ in range(3):
        model(batch_of(RANK, 0).float()).sum().backward()
        seen = [weakref.ref(p.grad) for p in model.parameters()]
        optimizer.step()
        for p in model.parameters():
            p.grad = None
        assert not any(ref() is not None for ref in seen)


def test_optimizer_missing_gradients():
    model = torch.nn.ModuleList([torch.nn.Linear(2, 2, bias=False)
                                 for _ in range(SIZE + 1)])
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=1.0), model.named_parameters())
    for _ in range(3):
        optimizer.zero_grad()
        model[RANK](torch.ones(1, 2)).sum().backward()
        optimizer.synchronize()
        for i in range(SIZE):
            same(model[i].weight.grad, torch.ones(2, 2) / SIZE)
        same(model[SIZE].weight.grad, torch.zeros(2, 2))
        with optimizer.skip_synchronize():
            optimizer.step()


def test_optimizer_sparse():
    weights = []
    for as_dense in (False, True):
        torch.manual_seed(1)
        model = torch.nn.Embedding(10, 3, sparse=True)
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=1.0),
            sparse_as_dense=as_dense)
        start = model.weight.detach().clone()
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.tensor([RANK, RANK, 5])).sum().backward()
            optimizer.step()
        weights.append(start - model.weight.detach())
    wanted = torch.zeros(10, 3)
    wanted[:SIZE] = 4 / SIZE
    wanted[5] = 2
    assert all(torch.allclose(w, wanted, atol=1e-5) for w in weights), weights


def test_optimizer_is_strict():
    model = model_of(0)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    names = list(model.named_parameters())
    fails(ValueError, hvd.DistributedOptimizer, sgd, names[:2])
    fails(ValueError, hvd.DistributedOptimizer, sgd,
          [("same", p) for _, p in names])
    fails(ValueError, hvd.DistributedOptimizer, sgd, [p for _, p in names])
    fails(ValueError, hvd.DistributedOptimizer, sgd, names,
          backward_passes_per_step=0)
    fails(ValueError, hvd.DistributedOptimizer, sgd, names, op=hvd.Sum,
          gradient_predivide_factor=2.0)
    fails(ValueError, hvd.DistributedOptimizer, sgd, names,
          groups=[[names[0][1]], [names[0][1]]])
    optimizer = hvd.DistributedOptimizer(sgd, names)
    assert isinstance(optimizer, torch.optim.SGD)
    x = batch_of(RANK, 0).float()
    model(x).sum().backward()
    fails(AssertionError, optimizer.zero_grad)
    fails(AssertionError, model(x).sum().backward)
    optimizer.synchronize()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        optimizer.step()
    assert "skip_synchronize" in str(seen[0].message)
    optimizer.zero_grad()
    del optimizer, sgd  # another one for the same model
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), names)
    model(x).sum().backward()
    optimizer.step()


def test_optimizer_of_a_process_set():
    rest = hvd.add_process_set(range(1, SIZE))
    weights, optimizer = distributed(2, process_set=rest)
    rows = hvd.allgather(weights[None])
    assert torch.equal(rows[1], rows[-1]) and not torch.equal(rows[0], rows[1])
    assert hvd.remove_process_set(rest)
    if RANK != 0:
        fails(ValueError, optimizer.synchronize)


def test_optimizer_adasum():
    if SIZE & (SIZE - 1):
        return
    weights, _ = distributed(3, op=hvd.Adasum)
    near(weights, weights)


def test_optimizer_state():
    model = model_of(RANK)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1 * (RANK + 1))
    if RANK == 0:
        model(batch_of(0, 0).float()).sum().backward()
        optimizer.step()
    hvd.broadcast_parameters(list(model.named_parameters()), 0)
    hvd.broadcast_optimizer_state(optimizer, 0)
    assert optimizer.param_groups[0]["lr"] == 0.1
    for p in model.parameters():
        moment = hvd.allgather(optimizer.state[p]["exp_avg"].flatten()[None])
        assert moment.abs().sum() > 0 and torch.equal(moment[0], moment[-1])
    fails(ValueError, hvd.broadcast_parameters, "text", 0)
    fails(ValueError, hvd.broadcast_optimizer_state,
          torch.optim.LBFGS(model.parameters()), 0)


def test_sync_batch_norm():
    torch.manual_seed(7)
    whole = torch.randn(5 * SIZE, 3, 4, dtype=torch.float64) + 10
    part = whole[5 * RANK:5 * RANK + 5].clone().requires_grad_()
    whole.requires_grad_()
    factors = torch.arange(5.0 * SIZE).view(-1, 1, 1).double()
    ours = hvd.SyncBatchNorm(3).double()
    theirs = torch.nn.BatchNorm1d(3).double()
    got, wanted = ours(part), theirs(whole)
    assert torch.allclose(got, wanted[5 * RANK:5 * RANK + 5])
    assert torch.allclose(ours.running_mean, theirs.running_mean)
    assert torch.allclose(ours.running_var, theirs.running_var)
    (got * factors[5 * RANK:5 * RANK + 5]).sum().backward()
    (wanted * factors).sum().backward()
    assert torch.allclose(part.grad, whole.grad[5 * RANK:5 * RANK + 5])
    assert torch.allclose(hvd.allreduce(ours.weight.grad, op=hvd.Sum),
                          theirs.weight.grad)
    ours.eval()
    assert torch.allclose(ours(part), theirs.eval()(part))
    fails(ValueError, ours, torch.ones(3))


def test_elastic():
    model = model_of(RANK)
    sampler = hvd.elastic.ElasticSampler(range(4 * SIZE), shuffle=False)
    state = hvd.elastic.TorchState(
        model, torch.optim.SGD(model.parameters(), lr=0.1), sampler=sampler,
        epoch=RANK)
    calls = []
    state.register_reset_callbacks([lambda: calls.append("reset")])

    @hvd.elastic.run
    def work(state):
        calls.append(state.epoch)
        if len(calls) == 1:
            state.epoch = 7
            state.commit()
            state.epoch = 8
            fails(hvd.HorovodInternalError, hvd.allreduce, mine(5 + RANK))
            raise hvd.HorovodInternalError("as if it were not caught")
        return list(sampler)

    assert work(state) == [RANK + SIZE * i for i in range(4)]
    assert calls == [0, "reset", 7], calls
    weights = hvd.allgather(model[0].weight.detach()[None])
    assert torch.equal(weights[0], weights[-1])

    @hvd.elastic.run
    def fail(state):
        raise hvd.HorovodInternalError("again and again")
    fails(hvd.HorovodInternalError, fail, state)


def test_shutdown_and_init():
    weights, optimizer = distributed(1)
    handle = hvd.allreduce_async(mine(), name="alone") if RANK == 0 else None
    hvd.shutdown()
    assert not hvd.is_initialized()
    fails(ValueError, hvd.rank)
    fails(ValueError, hvd.allreduce, mine())
    if handle:
        fails(hvd.HorovodInternalError, hvd.synchronize, handle)
    fails(ValueError, optimizer.synchronize)
    hvd.init()
    hvd.init()
    for p in optimizer.param_groups[0]["params"]:
        p.grad = torch.full_like(p, float(RANK))
    optimizer.synchronize()
    for p in optimizer.param_groups[0]["params"]:
        same(p.grad, torch.full_like(p, (SIZE - 1) / 2).detach())


def test_optimizer_of_a_set_that_has_changed():
    mine = hvd.add_process_set([0])
    p = torch.nn.Parameter(torch.ones(2))
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD([p], lr=0.1), [("p", p)], process_set=mine)
    hvd.shutdown()
    hvd.init()
    other = hvd.add_process_set([1])
    hvd.add_process_set(mine)
    p.grad = torch.ones(2)
    if RANK == 0:
        fails(ValueError, optimizer.step)
    else:
        optimizer.step()
    for process_set in (mine, other):
        hvd.remove_process_set(process_set)


def test_timeline():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "timeline")
        hvd.start_timeline(path, mark_cycles=True)
        hvd.allreduce(mine(), name="in the timeline")
        hvd.stop_timeline()
        assert os.path.exists(path) == (RANK == 0)
        if RANK == 0:
            with open(path) as file:
                text = file.read()
            assert "in the timeline" in text and json.loads(text)
            fails(OSError, hvd.start_timeline, folder)


def main():
    global RANK, SIZE
    hvd.init()
    RANK, SIZE = hvd.rank(), hvd.size()
    checks.run(globals())


main()
