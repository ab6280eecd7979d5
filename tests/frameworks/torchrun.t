#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# torchrun.t - torchrun without options under srun --dt-rendezvous=torchrun

# shellcheck source=tests/frameworks/framework.sh
. "$(dirname "$0")/framework.sh"
need_framework torchrun

# the default of 0 for these breaks PyTorch 1.13 on Python 3.11
export PET_TEE=1 PET_REDIRECTS=2 PET_LOG_DIR=$cluster_share/log
out=$(EXPECTED_RANKS=4 four --ntasks-per-node=1 --dt-rendezvous=torchrun \
    "$python" -m torch.distributed.run "$here/torch.py")
is 'exit code' "$?" 0
all_ok '2 nodes of 2 ranks' "$out" 4

# The two torchruns of the nodes find each other by their store.
out=$(EXPECTED_RANKS=4 four --ntasks-per-node=1 \
    --dt-rendezvous=torchrun,elastic "$python" -m torch.distributed.run \
    "$here/torch.py")
is 'elastic: exit code' "$?" 0
all_ok 'elastic: 2 nodes of 2 ranks' "$out" 4
out=$(four --ntasks-per-node=1 --dt-rendezvous=torchrun,elastic env)
is 'elastic: the id has job and step, the master is left to torchrun' \
    "$(grep -E '^PET_(RDZV_ID|RDZV_BACKEND|MASTER_PORT)=' <<<"$out" | sort -u)" \
    "PET_RDZV_BACKEND=c10d
PET_RDZV_ID=$(sed -n 's/^SLURM_JOB_ID=//p' <<<"$out" | sort -u).0"

# Without the option, each torchrun is a world of its own and exits with 0.
out=$(EXPECTED_RANKS=1 four --ntasks-per-node=1 \
    "$python" -m torch.distributed.run --nproc_per_node=1 --standalone \
    "$here/torch.py")
is 'without the option: worlds of one, exit code 0' \
    "$? $(grep -c 'OK rank 0 of 1' <<<"$out")" '0 2'

done_testing
