# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""torch_backend.py - what torch_backend.t has each rank do with the backend
"dt": each function whose name begins with test_, in order; "ok NAME" or
"not ok NAME" is printed for each."""

import faulthandler
import os
import tempfile
import threading
import time
import warnings
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed.checkpoint as dcp
import torch.distributed.nn.functional as dnn
from torch.distributed.algorithms.ddp_comm_hooks import (
    default_hooks, powerSGD_hook)
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.nn.parallel import DistributedDataParallel

import checks
import slurm_dt.torch_backend  # noqa: F401

RANK, SIZE = 0, 1
GLOO = None
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTS = [torch.int8, torch.uint8, torch.int32, torch.int64]
MOVED = [*FLOATS, *INTS, torch.bool, torch.int16, torch.complex64,
         torch.float8_e4m3fn]


def mine(n=5, dtype=torch.float32, rank=None):
    """A vector that differs between ranks, of small integers."""
    rank = RANK if rank is None else rank
    return (torch.arange(n) + 1 + 10 * rank).to(dtype)


def every(function):
    return [function(rank) for rank in range(SIZE)]


def same(got, wanted):
    assert got.dtype == wanted.dtype, f"{got.dtype}, not {wanted.dtype}"
    assert got.shape == wanted.shape, f"{got.shape}, not {wanted.shape}"
    if got.dtype is torch.float8_e4m3fn:
        got, wanted = got.float(), wanted.float()
    assert torch.equal(got, wanted), f"{got}, not {wanted}"


def all_same(got, wanted):
    assert len(got) == len(wanted), f"{len(got)}, not {len(wanted)}"
    for g, w in zip(got, wanted):
        same(g, w)


def near(got, wanted):
    """Bitwise, where the order of a sum cannot matter."""
    assert torch.equal(got, wanted) if SIZE == 2 else torch.allclose(
        got, wanted, rtol=1e-5, atol=1e-6), f"{got}, not {wanted}"


def fails(error, words, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except error as e:
        first = str(e).splitlines()[0]
        assert words in first, f"{first!r} has not {words!r}"
        return
    raise AssertionError(f"no {error.__name__}")


def test_place():
    assert dist.get_backend() == "dt"
    assert (dist.get_rank(), dist.get_world_size()) == (RANK, SIZE)
    assert RANK == int(os.environ["PMIX_RANK"])


def test_all_reduce_of_each_type():
    for dtype in FLOATS + INTS:
        of_all = torch.stack(every(lambda r: mine(3, dtype, r))).double()
        for op, wanted in ((dist.ReduceOp.SUM, of_all.sum(0)),
                           (dist.ReduceOp.MIN, of_all.amin(0)),
                           (dist.ReduceOp.MAX, of_all.amax(0)),
                           (dist.ReduceOp.AVG, of_all.mean(0))):
            got = mine(3, dtype)
            dist.all_reduce(got, op=op)
            wanted = wanted.trunc() if dtype in INTS else wanted
            same(got, wanted.to(dtype))
        got = torch.full((2,), 2, dtype=dtype)
        dist.all_reduce(got, op=dist.ReduceOp.PRODUCT)
        same(got, torch.full((2,), 2 ** SIZE, dtype=dtype))


def test_all_reduce_of_bool_and_complex():
    some = torch.tensor([RANK == 0, True, False])
    for op, wanted in ((dist.ReduceOp.MAX, [True, True, False]),
                       (dist.ReduceOp.SUM, [True, True, False]),
                       (dist.ReduceOp.MIN, [False, True, False]),
                       (dist.ReduceOp.BAND, [False, True, False])):
        got = some.clone()
        dist.all_reduce(got, op=op)
        same(got, torch.tensor(wanted))
    got = torch.tensor([1 + 2j])
    dist.all_reduce(got)
    same(got, torch.tensor([SIZE + 2j * SIZE]))


def test_reduce():
    for root in range(SIZE):
        got = mine()
        dist.reduce(got, root)
        if RANK == root:
            same(got, sum(every(lambda r: mine(rank=r))))


def test_moving_each_type():
    for dtype in MOVED:
        of_all = every(lambda r: mine(3, dtype, r))
        got = mine(3, dtype)
        dist.broadcast(got, SIZE - 1)
        same(got, of_all[-1])
        got = [torch.empty_like(got) for _ in of_all]
        dist.all_gather(got, mine(3, dtype))
        all_same(got, of_all)
        got = torch.zeros(3 * SIZE, dtype=dtype)
        dist.all_gather_into_tensor(got, mine(3, dtype))
        same(got, torch.cat(of_all))
        got = [torch.zeros(3, dtype=dtype) for _ in of_all] if RANK == 0 else []
        dist.gather(mine(3, dtype), got or None, 0)
        all_same(got, of_all if RANK == 0 else [])
        got = torch.zeros(3, dtype=dtype)
        dist.scatter(got, of_all if RANK == 1 else None, 1)
        same(got, of_all[RANK])


def test_all_gather_of_other_sizes():
    of_all = every(lambda r: mine(r + 1, rank=r))
    got = [torch.empty_like(t) for t in of_all]
    dist.all_gather(got, of_all[RANK])
    all_same(got, of_all)


def test_reduce_scatter():
    parts = every(lambda r: torch.full((2, 3), float(r + 10 * RANK)))
    wanted = torch.full((2, 3), sum(RANK + 10.0 * r for r in range(SIZE)))
    got = torch.empty(2, 3)
    dist.reduce_scatter(got, parts)
    same(got, wanted)
    dist.reduce_scatter_tensor(got.zero_(), torch.cat(parts))
    same(got, wanted)
    dist.reduce_scatter_tensor(got.zero_(), torch.cat(parts),
                               op=dist.ReduceOp.AVG)
    assert torch.allclose(got, wanted / SIZE)
    uneven = every(lambda r: torch.full((r,), 1.0 + RANK))
    got = torch.empty(RANK)
    dist.reduce_scatter(got, uneven)
    same(got, torch.full((RANK,), SIZE * (SIZE + 1) / 2))


def test_all_to_all():
    # from a to b go a + 2 b + 1 rows
    def rows(a, b):
        return torch.full((a + 2 * b + 1, 2), float(10 * a + b))

    send, wanted = every(lambda b: rows(RANK, b)), every(
        lambda a: rows(a, RANK))
    got = [torch.empty_like(t) for t in wanted]
    dist.all_to_all(got, send)
    all_same(got, wanted)
    got = torch.empty_like(torch.cat(wanted))
    dist.all_to_all_single(got, torch.cat(send), [len(t) for t in wanted],
                           [len(t) for t in send])
    same(got, torch.cat(wanted))
    got = torch.empty(2 * SIZE, dtype=torch.int16)
    dist.all_to_all_single(got, torch.full((2 * SIZE,), RANK,
                                           dtype=torch.int16))
    same(got, torch.arange(SIZE, dtype=torch.int16).repeat_interleave(2))


def test_empty_tensors():
    dist.all_reduce(torch.empty(0))
    dist.all_gather_into_tensor(torch.empty(0), torch.empty(0))
    dist.all_to_all_single(torch.empty(0, 3), torch.empty(0, 3))


def test_objects():
    got = [None] * SIZE
    dist.all_gather_object(got, {"rank": RANK, "text": "x" * RANK})
    assert [g["rank"] for g in got] == list(range(SIZE))
    got = [RANK, "of " + str(RANK)]
    dist.broadcast_object_list(got, 1)
    assert got == [1, "of 1"]
    got = [None]
    dist.scatter_object_list(got, every(lambda r: "to %d" % r), 0)
    assert got == ["to %d" % RANK]
    got = [None] * SIZE if RANK == 0 else None
    dist.gather_object(RANK, got, 0)
    assert RANK or got == list(range(SIZE))


def test_messages():
    to, source = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    got = torch.empty(3)
    works = [dist.isend(mine(3), to), dist.irecv(got, source)]
    for work in works:
        work.wait()
    same(got, mine(3, rank=source))
    got.zero_()
    for work in dist.batch_isend_irecv(
            [dist.P2POp(dist.irecv, got, source),
             dist.P2POp(dist.isend, mine(3), to)]):
        work.wait()
    same(got, mine(3, rank=source))
    if RANK == 0:
        dist.send(mine(2), 1)
        dist.send_object_list(["a", 1], 1)
    elif RANK == 1:
        got = torch.empty(2)
        dist.recv(got, 0)
        same(got, mine(2, rank=0))
        got = [None, None]
        dist.recv_object_list(got, 0)
        assert got == ["a", 1]


def test_works():
    # many at a time, waited for in another order; what is dropped completes
    many = [torch.full((1000,), float(i)) for i in range(20)]
    works = [dist.all_reduce(t, async_op=True) for t in many]
    dist.all_reduce(torch.ones(10), async_op=True)
    for work, tensor in reversed(list(zip(works, many))):
        work.wait()
        work.wait()
        same(tensor, torch.full((1000,), tensor[0].item()))
    assert [t[0].item() for t in many] == [float(i * SIZE) for i in range(20)]
    # nobody waits: a future is set all the same
    over = threading.Event()
    tensor = torch.ones(4)
    dist.all_reduce(tensor, async_op=True).get_future().add_done_callback(
        lambda future: over.set())
    assert over.wait(60)
    same(tensor, torch.full((4,), float(SIZE)))


def test_future_that_communicates():
    def again(future):
        tensor = future.value()[0]
        return dist.all_reduce(tensor, async_op=True).get_future().wait()[0]

    futures = [dist.all_reduce(torch.full((3,), i + 1.0), async_op=True)
               .get_future().then(again) for i in range(20)]
    for i, future in enumerate(futures):
        same(future.wait(), torch.full((3,), (i + 1.0) * SIZE ** 2))


def test_coalesced():
    one, two = mine(3), mine(4)
    with dist._coalescing_manager():
        dist.all_reduce(one)
        dist.all_reduce(two)
    same(one, sum(every(lambda r: mine(3, rank=r))))
    same(two, sum(every(lambda r: mine(4, rank=r))))
    got = [torch.empty(3 * SIZE), torch.empty(2 * SIZE)]
    with dist._coalescing_manager(async_ops=True) as manager:
        dist.all_gather_into_tensor(got[0], mine(3))
        dist.all_gather_into_tensor(got[1], mine(2))
    manager.wait()
    same(got[1], torch.cat(every(lambda r: mine(2, rank=r))))
    part = torch.empty(2)
    with dist._coalescing_manager():
        dist.reduce_scatter_tensor(part, torch.ones(2 * SIZE))
    same(part, torch.full((2,), float(SIZE)))


def test_groups_of_members_only():
    for ranks in ([SIZE - 1], [1, 0], list(range(SIZE))):
        group = dist.new_group(ranks)
        if RANK not in ranks:
            continue
        assert dist.get_world_size(group) == len(ranks)
        got = mine(2)
        dist.all_reduce(got, group=group)
        same(got, sum(mine(2, rank=r) for r in ranks))
        dist.broadcast(got.fill_(RANK), ranks[-1], group=group)
        same(got, torch.full((2,), float(ranks[-1])))
        dist.destroy_process_group(group)


def test_groups_made_by_members_alone():
    if RANK < 2:
        group = dist.new_group([0, 1], use_local_synchronization=True)
        got = torch.ones(1)
        dist.all_reduce(got, group=group)
        same(got, torch.full((1,), 2.0))
        dist.destroy_process_group(group)


def test_functional_collectives():
    group = dist.group.WORLD
    got = functional.all_reduce(mine(3), "sum", group)
    same(got + 0, sum(every(lambda r: mine(3, rank=r))))
    got = functional.all_gather_tensor(mine(3), 0, group)
    same(got + 0, torch.cat(every(lambda r: mine(3, rank=r))))
    got = functional.reduce_scatter_tensor(torch.ones(2 * SIZE), "sum", 0,
                                           group)
    same(got + 0, torch.full((2,), float(SIZE)))
    x = torch.ones(2, requires_grad=True)
    dnn.all_reduce(x * (RANK + 1)).sum().backward()
    same(x.grad, torch.full((2,), (RANK + 1.0) * SIZE))


def test_barrier():
    dist.barrier()
    if RANK == 0:
        time.sleep(0.2)
    dist.barrier()


def test_bad_input():
    matrix = torch.ones(4, 4)
    fails(ValueError, "contiguous", dist.all_reduce, matrix[:, :2])
    fails(ValueError, "contiguous", dist.broadcast, matrix.t(), 0)
    fails(ValueError, "int16", dist.all_reduce,
          torch.ones(1, dtype=torch.int16))
    fails(ValueError, "BXOR", dist.all_reduce, torch.ones(1),
          op=dist.ReduceOp.BXOR)
    fails(ValueError, "elements", dist.all_gather_into_tensor,
          torch.empty(3 * SIZE + 1), torch.empty(3))
    fails(ValueError, "splits", dist.all_to_all_single, torch.empty(SIZE),
          torch.empty(SIZE), [1] * SIZE, [2] * SIZE)
    fails(ValueError, "tag 7", dist.send, torch.ones(1), (RANK + 1) % SIZE,
          tag=7)
    fails(ValueError, "name the rank", dist.recv, torch.ones(1))
    fails(ValueError, "sparse", dist.all_reduce, torch.ones(2).to_sparse())
    dist.barrier()  # nobody else has noticed


def test_fork():
    pid = os.fork()
    if pid == 0:
        try:
            dist.all_reduce(torch.ones(1))
        except RuntimeError as error:
            os._exit(3 if "forked" in str(error) else 4)
        os._exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    dist.barrier()


def test_timeout():
    group = dist.new_group(timeout=timedelta(seconds=0.3))
    tensor = torch.ones(3)
    if RANK == 0:
        work = dist.all_reduce(tensor, group=group, async_op=True)
        fails(dist.DistBackendError, "all_reduce was not over after 0.3 s",
              work.wait)
        dist.barrier()
        work.wait(timedelta(seconds=60))
    else:
        dist.barrier()
        dist.all_reduce(tensor, group=group, async_op=True).wait(
            timedelta(seconds=60))
    same(tensor, torch.full((3,), float(SIZE)))


# ---- training: what dt computes is what gloo computes ----

def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(),
                               torch.nn.Linear(16, 4))


def train(wrapped, steps=5):
    """Its losses."""
    optimizer = torch.optim.Adam(wrapped.parameters(), lr=0.01)
    losses = []
    for step in range(steps):
        generator = torch.Generator().manual_seed(100 * step + RANK)
        loss = wrapped(torch.rand(8, 6, generator=generator)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def ddp(group, hook=None, state=None, bucket_mb=0.0003):
    wrapped = DistributedDataParallel(model(), process_group=group,
                                      bucket_cap_mb=bucket_mb)
    if hook:
        wrapped.register_comm_hook(state(group) if state else group, hook)
    return train(wrapped)


def test_ddp():
    near(ddp(None), ddp(GLOO))


def test_ddp_twice_has_the_same_bits():
    same(ddp(None), ddp(None))


def test_ddp_with_hooks():
    for hook in (default_hooks.fp16_compress_hook,
                 default_hooks.bf16_compress_hook):
        assert torch.allclose(ddp(dist.group.WORLD, hook), ddp(GLOO, hook),
                              rtol=1e-2)


def test_ddp_with_powersgd():
    def state(group):
        return powerSGD_hook.PowerSGDState(
            group, matrix_approximation_rank=1, start_powerSGD_iter=2,
            min_compression_rate=1)

    def run(group, bucket_mb):
        return ddp(group, powerSGD_hook.powerSGD_hook, state, bucket_mb)

    # with several buckets Gloo's two threads wait for each other
    assert torch.allclose(run(dist.group.WORLD, 25), run(GLOO, 25), rtol=1e-4)
    same(run(dist.group.WORLD, 0.0003), run(dist.group.WORLD, 0.0003))


def test_fsdp1():
    def wrapped(group):
        return FullyShardedDataParallel(model(), process_group=group,
                                        device_id=torch.device("cpu"))

    near(train(wrapped(dist.group.WORLD)), train(wrapped(GLOO)))


def sharded(group):
    mesh = dist.DeviceMesh.from_group(group, "cpu")
    wrapped = model()
    for layer in (wrapped[0], wrapped[2], wrapped):
        fully_shard(layer, mesh=mesh)
    return wrapped


def test_fsdp2():
    near(train(sharded(dist.group.WORLD)), train(sharded(GLOO)))


def test_checkpoint():
    trained, fresh = sharded(dist.group.WORLD), sharded(dist.group.WORLD)
    train(trained)
    folder = [tempfile.mkdtemp() if RANK == 0 else None]
    dist.broadcast_object_list(folder, 0)
    dcp.save(trained.state_dict(), checkpoint_id=folder[0])
    state = fresh.state_dict()
    dcp.load(state, checkpoint_id=folder[0])
    fresh.load_state_dict(state)
    for name, value in trained.state_dict().items():
        same(fresh.state_dict()[name].full_tensor(), value.full_tensor())


def test_one_group_after_the_other():
    dist.destroy_process_group()
    assert not dist.is_initialized()
    dist.init_process_group("dt", init_method="dt://")
    got = torch.ones(1)
    dist.all_reduce(got)
    same(got, torch.full((1,), float(SIZE)))


def main():
    global RANK, SIZE, GLOO
    faulthandler.dump_traceback_later(200, exit=True)
    warnings.simplefilter("ignore")
    dist.init_process_group("dt", init_method="dt://")
    RANK, SIZE = dist.get_rank(), dist.get_world_size()
    GLOO = dist.new_group(backend="gloo")
    checks.run(globals())
    if dist.is_initialized():
        dist.destroy_process_group()


main()
