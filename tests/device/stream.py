# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
"""stream.py - dt.h called with PyTorch's streams and graphs, on each rank:
work before and after a call keeps its place on the stream, and a captured
allreduce may be replayed. tests/device/job runs it."""

import ctypes

import torch

dt = ctypes.CDLL("libdt.so.0")
dt.dt_comm_world.restype = ctypes.c_void_p
dt.dt_last_error.restype = ctypes.c_char_p
F32, SUM = 6, 0
COUNT = 100_000


def must(rc):
    assert rc == 0, dt.dt_last_error().decode()


def allreduce(send, recv, stream):
    must(dt.dt_allreduce(
        ctypes.c_void_p(send.data_ptr()), ctypes.c_void_p(recv.data_ptr()),
        ctypes.c_size_t(send.numel()), F32, SUM,
        ctypes.c_void_p(dt.dt_comm_world()),
        ctypes.c_void_p(stream.cuda_stream)))


def not_captured(send, recv, stream):
    """The error of an allreduce that a graph cannot hold."""
    try:
        allreduce(send, recv, stream)
    except AssertionError as error:
        return str(error)
    return "it was captured"


def slow(matrix):
    """Some milliseconds on the current stream."""
    for _ in range(20):
        matrix = matrix @ matrix * 1e-4
    return matrix


def test_order(rank, size, device):
    """No call waits, and each sees what stands before it on the stream."""
    stream = torch.cuda.Stream(device)
    matrix = torch.rand(2048, 2048, device=device)
    with torch.cuda.stream(stream):
        for step in range(20):
            x = torch.full((COUNT,), -1.0, device=device)
            matrix = slow(matrix)
            x.fill_(float(rank + step))
            y = torch.empty_like(x)
            allreduce(x, y, stream)
            y.mul_(2)
            wanted = 2.0 * sum(r + step for r in range(size))
            assert torch.all(y == wanted).item(), (step, y[0].item(), wanted)


def test_streams(rank, size, device):
    """The default stream of PyTorch, and a stream that waits for another."""
    first, second = torch.cuda.Stream(device), torch.cuda.Stream(device)
    x = torch.zeros(COUNT, device=device)
    first.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(first):
        slow(torch.rand(2048, 2048, device=device))
        x += rank + 1
        allreduce(x, x, first)
    second.wait_stream(first)
    with torch.cuda.stream(second):
        x *= 3
        allreduce(x, x, second)
    second.synchronize()
    wanted = 3.0 * size * size * (size + 1) / 2
    assert torch.all(x == wanted).item(), (x[0].item(), wanted)
    default = torch.cuda.default_stream(device)
    y = torch.full((COUNT,), float(rank), device=device)
    allreduce(y, y, default)
    assert torch.all(y == size * (size - 1) / 2).item()


def test_graph(rank, size, device):
    """A graph with two allreduces, replayed with other inputs. What goes
    through the host, between nodes, is refused."""
    stream = torch.cuda.Stream(device)
    x = torch.zeros(COUNT, device=device)
    y = torch.zeros(COUNT, device=device)
    with torch.cuda.stream(stream):
        allreduce(x, y, stream)  # the ranks meet before the capture
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    if dt.dt_num_nodes() > 1:
        with torch.cuda.graph(graph, stream=stream):
            y += 1
            refused = not_captured(x, y, stream)
        assert "no graph can capture" in refused, refused
        return
    with torch.cuda.graph(graph, stream=stream):
        allreduce(x, y, stream)
        y += 1
        allreduce(y, y, stream)
    for step in range(10):
        x.fill_(float(rank * (step + 1)))
        torch.cuda.synchronize()
        graph.replay()
        torch.cuda.synchronize()
        wanted = size * (1.0 + sum(r * (step + 1) for r in range(size)))
        assert torch.all(y == wanted).item(), (step, y[0].item(), wanted)
    del graph


def main():
    must(dt.dt_init())
    device = torch.device("cuda", dt.dt_local_rank()
                          % torch.cuda.device_count())
    torch.cuda.set_device(device)
    for test in (test_order, test_streams, test_graph):
        test(dt.dt_rank(), dt.dt_size(), device)
    must(dt.dt_finalize())


main()
