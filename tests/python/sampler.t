#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# sampler.t - slurm_dt.data.Sampler: every sample once per epoch, on 1, 2 and 3
# ranks, and in one epoch that goes on from one number to the next.

# shellcheck source=tests/python/python.sh
. "$(dirname "$0")/python.sh"
need_package
here=$top/tests/python

export ROOT=$tmp/root
for n in 2 1 3; do
    [ "$n" != 3 ] || export LAST=1
    every_function "$n" "$here/sampler.py" "$n ranks"
done

out=$("$python" -c 'import sys
sys.modules["torch"] = None
import slurm_dt.data' 2>&1)
like "without torch: a clear line" "$(tail -n 1 <<<"$out")" \
    '^ImportError: slurm_dt.data needs PyTorch'

done_testing
