#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# templates.t - the batch templates of PyTorch; those of others are in their tests

# shellcheck source=tests/frameworks/framework.sh
. "$(dirname "$0")/framework.sh"
need_framework torch

# the default of 0 for these breaks PyTorch 1.13 on Python 3.11
export PET_TEE=1 PET_REDIRECTS=2 PET_LOG_DIR=$cluster_share/log
for name in torch torchrun; do
    template "$name" '^(\[default0\]:)?4 ranks, loss 0\.[0-9]+$'
done

done_testing
