# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# mpi4py.py - data parallel by MPI in Python
import sys

sys.path[0] += "/lib"  # this file is not the module mpi4py
from mpi4py import MPI

import group

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
mine = group.row(rank)
group.check(comm.allgather(mine), mine)
weights = [0.0, 0.0]
for _ in range(group.STEPS):
    slopes = comm.allgather(
        group.gradient(weights, group.SAMPLES[rank::size]))
    slope = [sum(column) / size for column in zip(*slopes)]
    weights = [w - group.RATE * s for w, s in zip(weights, slope)]
group.compare(weights)
comm.Barrier()
print(f"OK rank {rank} of {size}", flush=True)
