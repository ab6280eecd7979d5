# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# pytorch.py - PyTorch's gloo, measured by the same code as the others, which is
# the library $BENCH_LIBRARY; the ranks rendezvous in the folder $BENCH_STORE

import ctypes
import datetime
import os
import sys

import torch
import torch.distributed as dist

INT = ctypes.c_int
ADDRESS, COUNT = ctypes.c_void_p, ctypes.c_size_t


class Contender(ctypes.Structure):
    """struct contender of contender.h"""
    _fields_ = [
        ("in_place", ctypes.c_bool),
        ("start", ctypes.CFUNCTYPE(INT, ctypes.c_char_p, ctypes.POINTER(INT),
                                   ctypes.POINTER(INT))),
        ("alloc", ctypes.CFUNCTYPE(INT, COUNT, ctypes.POINTER(ADDRESS))),
        ("allreduce", ctypes.CFUNCTYPE(INT, ADDRESS, ADDRESS, COUNT, INT)),
        ("begin", ctypes.CFUNCTYPE(INT, ADDRESS, COUNT, INT)),
        ("finish", ctypes.CFUNCTYPE(INT)),
        ("stop", ctypes.CFUNCTYPE(None)),
    ]
    types = dict(_fields_)


TYPES = [(torch.float32, 4), (torch.bfloat16, 2), (torch.float16, 2)]
tensors = {}
begun = []


def tensor(address, count, kind):
    """The tensor in the caller's memory, made once"""
    key = address, count, kind
    if key not in tensors:
        dtype, width = TYPES[kind]
        memory = (ctypes.c_char * (count * width)).from_address(address)
        tensors[key] = torch.frombuffer(memory, dtype=dtype, count=count)
    return tensors[key]


def guarded(function):
    """An exception is -1, or 1 where the library refuses a type"""
    def call(*args):
        try:
            function(*args)
            return 0
        except RuntimeError as error:
            print("bench: torch:", error, file=sys.stderr)
            return 1 if "type" in str(error) else -1
    return call


def start(_variant, rank, size):
    dist.init_process_group(
        "gloo", init_method="file://" + os.environ["BENCH_STORE"] + "/torch",
        rank=rank[0], world_size=size[0],
        timeout=datetime.timedelta(seconds=60))


def allreduce(_in, out, count, kind):
    dist.all_reduce(tensor(out, count, kind))


def begin(buf, count, kind):
    begun.append(dist.all_reduce(tensor(buf, count, kind), async_op=True))


def finish():
    for work in begun:
        work.wait()
    begun.clear()


def stop():
    dist.barrier()


def main():
    library = ctypes.CDLL(os.environ["BENCH_LIBRARY"])
    kinds = Contender.types
    contender = Contender(in_place=True, stop=kinds["stop"](stop))
    for name, function in ("start", start), ("allreduce", allreduce), \
            ("begin", begin), ("finish", finish):
        setattr(contender, name, kinds[name](guarded(function)))
    words = [word.encode() for word in sys.argv]
    argv = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    code = library.bench_main(len(words), argv, ctypes.byref(contender))
    sys.stdout.flush()
    os._exit(code)


main()
