#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# jax.t - JAX in several processes under srun --dt-rendezvous=jax

# shellcheck source=tests/frameworks/framework.sh
. "$(dirname "$0")/framework.sh"
need_framework jax

out=$(four --dt-rendezvous=jax "$python" "$here/jax.py")
is 'exit code' "$?" 0
all_ok '2 nodes of 2 ranks' "$out" 4

template jax '^4 ranks, loss 0\.[0-9]+$'

done_testing
