#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# deepspeed.t - DeepSpeed under srun --dt-rendezvous=deepspeed

# shellcheck source=tests/frameworks/framework.sh
. "$(dirname "$0")/framework.sh"
need_framework deepspeed

# what it compiles is the test's own: a run that is ended leaves a lock there
mkdir "$cluster_share/extensions" && chmod 777 "$cluster_share/extensions"
export TORCH_EXTENSIONS_DIR=$cluster_share/extensions
SB_TIMEOUT=120

out=$(four --dt-rendezvous=deepspeed "$python" "$here/deepspeed.py")
is 'exit code' "$?" 0
all_ok '2 nodes of 2 ranks' "$out" 4

done_testing
