#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# torch-ddp.t - PyTorch's DDP finds its ranks from Slurm's variables

# shellcheck source=tests/peers/peer.sh
. "$(dirname "$0")/peer.sh"
need_module torch
peer_up

MASTER_ADDR=$address MASTER_PORT=$(free_port)
export MASTER_ADDR MASTER_PORT
# shellcheck disable=SC2016 # each task expands its own
out=$(peer sh -c 'RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS exec "$@"' sh \
    "$python" "$top/tests/peers/ddp.py" 2>&1)
is "one step on 2 nodes of 2 ranks: exit code" "$?" 0
is "every rank has the averaged gradient" "$(sort <<<"$out")" \
"rank 0 of 4, gradient [0.0, 2.5, 5.0, 7.5]
rank 1 of 4, gradient [0.0, 2.5, 5.0, 7.5]
rank 2 of 4, gradient [0.0, 2.5, 5.0, 7.5]
rank 3 of 4, gradient [0.0, 2.5, 5.0, 7.5]"

done_testing
