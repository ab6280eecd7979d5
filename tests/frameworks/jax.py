# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# jax.py - data parallel with JAX in several processes
import sys

sys.path[0] += "/lib"  # this file is not the module jax
import jax

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize()

import jax.numpy as jnp
from jax.experimental import multihost_utils

import group

rank, size = jax.process_index(), jax.process_count()
mine = group.row(rank)
rows = multihost_utils.process_allgather(jnp.array(mine))
group.check([[int(n) for n in row] for row in rows], mine)

samples = jnp.array(group.SAMPLES[rank::size])


def loss(weights):
    return jnp.mean((weights[0] * samples[:, 0] + weights[1]
                     - samples[:, 1]) ** 2)


weights = jnp.zeros(2)
for _ in range(group.STEPS):
    slopes = multihost_utils.process_allgather(jax.grad(loss)(weights))
    weights = weights - group.RATE * jnp.mean(jnp.asarray(slopes), axis=0)
group.compare([float(w) for w in weights])
multihost_utils.sync_global_devices("end")
print(f"OK rank {rank} of {size}", flush=True)
