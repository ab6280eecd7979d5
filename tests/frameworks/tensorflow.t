#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# tensorflow.t - workers of TensorFlow under srun --dt-rendezvous=tensorflow

# shellcheck source=tests/frameworks/framework.sh
. "$(dirname "$0")/framework.sh"
need_framework tensorflow

out=$(four --dt-rendezvous=tensorflow "$python" "$here/tensorflow.py")
is 'exit code' "$?" 0
all_ok '2 nodes of 2 ranks' "$out" 4

template tensorflow '^4 ranks, loss 0\.[0-9]+$'

done_testing
