# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# ray.py - data parallel over Ray's actors, one for each task of the step on
# each node; each task is a driver
import os
import sys

sys.path[0] += "/lib"  # this file is not the module ray
import ray
import group

rank, size = (int(os.environ[name]) for name in ("SLURM_PROCID",
                                                 "SLURM_NTASKS"))
ray.init(log_to_driver=False, logging_level="ERROR")
assert len([node for node in ray.nodes() if node["Alive"]]) == 2, ray.nodes()


@ray.remote(num_cpus=0, scheduling_strategy="SPREAD")
class Worker:
    def __init__(self, number):
        self.number = number

    def row(self):
        return group.row(self.number)

    def gradient(self, weights):
        return group.gradient(weights, group.SAMPLES[self.number::size])


workers = [Worker.remote(number) for number in range(size)]
group.check(ray.get([worker.row.remote() for worker in workers]),
            group.row(rank))
weights = [0.0, 0.0]
for _ in range(group.STEPS):
    slopes = ray.get([worker.gradient.remote(weights) for worker in workers])
    weights = [w - group.RATE * sum(column) / size
               for w, column in zip(weights, zip(*slopes))]
group.compare(weights)
print(f"OK rank {rank} of {size}", flush=True)
