#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# templates.t - the batch templates of frameworks, submitted as they are in an
# empty directory

# shellcheck source=tests/frameworks/framework.sh
. "$(dirname "$0")/framework.sh"
need_framework torch

PATH=$(dirname "$python"):$PATH
# the default of 0 for these breaks PyTorch 1.13 on Python 3.11
export PET_TEE=1 PET_REDIRECTS=2 PET_LOG_DIR=$cluster_share/log

for name in torch torchrun; do
    mkdir "$cluster_share/$name"
    cp "$DT_PREFIX/share/slurm-dt/templates/$name.sbatch" \
        "$cluster_share/$name"
    cd "$cluster_share/$name" || exit
    ok "$name.sbatch ends with 0" sb sbatch -W "$name.sbatch"
    like "$name.sbatch trains on all ranks, once" "$(grep ranks train-*.log)" \
        '^(\[default0\]:)?4 ranks, loss 0\.[0-9]+$'
done
cd "$top" || exit

done_testing
