# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# dask.py - data parallel over Dask's workers; each task is a client
import os
import sys

sys.path[0] += "/lib"  # this file is not the module dask
from distributed import Client

import group

rank = int(os.environ["SLURM_PROCID"])
with Client() as client:
    workers = sorted(client.run(os.getpid))
    size = len(workers)

    def on_each(function, *lists):
        return client.gather([
            client.submit(function, *args, workers=[worker], pure=False)
            for worker, *args in zip(workers, *lists)])

    group.check(on_each(group.row, range(size)), group.row(rank))
    shares = [group.SAMPLES[i::size] for i in range(size)]
    weights = [0.0, 0.0]
    for _ in range(group.STEPS):
        slopes = on_each(group.gradient, [weights] * size, shares)
        weights = [w - group.RATE * sum(column) / size
                   for w, column in zip(weights, zip(*slopes))]
    group.compare(weights)
    print(f"OK rank {rank} of {size}", flush=True)
