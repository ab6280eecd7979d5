# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""What the ranks exchange around a checkpoint. All of it is collective over the
world, blocks, and raises HorovodInternalError when a rank is gone."""

import ctypes
import json
import os
import sys
import time
from typing import Any, List, Optional

from slurm_dt import _dt

_BCAST, _ALLGATHER, _BARRIER = 2, 3, 8  # enum kind in ext/collective.c
_U8 = 1
_RECORD = 1024  # bytes of a rank in agree()
_SLICE = 60.0  # seconds: libdt itself ends what takes too long


def settle() -> None:
    """Wait until the thread of the backend "dt" has nothing under way: no other
    thread is in libdt while a directory is opened or closed. RuntimeError when
    that takes longer than DT_TIMEOUT."""
    backend = sys.modules.get("slurm_dt.torch_backend")
    until = time.monotonic() + float(os.environ.get("DT_TIMEOUT") or 600)
    while backend is not None and backend._progress.works:
        if time.monotonic() > until:
            raise RuntimeError(
                "collectives of torch.distributed are under way, and do not "
                "end: wait for them before a checkpoint is opened or closed")
        time.sleep(0.001)


def _run(kind: int, given: Any, got: Any, count: int, root: int = 0,
         counts: Any = None) -> None:
    address = [0 if b is None else ctypes.addressof(b) for b in (given, got)]
    world = _dt.comm(None)
    try:
        request = world.start(kind, *address, count, _U8, 0, root, counts,
                              (given, got))
        while not request.wait(_SLICE):
            pass
    finally:
        world.destroy()  # only this use of it


def barrier() -> None:
    """Wait for all ranks; the notice to leave goes along."""
    _run(_BARRIER, None, None, 0)


def _pack(value: Any, room: int = 0) -> Any:
    text = json.dumps(value).encode()
    return ctypes.create_string_buffer(text, max(room, len(text) + 1))


def gather(value: Any) -> List[Any]:
    """The value of each rank, which is JSON's."""
    size = _dt.place()[1]
    mine = _pack(value)
    lengths = (ctypes.c_int64 * size)()
    _run(_ALLGATHER, ctypes.c_int64(len(mine)), lengths, 8)
    got = ctypes.create_string_buffer(sum(lengths))
    _run(_ALLGATHER, mine, got, 0, counts=(list(lengths),))
    values, at = [], 0
    for length in lengths:
        values.append(json.loads(got.raw[at:at + length].rstrip(b"\0")))
        at += length
    return values


def broadcast(value: Any, root: int) -> Any:
    """The value of root, which is JSON's."""
    mine = _pack(value)
    length = ctypes.c_int64(len(mine))
    _run(_BCAST, None, length, 8, root)
    if _dt.place()[0] != root:
        mine = ctypes.create_string_buffer(length.value)
    _run(_BCAST, None, mine, length.value, root)
    return json.loads(mine.raw.rstrip(b"\0"))


def agree(value: Any = None, error: Optional[BaseException] = None
          ) -> List[Any]:
    """The values of all ranks, in one collective; they are short. If a rank has
    an error, all raise: that rank its own, the others a RuntimeError that names
    it."""
    rank, size = _dt.place()[:2]
    text = None if error is None else f"{error}"[:300]
    mine = _pack([text, value], _RECORD)
    got = ctypes.create_string_buffer(_RECORD * size)
    _run(_ALLGATHER, mine, got, _RECORD)
    all_of = [json.loads(got.raw[r * _RECORD:(r + 1) * _RECORD].rstrip(b"\0"))
              for r in range(size)]
    if error is not None:
        raise error
    for other, (text, _value) in enumerate(all_of):
        if text is not None:
            raise RuntimeError(f"rank {other} of {size}, not this one "
                               f"({rank}): {text}")
    return [value for _text, value in all_of]
