# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""comm.py - what torch_backend.t has each rank do with the collectives of the
extension, which the backend for torch starts; no torch is needed. Each function
whose name begins with test_, in order; "ok NAME" or "not ok NAME" is printed
for each."""

import ctypes
import threading

import checks
from slurm_dt import _dt
from slurm_dt.basics import join_world

(ALLREDUCE, REDUCE, BCAST, ALLGATHER, REDUCE_SCATTER, ALLTOALL, GATHER,
 SCATTER, BARRIER, SEND, RECV) = range(11)
F32, SUM, AVG = 6, 0, 3
RANK, SIZE, WORLD = 0, 1, None


def floats(*values):
    return (ctypes.c_float * len(values))(*values)


def begin(kind, given, got, count, op=SUM, root=0, counts=None, comm=None):
    return (comm or WORLD).start(
        kind, ctypes.addressof(given) if given is not None else 0,
        ctypes.addressof(got) if got is not None else 0, count, F32, op, root,
        counts, (given, got))


def do(*args, **kwargs):
    assert begin(*args, **kwargs).wait(60)


def same(got, *wanted):
    assert list(got) == list(wanted), f"{list(got)}, not {list(wanted)}"


def fails(error, words, function, *args):
    try:
        function(*args)
    except error as e:
        assert words in str(e) and len(str(e).splitlines()) == 1, str(e)
        return
    raise AssertionError(f"no {error.__name__}")


def test_place():
    assert WORLD.place() == _dt.place()[:2] == (RANK, SIZE)


def test_reductions():
    total = sum(range(SIZE))
    got = floats(0, 0)
    do(ALLREDUCE, floats(RANK, 1), got, 2)
    same(got, total, SIZE)
    do(ALLREDUCE, floats(2, 4), got, 2, AVG)
    same(got, 2, 4)
    do(REDUCE, floats(RANK, 1), got, 2, root=SIZE - 1)
    if RANK == SIZE - 1:
        same(got, total, SIZE)
    do(REDUCE_SCATTER, floats(*range(2 * SIZE)), got, 2)
    same(got, 2 * RANK * SIZE, (2 * RANK + 1) * SIZE)
    got = floats(*[0.0] * max(RANK, 1))
    do(REDUCE_SCATTER, floats(*[1.0] * sum(range(SIZE))), got, 0,
       counts=(list(range(SIZE)),))
    same(got, *([SIZE] * RANK or [0]))


def test_moves():
    everybody = list(range(SIZE))
    got = floats(RANK)
    do(BCAST, None, got, 1, root=1)
    same(got, 1)
    got = floats(*[-1.0] * SIZE)
    do(ALLGATHER, floats(RANK), got, 1)
    same(got, *everybody)
    do(ALLTOALL, floats(*[10 * RANK + r for r in everybody]), got, 1)
    same(got, *[10 * r + RANK for r in everybody])
    got = floats(*[-1.0] * SIZE)
    do(GATHER, floats(RANK), got, 1, root=1)
    same(got, *(everybody if RANK == 1 else [-1.0] * SIZE))
    got = floats(-1)
    do(SCATTER, floats(*everybody), got, 1)
    same(got, RANK)
    do(BARRIER, None, None, 0)


def test_uneven_moves():
    # rank r has r + 1 elements; r of them go to each
    counts = [r + 1 for r in range(SIZE)]
    got = floats(*[-1.0] * sum(counts))
    do(ALLGATHER, floats(*[RANK] * (RANK + 1)), got, 0, counts=(counts,))
    same(got, *[r for r in range(SIZE) for _ in range(r + 1)])
    got = floats(*[-1.0] * sum(counts))
    do(ALLTOALL, floats(*[RANK] * ((RANK + 1) * SIZE)), got, 0,
       counts=([RANK + 1] * SIZE, counts))
    same(got, *[r for r in range(SIZE) for _ in range(r + 1)])


def test_messages():
    to, source = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    got = floats(-1)
    receive = begin(RECV, None, got, 1, root=source)
    send = begin(SEND, floats(RANK), None, 1, root=to)
    assert receive.wait(60) and send.wait(60)
    same(got, source)


def test_group_of_members_only():
    if RANK < 2:
        comm = _dt.comm([1, 0])
        assert comm.place() == (1 - RANK, 2)
        got = floats(-1, -1)
        do(ALLGATHER, floats(RANK), got, 1, comm=comm)
        same(got, 1, 0)
        comm.destroy()
        fails(_dt.HorovodInternalError, "destroyed", begin, BARRIER, None, None,
              0, SUM, 0, None, comm)
    else:
        fails(ValueError, "not among", _dt.comm, [0, 1])


def test_waits():
    many = [floats(i) for i in range(20)]
    requests = [begin(ALLREDUCE, x, x, 1) for x in many]
    for request in reversed(requests):
        assert request.wait(60) and request.wait(0) and request.test()
    same([x[0] for x in many], *[i * SIZE for i in range(20)])
    # a wait ends with its time, and what it waits for goes on
    if RANK == 0:
        late = begin(BARRIER, None, None, 0)
        assert not late.wait(0.05) and not late.test()
        do(SEND, floats(1), None, 1, root=1)
        assert late.wait(60)
    else:
        if RANK == 1:
            do(RECV, None, floats(0), 1)
        do(BARRIER, None, None, 0)


def test_poll():
    # it returns when one is over, or when another one has started
    one = begin(BARRIER, None, None, 0)
    while not one.test():
        _dt.poll([one], _dt.started(), 60)
    if RANK == 0:
        known, got = _dt.started(), floats(0)
        open_one = begin(RECV, None, got, 1, root=1)
        _dt.poll([open_one], known, 600)
        known = _dt.started()
        thread = threading.Thread(target=do, args=(SEND, floats(2), None, 1,
                                                   SUM, 1))
        thread.start()
        _dt.poll([open_one], known, 600)
        thread.join()
        assert open_one.wait(60)
        same(got, 3)
    elif RANK == 1:
        do(RECV, None, floats(0), 1)
        do(SEND, floats(3), None, 1)


def test_bad_input():
    x = floats(1)
    fails(ValueError, "no such", begin, 11, x, x, 1)
    fails(ValueError, "root", begin, BCAST, None, x, 1, SUM, SIZE)
    fails(ValueError, "ranks", begin, ALLTOALL, x, x, 0, SUM, 0,
          ([1], [1] * SIZE))
    fails(TypeError, "no counts", begin, BCAST, x, x, 0, SUM, 0,
          ([1] * SIZE,))
    fails(TypeError, "requests", _dt.poll, [x], 0, 1)
    fails(ValueError, "", _dt.comm, [0, SIZE])
    do(BARRIER, None, None, 0)


def main():
    global RANK, SIZE, WORLD
    try:
        _dt.comm(None)
    except _dt.HorovodInternalError as error:
        assert "call init() first" in str(error)
    join_world()
    WORLD = _dt.comm(None)
    RANK, SIZE = WORLD.place()
    checks.run(globals())


main()
