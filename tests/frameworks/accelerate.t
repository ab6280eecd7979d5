#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# accelerate.t - Accelerate under srun --dt-rendezvous=accelerate

# shellcheck source=tests/frameworks/framework.sh
. "$(dirname "$0")/framework.sh"
need_framework accelerate

out=$(four --dt-rendezvous=accelerate "$python" "$here/accelerate.py")
is 'exit code' "$?" 0
all_ok '2 nodes of 2 ranks' "$out" 4

done_testing
